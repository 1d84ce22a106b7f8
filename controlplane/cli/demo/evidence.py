"""Queries of the demo's steps on the observed decisions and tables, as pure functions."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

from controlplane.cli.demo.watching import SwappedTable
from controlplane.core.bundles.candidate import Candidate
from controlplane.core.cluster.events import TermOpened
from controlplane.core.log.events import Event
from controlplane.core.membership.events import NodeAdmitted, NodeFenced
from controlplane.core.membership.node import NodeRole, NodeStatus
from controlplane.core.routing.replica import RoutingTable
from controlplane.core.slots.certificate import Certificate
from controlplane.core.slots.table import by_node
from controlplane.core.values.identifiers import NamespaceName, NodeId
from controlplane.inspection.readers import LastHeartbeat, LoggedDecision


def events_of(decisions: Iterable[LoggedDecision]) -> list[tuple[LoggedDecision, Event]]:
    """Every event with its decision."""
    return [(logged, event) for logged in decisions for event in logged.decision.events]


def admission_of(decisions: Iterable[LoggedDecision], node_id: NodeId) -> LoggedDecision | None:
    """The first decision that admits a node."""
    found = (
        logged
        for logged, event in events_of(decisions)
        if isinstance(event, NodeAdmitted) and event.node.node_id == node_id
    )
    return next(found, None)


def fencing_of(decisions: Iterable[LoggedDecision], node_id: NodeId) -> LoggedDecision | None:
    """The first decision that fences a node."""
    found = (
        logged for logged, event in events_of(decisions) if isinstance(event, NodeFenced) and event.node_id == node_id
    )
    return next(found, None)


def last_opening(decisions: Iterable[LoggedDecision]) -> TermOpened | None:
    """The newest opening of a term."""
    openings = [event for _, event in events_of(decisions) if isinstance(event, TermOpened)]
    return openings[-1] if openings else None


def certificates_of(decisions: Iterable[LoggedDecision]) -> list[Certificate]:
    """The certificates of the decisions that planned slots."""
    return [logged.decision.certificate for logged in decisions if logged.decision.certificate is not None]


def broken_chain(decisions: Sequence[LoggedDecision]) -> str | None:
    """The first place where seq or epoch skip, repeat or fall, or the digest chain breaks; None if there is none."""
    for before, after in pairwise(decisions):
        earlier, later = before.decision, after.decision
        if later.seq != earlier.seq + 1:
            return f"seq {later.seq} follows {earlier.seq}"
        if later.epoch not in (earlier.epoch, earlier.epoch + 1):
            return f"epoch {later.epoch} follows {earlier.epoch} at seq {later.seq}"
        if later.term < earlier.term:
            return f"term {later.term} follows {earlier.term} at seq {later.seq}"
        if later.previous_digest != earlier.digest():
            return f"seq {later.seq} does not continue seq {earlier.seq}"
    return None


def candidate_of(candidates: Iterable[Candidate], namespace: NamespaceName) -> Candidate | None:
    """The first candidate among a namespace's bundles."""
    return next((found for found in candidates if found.bundle_id.startswith(f"{namespace}/")), None)


def first_swap(tables: Iterable[SwappedTable], epoch: int) -> SwappedTable | None:
    """The swap to the first table of at least this epoch."""
    return next((swapped for swapped in tables if swapped.table.epoch >= epoch), None)


def active_data_nodes(table: RoutingTable) -> list[NodeId]:
    """The nodes that may hold slots, by name."""
    return sorted(
        node_id
        for node_id, node in table.nodes.items()
        if node.status is NodeStatus.ACTIVE and node.role is NodeRole.DATA
    )


def unserved_slots(table: RoutingTable) -> list[int]:
    """Slots without a slot leader or with fewer replicas than there could be, or with a replica on a dead node."""
    nodes = set(active_data_nodes(table))
    wanted = min(table.settings.replica_count, len(nodes))
    return [
        slot.slot_id
        for slot in table.slots
        if slot.leader is None or len(slot.replicas) < wanted or not nodes.issuperset(slot.replicas)
    ]


def unowned_bundles(table: RoutingTable) -> list[str]:
    """Bundles whose owner does not live."""
    nodes = set(active_data_nodes(table))
    return [bundle_id for bundle_id, bundle in table.bundles.items() if bundle.owner not in nodes]


def replica_counts(table: RoutingTable) -> dict[NodeId, int]:
    """How many replicas each active node holds."""
    held = by_node(table.slots)
    return {
        node_id: len(held[node_id].leads) + len(held[node_id].follows) if node_id in held else 0
        for node_id in active_data_nodes(table)
    }


def all_caught_up(table: RoutingTable, heartbeats: Mapping[NodeId, LastHeartbeat]) -> bool:
    """Whether every active node says that it works with this epoch or a newer one."""
    return all(
        node_id in heartbeats and heartbeats[node_id].heartbeat.table_epoch >= table.epoch
        for node_id in active_data_nodes(table)
    )
