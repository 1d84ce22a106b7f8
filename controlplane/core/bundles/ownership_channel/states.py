"""The states of a bundle's ownership, and which may follow which (Pulsar's ServiceUnitState)."""

from collections.abc import Mapping
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


class Storage(Enum):
    """Where the records are kept. The value is Pulsar's name.

    A compacted topic does not hold every record, so there any state may follow a missing record, and versions may have
    gaps. The metadata store refuses both.
    """

    SYSTEM_TOPIC = "SystemTopic"
    METADATA_STORE = "MetadataStore"


_COMMON: Final[Mapping[OwnershipState, frozenset[OwnershipState]]] = {
    OwnershipState.INIT: frozenset({OwnershipState.ASSIGNING}),
    OwnershipState.FREE: frozenset({OwnershipState.ASSIGNING}),
    OwnershipState.OWNED: frozenset({OwnershipState.SPLITTING, OwnershipState.RELEASING}),
    OwnershipState.ASSIGNING: frozenset({OwnershipState.OWNED}),
    OwnershipState.RELEASING: frozenset({OwnershipState.ASSIGNING, OwnershipState.FREE}),
    OwnershipState.SPLITTING: frozenset({OwnershipState.DELETED}),
    OwnershipState.DELETED: frozenset({OwnershipState.INIT}),
}

NEXT_STATES: Final[Mapping[Storage, Mapping[OwnershipState, frozenset[OwnershipState]]]] = {
    Storage.SYSTEM_TOPIC: {
        **_COMMON,
        OwnershipState.INIT: frozenset(OwnershipState) - {OwnershipState.INIT},
        OwnershipState.FREE: frozenset({OwnershipState.ASSIGNING, OwnershipState.INIT}),
    },
    Storage.METADATA_STORE: _COMMON,
}
"""By storage and state, the states that may follow. A forced record may follow any."""
