"""Judges overlaps by the log: after a planned move there is none, after a death or a replacement a bounded one.

``docs/explanation/fencing.md`` names the bounds. A node that lost what it had because it was fenced for silence has
stopped before. Only if it was heard after what the leader had read then, the table may have been whole to it without
its fencing, and it serves for as long as that reading is valid.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from controlplane.codec.inputs import decode_input
from controlplane.config import HEARTBEATS
from controlplane.core.log.decision import Decision
from controlplane.core.membership.events import FencingCause, NodeAdmitted, NodeFenced
from controlplane.core.membership.inputs import Heartbeat
from controlplane.core.values.identifiers import TopicPartition
from controlplane.core.values.partitioning import partition_of
from controlplane.core.values.positions import position_key
from controlplane.errors import InvalidInputError
from controlplane.ports import RawRecord
from tests.chaos.overlaps import Overlap
from tests.helpers.fencing_bounds import Bounds

Loss = NodeFenced | NodeAdmitted
"""The events by which a node loses what it has at once: it was fenced, or another process has taken its place."""


class OverlapVerdict(NamedTuple):
    """What was judged.

    Attributes:
        allowed: a sentence for each overlap within a bound.
        wrong: a sentence for each beyond it.
    """

    allowed: tuple[str, ...]
    wrong: tuple[str, ...]


def judge_overlaps(
    overlaps: Sequence[Overlap], decisions: Sequence[Decision], heartbeats: Iterable[RawRecord], bounds: Bounds
) -> OverlapVerdict:
    """Judge each overlap by what the log says of the former process.

    Args:
        overlaps: what was found.
        decisions: the decision log.
        heartbeats: every record of the topic that is kept, in order per partition.
        bounds: what is promised of these brokers.
    """
    records = list(heartbeats) if overlaps else []
    allowed: list[str] = []
    wrong: list[str] = []
    for overlap in overlaps:
        losses = list(_losses(overlap, decisions))
        allowed_ms = max((_allowed_ms(*loss, records, bounds) for loss in losses), default=0)
        why = ", ".join(_said(*loss) for loss in losses) or "by a planned move, after which there is none"
        sentence = f"{overlap}. {overlap.former.node_id} lost it {why}; allowed are {allowed_ms} ms"
        # A moment that is certain is no time: it is wrong as well where none is allowed.
        is_allowed = bool(losses) and 0 < allowed_ms >= overlap.length_ms
        (allowed if is_allowed else wrong).append(sentence)
    return OverlapVerdict(tuple(allowed), tuple(wrong))


def _losses(overlap: Overlap, decisions: Sequence[Decision]) -> Iterator[tuple[Decision, Loss]]:
    """How the former process's node lost everything at once between the epochs of the two tokens."""
    for decision in decisions:
        if overlap.former_token.since_epoch < decision.epoch <= overlap.later_token.since_epoch:
            for event in decision.events:
                if _node_of(event) == overlap.former.node_id and isinstance(event, Loss):
                    yield decision, event


def _node_of(event: object) -> str | None:
    match event:
        case NodeFenced(node_id=node_id):
            return node_id
        case NodeAdmitted(node=node):
            return node.node_id
        case _:
            return None


def _allowed_ms(decision: Decision, event: Loss, records: Sequence[RawRecord], bounds: Bounds) -> int:
    if (
        isinstance(event, NodeFenced)
        and event.cause is FencingCause.SILENCE
        and not _was_heard(decision, event, records)
    ):
        return bounds.overlap_after_silence_ms
    return bounds.overlap_by_former_leader_ms or bounds.overlap_after_move_ms


def _was_heard(decision: Decision, event: NodeFenced, records: Sequence[RawRecord]) -> bool:
    """Whether a heartbeat of the fenced process was appended behind what the decision had read."""
    partitions: defaultdict[int, list[RawRecord]] = defaultdict(list)
    for record in records:
        partitions[record.partition].append(record)
    home = partition_of(event.node_id.encode(), max(partitions, default=0) + 1)
    read_to = decision.positions.get(position_key(TopicPartition(HEARTBEATS, home)), 0)
    return any(_is_beat(each, event) for each in partitions[home] if each.offset >= read_to)


def _is_beat(record: RawRecord, event: NodeFenced) -> bool:
    try:
        payload = decode_input(HEARTBEATS, record).payload
    except InvalidInputError:
        return False
    return isinstance(payload, Heartbeat) and (payload.node_id, payload.incarnation) == (
        event.node_id,
        event.incarnation,
    )


def _said(decision: Decision, event: Loss) -> str:
    if isinstance(event, NodeFenced):
        return f"when it was fenced ({event.cause.value}, seq {decision.seq}, epoch {decision.epoch})"
    return f"when a process of it was admitted (seq {decision.seq}, epoch {decision.epoch})"
