"""Metrics of agents and clients, of which a process may have several: shared collectors, distinguished by labels.

Prometheus refuses a second collector of the same name in a registry. So each registry gets its collectors once, and
each agent or client uses children of them under labels of its own, which are removed when it closes.
"""

import threading
from collections import Counter
from itertools import count
from typing import Final, Self
from weakref import WeakKeyDictionary

from prometheus_client import CollectorRegistry
from prometheus_client.metrics import MetricWrapperBase


class LabelledCollectors:
    """The collectors of one kind of component in one registry. Thread-safe.

    A subclass names its identifying labels in :attr:`LABELS`, and creates its collectors in ``__init__``, each as an
    attribute, with these labels before any others.
    """

    LABELS: tuple[str, ...]

    _registered: Final[WeakKeyDictionary[CollectorRegistry, dict[type, "LabelledCollectors"]]] = WeakKeyDictionary()
    _registering: Final = threading.Lock()

    def __init__(self, _registry: CollectorRegistry) -> None:
        self._lock = threading.Lock()
        self._users: Counter[tuple[str, ...]] = Counter()

    @classmethod
    def of(cls, registry: CollectorRegistry) -> Self:
        """The registry's collectors of this kind; the first call makes and registers them."""
        with cls._registering:
            of_registry = cls._registered.setdefault(registry, {})
            collectors = of_registry.get(cls)
            if not isinstance(collectors, cls):
                collectors = of_registry[cls] = cls(registry)
            return collectors

    def claim(self, *values: str) -> tuple[str, ...]:
        """Use these values of the identifying labels. Several users share one child, and the last one removes it."""
        with self._lock:
            self._users[values] += 1
        return values

    def claim_number(self, *values: str) -> tuple[str, ...]:
        """Use these values of all identifying labels but the last, which becomes the lowest free number."""
        with self._lock:
            claimed = next(each for number in count(1) if not self._users[each := (*values, str(number))])
            self._users[claimed] += 1
        return claimed

    def release(self, values: tuple[str, ...]) -> None:
        """End a use; the last one removes every child with these values."""
        with self._lock:
            self._users[values] -= 1
            if self._users[values]:
                return
            del self._users[values]
            labels = dict(zip(self.LABELS, values, strict=True))
            for collector in vars(self).values():
                if isinstance(collector, MetricWrapperBase):
                    collector.remove_by_labels(labels)
