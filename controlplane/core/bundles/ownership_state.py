"""The states of a bundle's ownership (Pulsar's ServiceUnitState)."""

from enum import Enum
from typing import Final


class OwnershipState(Enum):
    """A state. Its value is Pulsar's name for it."""

    INIT = "Init"
    """No record: the bundle is unknown, or its record was deleted."""
    FREE = "Free"
    """The bundle has no owner."""
    OWNED = "Owned"
    """The destination serves the bundle."""
    ASSIGNING = "Assigning"
    """The destination has to confirm that it takes the bundle."""
    RELEASING = "Releasing"
    """The source has to give the bundle away: to the destination, if there is one."""
    SPLITTING = "Splitting"
    """The source has to divide the bundle."""
    DELETED = "Deleted"
    """The bundle was divided and is no more."""

    @property
    def is_in_flight(self) -> bool:
        """Whether a node has to act before the bundle has an owner again."""
        return self in _IN_FLIGHT

    @property
    def is_active(self) -> bool:
        """Whether a node serves the bundle, or is about to."""
        return self is OwnershipState.OWNED or self.is_in_flight


_IN_FLIGHT: Final = frozenset({OwnershipState.ASSIGNING, OwnershipState.RELEASING, OwnershipState.SPLITTING})
