"""The two load managers of Pulsar, by the names of their classes."""

from enum import Enum
from typing import Final

from controlplane.errors import ConfigurationError

MODULAR_MANAGER: Final = "org.apache.pulsar.broker.loadbalance.impl.ModularLoadManagerImpl"
EXTENSIBLE_MANAGER: Final = "org.apache.pulsar.broker.loadbalance.extensions.ExtensibleLoadManagerImpl"


class Manager(Enum):
    """The load managers."""

    MODULAR = MODULAR_MANAGER
    EXTENSIBLE = EXTENSIBLE_MANAGER

    @property
    def short_name(self) -> str:
        """The class name without its package."""
        return self.value.rpartition(".")[2]


def manager_named(name: str) -> Manager:
    """The manager with a full or short class name.

    Raises:
        ConfigurationError: there is none, or it is not offered.
    """
    for manager in Manager:
        if name in {manager.value, manager.short_name}:
            return manager
    known = ", ".join(manager.short_name for manager in Manager)
    raise ConfigurationError(f"load manager {name!r} is unknown or not offered; there are {known}")
