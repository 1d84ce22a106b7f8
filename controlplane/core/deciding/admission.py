"""Takes up join, leaving and left records: their events in the membership."""

from typing import Final

from controlplane.core.cluster.policy import HANDOFFS_FROM_LEVEL
from controlplane.core.deciding.observations import Observations
from controlplane.core.log.decision import CauseKind
from controlplane.core.log.draft import Draft
from controlplane.core.membership.events import FencingCause, NodeAdmitted, NodeDraining, NodeFenced, NodeRemoved
from controlplane.core.membership.inputs import NodeJoined, NodeLeaving, NodeLeft
from controlplane.core.membership.node import PROCESSES_FROM_LEVEL, Node, NodeStatus, are_two_processes
from controlplane.core.values.identifiers import Epoch
from controlplane.core.values.inputs import InputRecord, Refusal

ANOTHER_PROCESS: Final = "another_process"
"""The reason for which records of a process are refused that runs beside the one that was admitted."""


def take_membership(draft: Draft, record: InputRecord, observations: Observations, now_ms: int) -> Refusal | None:
    """Take up one membership record: add its events, or return a refusal. A record without news does neither."""
    payload = record.payload
    match payload:
        case NodeJoined():
            problem = _join(draft, record, payload, observations, now_ms)
        case NodeLeaving() | NodeLeft():
            problem = _go(draft, record, payload, now_ms)
        case _:
            problem = ("wrong_record_type", f"{type(payload).__name__} is no membership record")
    return Refusal.of(record.coordinates, *problem, record.raw) if problem else None


def _join(
    draft: Draft, record: InputRecord, joined: NodeJoined, observations: Observations, now_ms: int
) -> tuple[str, str] | None:
    known = draft.state.membership.nodes.get(joined.node_id)
    if known is not None:
        if joined.incarnation < known.incarnation:
            detail = (
                f"node {joined.node_id!r} joins with incarnation {joined.incarnation}, current is {known.incarnation}"
            )
            return "older_incarnation", detail
        if joined.incarnation == known.incarnation:
            are_two = are_two_processes(joined.process_id, known.process_id)
            has_left = known.status is NodeStatus.LEFT
            # Another process may take the place of one that left. No row of the table tells it that there was one.
            if are_two and not has_left:
                return another_process(known)
            if has_left and not are_two:
                detail = f"node {joined.node_id!r} has left with incarnation {joined.incarnation}: take a greater one"
                return "left", detail
            if known.lives:
                return None
    elif joined.incarnation <= draft.state.cluster.incarnation_floor:
        # A forgotten node of this name may have had it.
        floor = draft.state.cluster.incarnation_floor
        detail = (
            f"node {joined.node_id!r} is unknown and joins with incarnation {joined.incarnation}; forgotten nodes had "
            f"up to {floor}: take one from {floor + 1} on (incarnation_floor of the table's settings)"
        )
        return "forgotten_incarnation", detail
    draft.because(CauseKind.NODE_JOINED, joined.node_id, str(record.coordinates))
    hands_off = joined.hands_off and draft.state.cluster.feature_level >= HANDOFFS_FROM_LEVEL
    if known is not None and known.lives:
        draft.add(NodeFenced(known.node_id, known.incarnation, FencingCause.SUPERSEDED, 0, now_ms))
    node = Node(
        node_id=joined.node_id,
        incarnation=joined.incarnation,
        role=joined.role,
        status=NodeStatus.ACTIVE,
        addresses=joined.addresses,
        zone=joined.zone,
        weight=joined.weight,
        capacity=joined.capacity,
        version=joined.version,
        admitted_at_offset=observations.dating_offset,
        changed_at_ms=now_ms,
        process_id=joined.process_id if draft.state.cluster.feature_level >= PROCESSES_FROM_LEVEL else "",
        hands_off=hands_off,
        replaced_epoch=_replaced_epoch(draft, known) if hands_off else Epoch(0),
    )
    draft.add(NodeAdmitted(node))
    return None


def _replaced_epoch(draft: Draft, known: Node | None) -> Epoch:
    """The epoch in which the latest process of a node that was taken for alive was replaced; 0 for none."""
    if known is None:
        return Epoch(0)
    # Of a node that was fenced or left, nothing runs that has not stopped; but one before it may.
    return draft.epoch if known.lives else known.replaced_epoch


def _go(draft: Draft, record: InputRecord, going: NodeLeaving | NodeLeft, now_ms: int) -> tuple[str, str] | None:
    node = draft.state.membership.nodes.get(going.node_id)
    if node is None:
        return "never_joined", f"node {going.node_id!r} wants to leave and never joined"
    if going.incarnation != node.incarnation:
        detail = f"node {going.node_id!r} leaves with incarnation {going.incarnation}, current is {node.incarnation}"
        return ("older_incarnation" if going.incarnation < node.incarnation else "never_joined"), detail
    if are_two_processes(going.process_id, node.process_id):
        return another_process(node)
    if isinstance(going, NodeLeaving):
        if node.status is NodeStatus.ACTIVE or (node.status is NodeStatus.DRAINING and not node.leaving):
            draft.because(CauseKind.NODE_LEAVING, node.node_id, str(record.coordinates))
            draft.add(NodeDraining(node.node_id, node.incarnation, now_ms))
    elif node.status is not NodeStatus.LEFT:
        draft.because(CauseKind.NODE_LEFT, node.node_id, str(record.coordinates))
        draft.add(NodeRemoved(node.node_id, node.incarnation, now_ms))
    return None


def another_process(node: Node) -> tuple[str, str]:
    """The refusal of a record that another process than the admitted one sent under the same incarnation."""
    detail = (
        f"node {node.node_id!r}: another process was admitted with incarnation {node.incarnation}; this one has to end"
    )
    return ANOTHER_PROCESS, detail
