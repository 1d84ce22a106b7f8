"""Judges whether nodes were rightly fenced for silence, from the heartbeats that Kafka acknowledged and the decisions.

It works out the silence for itself: from the records of the node's partition, in their order, up to where the decision
had read. What a node sent and Kafka acknowledged stands there. Silence counts from the append of the last heartbeat, as
in the core (:func:`controlplane.core.membership.log_time.observe_partition`). Of the time between two ticks at most
:data:`controlplane.config.MAX_TICK_GAP_MS` counts, so that a clock that is stepped makes no silence.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from controlplane.codec.inputs import decode_input
from controlplane.config import HEARTBEATS, MAX_TICK_GAP_MS
from controlplane.core.cluster.policy import ClusterPolicy
from controlplane.core.log.decision import Decision
from controlplane.core.membership.events import FencingCause, NodeFenced
from controlplane.core.membership.inputs import Heartbeat, Tick
from controlplane.core.values.identifiers import TopicPartition
from controlplane.core.values.partitioning import partition_of
from controlplane.core.values.positions import position_key
from controlplane.errors import InvalidInputError
from controlplane.ports import RawRecord


class FencingVerdict(NamedTuple):
    """What was judged.

    Attributes:
        fenced: how many nodes were fenced for silence.
        wrong: a sentence each for those that were not silent, or were too many.
    """

    fenced: int
    wrong: tuple[str, ...]


def judge_fencings(
    decisions: Sequence[Decision], heartbeats: Iterable[RawRecord], nodes: int, policy: ClusterPolicy | None = None
) -> FencingVerdict:
    """Judge every fencing for silence.

    Args:
        decisions: the decision log.
        heartbeats: every record of the topic that is kept, in order per partition. A fencing of which the records are
            gone is not judged for silence.
        nodes: how many nodes the cluster has at most, of which a part may be fenced within a window.
        policy: the cluster's, throughout.
    """
    rules = policy or ClusterPolicy()
    partitions: defaultdict[int, list[RawRecord]] = defaultdict(list)
    for record in heartbeats:
        partitions[record.partition].append(record)
    fencings = [
        (decision, event)
        for decision in decisions
        for event in decision.events
        if isinstance(event, NodeFenced) and event.cause is FencingCause.SILENCE
    ]
    wrong = [*_unheard(fencings, partitions, rules), *_too_many([event for _, event in fencings], nodes, rules)]
    return FencingVerdict(len(fencings), tuple(wrong))


def _unheard(
    fencings: Sequence[tuple[Decision, NodeFenced]], partitions: dict[int, list[RawRecord]], rules: ClusterPolicy
) -> Iterator[str]:
    for decision, event in fencings:
        home = partition_of(event.node_id.encode(), max(partitions, default=0) + 1)
        upto = decision.positions[position_key(TopicPartition(HEARTBEATS, home))]
        silence_ms = _silence_ms([each for each in partitions[home] if each.offset < upto], event)
        if silence_ms is not None and silence_ms <= rules.silence_limit_ms:
            yield (
                f"seq {decision.seq} fenced {event.node_id} of incarnation {event.incarnation}, whose last heartbeat "
                f"was acknowledged {silence_ms} ms before, at heartbeats[{home}] before offset {upto}"
            )


def _silence_ms(records: Sequence[RawRecord], event: NodeFenced) -> int | None:
    """Log time from the last heartbeat of the incarnation to the last tick; None if no heartbeat of it is kept."""
    silence_ms: int | None = None
    ticked_ms: int | None = None
    for record in records:
        try:
            payload = decode_input(HEARTBEATS, record).payload
        except InvalidInputError:
            continue
        if isinstance(payload, Heartbeat) and (payload.node_id, payload.incarnation) == (
            event.node_id,
            event.incarnation,
        ):
            # The gap in which the heartbeat stands counts from it on: the next tick adds the whole gap.
            silence_ms = -_gap_ms(ticked_ms, record)
        elif isinstance(payload, Tick):
            if silence_ms is not None:
                silence_ms += _gap_ms(ticked_ms, record)
            ticked_ms = record.append_time_ms
    return silence_ms


def _gap_ms(ticked_ms: int | None, record: RawRecord) -> int:
    """The log time from the last tick to a record; 0 before the first tick."""
    return 0 if ticked_ms is None else min(max(0, record.append_time_ms - ticked_ms), MAX_TICK_GAP_MS)


def _too_many(fencings: Sequence[NodeFenced], nodes: int, rules: ClusterPolicy) -> Iterator[str]:
    """The promise: within any window at most a part of the nodes, and at least one may be."""
    promise = max(1, int(rules.protected_ratio * nodes))
    for last in fencings:
        window = [each for each in fencings if last.at_ms - rules.protection_window_ms <= each.at_ms <= last.at_ms]
        if len(window) > promise:
            names = ", ".join(each.node_id for each in window)
            yield f"{names} were fenced within {rules.protection_window_ms} ms; of {nodes} nodes {promise} may be"
