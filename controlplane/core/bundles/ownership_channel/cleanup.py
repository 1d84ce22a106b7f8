"""How the bundles of a lost node get other owners (Pulsar's doCleanup and overrideOwnership).

The leader writes a forced record for each of them, the next in its bundle's versions. The leader's caller chooses the
destinations, by the placement of the extensible load manager without the lost node. A node that shuts down cleans up
after itself in the same way, but lets go of its bundles in good order (*gracefully*).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final, NamedTuple

from controlplane.core.bundles.names import SYSTEM_NAMESPACE, namespace_of
from controlplane.core.bundles.ownership_channel.record import OwnershipRecord, next_version
from controlplane.core.bundles.ownership_state import OwnershipState
from controlplane.errors import InvariantViolationError

WAIT_MS: Final = 5_000
"""How long a clean-up waits until the table shows what was written: before it begins, and before the system bundles."""


class OverrideReason(Enum):
    """What a forced record repairs."""

    OWNER_LOST = "owner-lost"
    """The owner is lost: another node owns the bundle at once."""
    OWNER_LEAVES = "owner-leaves"
    """The owner shuts down: it gives the bundle to another node."""
    SPLIT_AGAIN = "split-again"
    """The node that divided the bundle did not finish: another one does it again."""
    NEVER_TAKEN = "never-taken"
    """The bundle did not arrive at its new owner: another node owns it at once."""
    NO_NODE = "no-node"
    """No node may take the bundle."""


class Override(NamedTuple):
    """A forced record.

    Attributes:
        bundle_id: the bundle.
        former: its record, which is replaced.
        record: the record to publish.
        reason: why.
    """

    bundle_id: str
    former: OwnershipRecord
    record: OwnershipRecord
    reason: OverrideReason


def override(
    bundle_id: str, former: OwnershipRecord, chosen: str | None, now_ms: int, *, gracefully: bool = False
) -> Override:
    """The record that repairs a bundle.

    The source of the new record is the former owner, so that it closes its topics if it is still alive after all.

    Args:
        bundle_id: the bundle.
        former: its record, in an active state.
        chosen: the node that was chosen for the bundle; None if no node may take it.
        now_ms: the leader's clock.
        gracefully: the owner is alive and shuts down.
    """
    state, version = former.state, next_version(former)
    former_owner = former.destination if state is OwnershipState.OWNED else former.source
    if chosen is None:
        freed = OwnershipRecord(OwnershipState.FREE, None, former_owner, version, now_ms, is_forced=True)
        return Override(bundle_id, former, freed, OverrideReason.NO_NODE)
    if state is OwnershipState.SPLITTING:
        split = OwnershipRecord(
            state, former.destination, chosen, version, now_ms, is_forced=True, children=former.children
        )
        return Override(bundle_id, former, split, OverrideReason.SPLIT_AGAIN)
    source = None if former_owner == chosen else former_owner
    following, reason = OwnershipState.OWNED, OverrideReason.NEVER_TAKEN
    if state is OwnershipState.OWNED:
        releases = gracefully and source is not None
        following = OwnershipState.RELEASING if releases else OwnershipState.OWNED
        reason = OverrideReason.OWNER_LEAVES if releases else OverrideReason.OWNER_LOST
    taken = OwnershipRecord(following, chosen, source, version, now_ms, is_forced=True)
    return Override(bundle_id, former, taken, reason)


class CleanUpSkip(Enum):
    """Why nothing is cleaned up."""

    NO_LEADER = "no-leader"
    """No node owns the ownership channel."""
    HEALTHY = "healthy"
    """The node passes a health check, so it is not lost."""


class BundlesOfNode(NamedTuple):
    """The bundles for which a node has to be chosen, each part in the order of the table.

    Attributes:
        others: all but those of the system.
        system: bundles of the system's namespace. They may hold the ownership channel itself, so they come last.
    """

    others: tuple[str, ...]
    system: tuple[str, ...]


def bundles_of_node(records: Mapping[str, OwnershipRecord], node_id: str) -> BundlesOfNode:
    """The bundles that a node owns, is about to own, has to give away or has to divide."""
    found: dict[bool, list[str]] = {False: [], True: []}
    for bundle_id, record in records.items():
        owns = record.destination == node_id and record.state.is_active
        if owns or (record.source == node_id and record.state.is_in_flight):
            found[namespace_of(bundle_id) == SYSTEM_NAMESPACE].append(bundle_id)
    return BundlesOfNode(tuple(found[False]), tuple(found[True]))


@dataclass(frozen=True, slots=True)
class CleanUp:
    """How a node's bundles get other owners.

    The records of a batch are published together, and the next batch follows when all have been written. Between
    ``others`` and ``system`` the leader waits until the table shows no *Owned* bundle of the node outside of the
    system's namespace, for :data:`WAIT_MS` at most. At the end it deletes the node's stored loads.

    Attributes:
        node_id: the node.
        skip: why nothing is done; None if the node is cleaned up, perhaps without any bundle.
        others: the records in batches, without those of the system.
        system: the records of the system's bundles, likewise.
    """

    node_id: str
    skip: CleanUpSkip | None
    others: tuple[tuple[Override, ...], ...] = ()
    system: tuple[tuple[Override, ...], ...] = ()


def plan_clean_up(
    records: Mapping[str, OwnershipRecord],
    node_id: str,
    destinations: Mapping[str, str | None],
    now_ms: int,
    *,
    max_concurrent: int,
    gracefully: bool = False,
    is_healthy: bool = False,
    has_leader: bool = True,
) -> CleanUp:
    """How a node's bundles get other owners.

    Args:
        records: the table, read to its end.
        node_id: the lost node.
        destinations: by bundle of :func:`bundles_of_node`, the node that was chosen for it; None, or none at all, if no
            node may take the bundle.
        now_ms: the leader's clock.
        max_concurrent: greatest number of records in a batch, at least 1.
        gracefully: the node is alive and shuts down.
        is_healthy: the node passes a health check; of no account if it shuts down.
        has_leader: a node owns the ownership channel.

    Raises:
        InvariantViolationError: the lost node itself was chosen for a bundle.
    """
    if not has_leader:
        return CleanUp(node_id, CleanUpSkip.NO_LEADER)
    if is_healthy and not gracefully:
        return CleanUp(node_id, CleanUpSkip.HEALTHY)

    def batches(bundle_ids: Sequence[str]) -> Iterator[tuple[Override, ...]]:
        for start in range(0, len(bundle_ids), max_concurrent):
            yield tuple(
                override(each, records[each], _other(destinations.get(each), node_id), now_ms, gracefully=gracefully)
                for each in bundle_ids[start : start + max_concurrent]
            )

    found = bundles_of_node(records, node_id)
    return CleanUp(node_id, None, tuple(batches(found.others)), tuple(batches(found.system)))


def _other(chosen: str | None, lost: str) -> str | None:
    if chosen == lost:
        message = f"node {lost} is cleaned up, and was chosen for one of its own bundles"
        raise InvariantViolationError(message)
    return chosen
