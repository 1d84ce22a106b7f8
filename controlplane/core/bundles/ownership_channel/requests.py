"""The records that begin a change of a bundle's ownership.

The node that asks publishes one. It is refused by every reader if another record came first.
"""

from collections.abc import Mapping

from controlplane.core.bundles.ownership_channel.record import OwnershipRecord, next_version
from controlplane.core.bundles.ownership_state import OwnershipState


def assign(present: OwnershipRecord | None, node_id: str, now_ms: int) -> OwnershipRecord:
    """A node shall own a bundle that has no owner. The asker waits for the owner with ``lookup.wait_for_owner``."""
    return OwnershipRecord(OwnershipState.ASSIGNING, node_id, None, next_version(present), now_ms)


def unload(
    present: OwnershipRecord | None,
    source: str,
    now_ms: int,
    destination: str | None = None,
    *,
    is_forced: bool = False,
) -> OwnershipRecord:
    """A node shall give a bundle away: to the destination (a transfer), or without one."""
    version = next_version(present)
    return OwnershipRecord(OwnershipState.RELEASING, destination, source, version, now_ms, is_forced)


def split(
    present: OwnershipRecord | None, source: str, children: Mapping[str, str | None], now_ms: int
) -> OwnershipRecord:
    """A node shall divide its bundle into the ranges that are the keys of ``children``."""
    version = next_version(present)
    return OwnershipRecord(OwnershipState.SPLITTING, None, source, version, now_ms, children=children)
