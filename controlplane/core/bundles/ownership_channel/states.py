"""Which state of a bundle's ownership may follow which (Pulsar's ServiceUnitState)."""

from collections.abc import Mapping
from enum import Enum
from typing import Final

from controlplane.core.bundles.ownership_state import OwnershipState


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
