"""Validates heartbeats: each is accepted, refused, or waits for the join of its sender."""

from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from dataclasses import replace

from controlplane.core.deciding.admission import ANOTHER_PROCESS, another_process
from controlplane.core.deciding.observations import Observations
from controlplane.core.log.state import State
from controlplane.core.membership.inputs import Heartbeat, NodeJoined
from controlplane.core.membership.log_time import NOTHING_READ, SILENCE_MEMORY_MS, PartitionView
from controlplane.core.membership.node import Node, NodeStatus, are_two_processes
from controlplane.core.values.identifiers import Incarnation, NodeId
from controlplane.core.values.inputs import InputRecord, Refusal


def validate_heartbeats(state: State, observations: Observations, now_ms: int) -> tuple[Observations, list[Refusal]]:
    """Validate all new heartbeats; return the remaining observations and the refusals.

    Only a heartbeat of the current incarnation of a living member keeps that member alive.

    A heartbeat from an unknown sender waits for the join, because the two topics have no common order. It waits for one
    silence limit, and for longer if the join is pending, because there may be no leader for a long time. Of the
    heartbeats that wait longer, only the newest of each incarnation is kept.
    """
    refusals: list[Refusal] = []
    beside: list[Node] = []
    waiting: list[InputRecord] = []
    waiting_long: dict[tuple[NodeId, Incarnation], InputRecord] = {}
    fresh = [record for _, view in sorted(observations.partitions.items()) for record in view.unvalidated]
    joining = {
        (record.payload.node_id, record.payload.incarnation)
        for record in observations.pending
        if isinstance(record.payload, NodeJoined)
    }
    for record in (*observations.unknown_senders, *fresh):
        if _is_of_living_member(state, record):  # nearly all of them: nothing else is worked out for these
            continue
        view = observations.partitions.get(record.coordinates.partition, NOTHING_READ)
        age_ms = _age_ms(state, view, record, now_ms)
        refusal, waits = _validate(state, view, record, joining, age_ms)
        if refusal is not None:
            refusals.append(refusal)
            if refusal.reason == ANOTHER_PROCESS and isinstance(record.payload, Heartbeat):
                beside.append(state.membership.nodes[record.payload.node_id])
        elif waits and age_ms <= state.cluster.silence_limit_ms:
            waiting.append(record)
        elif waits and isinstance(record.payload, Heartbeat):
            waiting_long[record.payload.node_id, record.payload.incarnation] = record
    partitions = {partition: _validated(view, beside) for partition, view in observations.partitions.items()}
    return replace(observations, partitions=partitions, unknown_senders=(*waiting_long.values(), *waiting)), refusals


def _is_of_living_member(state: State, record: InputRecord) -> bool:
    heartbeat = record.payload
    if not isinstance(heartbeat, Heartbeat):
        return True
    node = state.membership.nodes.get(heartbeat.node_id)
    return (
        node is not None
        and heartbeat.incarnation == node.incarnation
        and node.lives
        and not are_two_processes(heartbeat.process_id, node.process_id)
    )


def _age_ms(state: State, view: PartitionView, record: InputRecord, now_ms: int) -> int:
    """The time since a heartbeat was appended: from feature level 3 on, by the clock of its own partition."""
    if state.cluster.has_several_brokers_rules:
        return view.clock_ms - view.clock_before(record.coordinates.offset)
    return now_ms - record.coordinates.append_time_ms


def _validate(
    state: State,
    view: PartitionView,
    record: InputRecord,
    joining: AbstractSet[tuple[NodeId, Incarnation]],
    age_ms: int,
) -> tuple[Refusal | None, bool]:
    heartbeat = record.payload
    if not isinstance(heartbeat, Heartbeat):
        return None, False
    node = state.membership.nodes.get(heartbeat.node_id)
    if node is not None and heartbeat.incarnation == node.incarnation:
        if are_two_processes(heartbeat.process_id, node.process_id):
            return _refuse(record, *another_process(node)), False
        if node.status is NodeStatus.LEFT and _is_from_before_leaving(state, view, record, node):
            return None, False
        reason, detail = node.status.value, f"node {node.node_id!r} is {node.status.value} and has to join again"
    elif node is not None and heartbeat.incarnation < node.incarnation:
        detail = f"node {node.node_id!r} sent incarnation {heartbeat.incarnation}, current is {node.incarnation}"
        return _refuse(record, "older_incarnation", detail), False
    else:
        reason = "never_joined"
        detail = f"node {heartbeat.node_id!r} sent a heartbeat of incarnation {heartbeat.incarnation} and no join of it"
    if (heartbeat.node_id, heartbeat.incarnation) in joining or age_ms <= state.cluster.silence_limit_ms:
        return None, True
    return _refuse(record, reason, detail), False


def _is_from_before_leaving(state: State, view: PartitionView, record: InputRecord, node: Node) -> bool:
    if state.cluster.has_several_brokers_rules:
        return view.seq_before(record.coordinates.offset, state.seq) < state.membership.date_of(node.node_id)
    return record.coordinates.append_time_ms <= node.changed_at_ms


def _refuse(record: InputRecord, reason: str, detail: str) -> Refusal:
    return Refusal.of(record.coordinates, reason, detail, record.raw)


def _validated(view: PartitionView, beside: Iterable[Node]) -> PartitionView:
    """The view without unvalidated records, and without heartbeats that count for no sender.

    They are too old, or another process than that of the node sent them (``beside`` are the nodes of which there are
    any): they must neither keep the node alive nor report its slots.
    """
    heard = view.heard
    for node in beside:
        member = node.node_id, node.incarnation
        if member in heard:
            last = heard[member].of_process(node.process_id)
            heard = {each: one for each, one in heard.items() if each != member} | ({member: last} if last else {})
    if any(view.clock_ms - each.clock_ms >= SILENCE_MEMORY_MS for each in heard.values()):
        heard = {member: each for member, each in heard.items() if view.clock_ms - each.clock_ms < SILENCE_MEMORY_MS}
    if heard is view.heard and not view.unvalidated:
        return view
    return replace(view, heard=heard, unvalidated=())
