"""Readers of a cluster's routing table, of its last decisions, and of its nodes' last heartbeats."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from itertools import chain, dropwhile
from typing import Final

import structlog

from controlplane.codec.framing import Framing
from controlplane.codec.inputs import decode_input
from controlplane.config import DECISIONS, HEARTBEATS, ROUTING_TABLE
from controlplane.core.cluster.events import TermOpened
from controlplane.core.log.decision import Decision
from controlplane.core.log.snapshots.log_point import LogPoint
from controlplane.core.membership.inputs import Heartbeat
from controlplane.core.routing.replica import RoutingTable
from controlplane.core.values.identifiers import NodeId, Seq, TopicPartition
from controlplane.core.values.positions import DECISIONS_PARTITION
from controlplane.errors import InvalidInputError, LogContinuityError, LogUnavailableError
from controlplane.inspection.source import LogSource
from controlplane.ports import RawRecord
from controlplane.topic_reading.deadlines import StallWatch
from controlplane.topic_reading.decision_stream import DecisionStream
from controlplane.topic_reading.drain import drain, present_ends
from controlplane.topic_reading.table_follower import TableFollower

_POLL_MS: Final = 200
_REPAIR_MS: Final = 5_000
"""How long a command waits for the leader to repair the table."""
_BATCH: Final = 2_000
_FIRST_DECISIONS: Final = 64
_FIRST_HEARTBEATS: Final = 256

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class LoggedDecision:
    """A decision with the offset of its last part in ``decisions`` and the time at which the broker appended it."""

    decision: Decision
    offset: int
    append_time_ms: int


def read_routing_table(source: LogSource) -> RoutingTable | None:
    """The newest whole table; None if the cluster has none yet.

    If foreign records damage the topic, the leader is given some seconds to write the table again. If it does not, the
    last whole table is returned, and a warning is logged.

    Raises:
        LogUnavailableError: the log did not answer, or the topic holds no whole table at all.
        LogContinuityError: a marker with the cluster's log id was forged.
    """
    follower = TableFollower(source.reader)
    watch = StallWatch(source.clock, source.timeout_ms)
    repair = StallWatch(source.clock, min(source.timeout_ms, _REPAIR_MS))
    while not (progress := follower.step(_POLL_MS)).ended:
        if repair.is_stalled(progress=not follower.awaits_repair):
            return _last_table(follower)
        if watch.is_stalled(progress=bool(progress.tables) or follower.awaits_repair):
            raise LogUnavailableError(f"the end of {ROUTING_TABLE}[0] was not reached within {source.timeout_ms} ms")
    return follower.table


def _last_table(follower: TableFollower) -> RoutingTable:
    problem = (
        f"{ROUTING_TABLE}[0] holds foreign records and shows no whole table: the leader writes it again within some "
        "seconds (is there one? see 'controlplane leader show')"
    )
    if follower.table is None:
        raise LogUnavailableError(problem)
    _log.warning("routing table is the last one that was whole", epoch=follower.table.epoch, problem=problem)
    return follower.table


def decisions_backwards(source: LogSource, before: int | None = None) -> Iterator[LoggedDecision]:
    """The decisions from the newest to the oldest, read from the end in windows that grow as the caller reads on.

    With ``before``, an offset at which a decision begins, only those before it.

    Raises:
        LogUnavailableError: the log did not answer.
    """
    oldest = source.reader.start_offsets(DECISIONS)[DECISIONS_PARTITION]
    log_id = log_id_of(source)
    upper = source.reader.end_offsets(DECISIONS)[DECISIONS_PARTITION] if before is None else before
    window = _FIRST_DECISIONS
    while upper > oldest:
        lower = max(oldest, upper - window)
        window *= 2
        stream = DecisionStream(log_id)
        records = _read_range(source, DECISIONS_PARTITION, lower, upper)
        if lower > oldest:
            records = _from_first_of_log(records, stream)
        if records and lower > oldest:
            # The parts of a decision share their key, and the first one here may begin before this window.
            first_key = records[0].key
            records = _from_first_of_log([record for record in records if record.key != first_key], stream)
            upper = records[0].offset if records else upper
        else:
            upper = lower
        yield from reversed(_assemble(records, stream))


def read_last_decisions(source: LogSource, count: int) -> list[LoggedDecision]:
    """The last ``count`` decisions, oldest first; fewer if the log holds fewer.

    Raises:
        LogUnavailableError: the log did not answer.
    """
    newest_first = decisions_backwards(source)
    found = [logged for logged, _ in zip(newest_first, range(count), strict=False)]
    return found[::-1]


def log_id_of(source: LogSource) -> str:
    """The id of the decision log: that of the oldest decision that is kept; empty if there is none.

    Raises:
        LogUnavailableError: the log did not answer.
        UnsupportedFeatureLevelError: a newer version wrote it.
    """
    stream = stream_from_oldest(source)
    for record in chain.from_iterable(
        drain(source.reader, source.reader.start_offsets(DECISIONS), source.limits, max_records=_FIRST_DECISIONS)
    ):
        stream.take(record)
        if stream.log_id:
            break
    return stream.log_id


def stream_from_oldest(source: LogSource) -> DecisionStream:
    """A stream for the decisions from the oldest that is kept. In a topic that lost no record it is decision 1.

    Raises:
        LogUnavailableError: the log did not answer.
    """
    whole = source.reader.start_offsets(DECISIONS)[DECISIONS_PARTITION] == 0
    return DecisionStream(next_seq=Seq(1) if whole else None)


def read_decisions(
    source: LogSource, began: LogPoint | None = None, stream: DecisionStream | None = None
) -> Iterator[LoggedDecision]:
    """The decisions from the oldest that is kept, or from a place in the log, to the end that the log has now.

    The end is the last stable offset. A leader commits all parts of a decision in one transaction, so only whole
    decisions are before it. A decision that is committed during the reading comes after it and is left out.
    Foreign records are skipped. Without a place in the log, the first decision determines the log id.

    Args:
        source: the cluster's log.
        began: where to begin; None begins with the oldest decision.
        stream: takes the records, and counts the skipped ones; None creates one that begins at ``began``.

    Raises:
        LogUnavailableError: the log did not answer.
        LogContinuityError: a part of a decision is missing, or the log ends before the place.
        UnsupportedFeatureLevelError: a newer version wrote it.
    """
    if stream is None:
        state = None if began is None else began.state
        stream = stream_from_oldest(source) if state is None else DecisionStream(state.log_id, Seq(state.seq + 1))
    positions = source.reader.start_offsets(DECISIONS) if began is None else {DECISIONS_PARTITION: began.next_offset}
    end = present_ends(source.reader, positions)
    offset = 0
    # Record by record, so that decisions before an unreadable one are yielded before the error is raised.
    for record in chain.from_iterable(drain(source.reader, positions, source.limits, end)):
        if record.offset >= end[DECISIONS_PARTITION]:
            break
        offset = record.offset
        yield from _assemble([record], stream)
    if stream.within_decision:
        raise LogContinuityError(f"{DECISIONS}[0]@{offset}: the log ends within a decision, whose last part is missing")


class DecisionFollower:
    """Reads decisions as they are committed."""

    def __init__(self, source: LogSource, next_offset: int | None = None) -> None:
        """Begin at the first record of a decision, or after the present end. The follower owns the reader."""
        self._source = source
        self._stream = DecisionStream(log_id_of(source))
        reader = source.reader
        reader.assign(reader.end_offsets(DECISIONS) if next_offset is None else {DECISIONS_PARTITION: next_offset})

    def poll(self, timeout_ms: int) -> list[LoggedDecision]:
        """The decisions since the last call; empty after ``timeout_ms``."""
        return _assemble(self._source.reader.poll(_BATCH, timeout_ms).records, self._stream)

    def wait_for(self, wanted: Callable[[LoggedDecision], bool], timeout_ms: int) -> LoggedDecision | None:
        """The first further decision that is wanted; None after ``timeout_ms``."""
        deadline_ms = self._source.clock.monotonic_ms() + timeout_ms
        while self._source.clock.monotonic_ms() < deadline_ms:
            for logged in self.poll(_POLL_MS):
                if wanted(logged):
                    return logged
        return None


@dataclass(frozen=True, slots=True)
class LastHeartbeat:
    """The newest heartbeat of a node, its partition, and when that partition's broker appended it."""

    heartbeat: Heartbeat
    partition: int
    append_time_ms: int


@dataclass(frozen=True, slots=True)
class HeartbeatTail:
    """The end of ``heartbeats``.

    Attributes:
        newest_ms: for each partition the greatest append time of a tick or heartbeat in it.
        last: the newest heartbeat of each node that was found.
        tick_ms: the greatest append time of a tick; None if none was found.
        passed_by: how many records were passed by, by the reason for which they cannot be used.
    """

    newest_ms: Mapping[int, int]
    last: Mapping[NodeId, LastHeartbeat]
    tick_ms: int | None = None
    passed_by: Mapping[str, int] = field(default_factory=dict)

    @property
    def now_ms(self) -> int:
        """The greatest append time of all partitions; 0 if the topic is empty."""
        return max(self.newest_ms.values(), default=0)

    def age_ms(self, last: LastHeartbeat) -> int:
        """How long ago a heartbeat was appended, by its own partition: another may have another broker's clock."""
        return self.newest_ms[last.partition] - last.append_time_ms


def read_last_heartbeats(source: LogSource, wanted: AbstractSet[NodeId], longest_ms: int) -> HeartbeatTail:
    """The last heartbeats of the wanted nodes, read backwards from the end of each partition.

    Reading stops when each wanted node is found, when ``longest_ms`` were read, or at the start of the topic.

    Args:
        source: the cluster's log.
        wanted: the ids of the nodes.
        longest_ms: how much log time to read at most.

    Raises:
        LogUnavailableError: the log did not answer.
    """
    starts = source.reader.start_offsets(HEARTBEATS)
    ends = source.reader.end_offsets(HEARTBEATS)
    window = _FIRST_HEARTBEATS
    while True:
        positions = {place: max(starts[place], end - window) for place, end in ends.items()}
        records = list(chain.from_iterable(drain(source.reader, positions, source.limits)))
        tail = _heartbeat_tail(records, source.framing)
        at_start = all(positions[place] == starts[place] for place in positions)
        if at_start or wanted <= tail.last.keys() or _read_back_ms(records, tail) > longest_ms:
            return tail
        window *= 4


def _read_back_ms(records: Sequence[RawRecord], tail: HeartbeatTail) -> int:
    """How much time of each partition was read at least; 0 without records."""
    first: dict[int, int] = {}
    for record in records:
        first.setdefault(record.partition, record.append_time_ms)
    return min((tail.newest_ms[partition] - first_ms for partition, first_ms in first.items()), default=0)


def _heartbeat_tail(records: Sequence[RawRecord], framing: Framing | None) -> HeartbeatTail:
    last: dict[NodeId, LastHeartbeat] = {}
    newest_ms: dict[int, int] = {}
    ticks_ms: list[int] = []
    passed_by = Counter[str]()
    for record in records:
        newest_ms[record.partition] = max(newest_ms.get(record.partition, 0), record.append_time_ms)
        try:
            payload = decode_input(HEARTBEATS, record, framing).payload
        except InvalidInputError as error:
            # The leader makes a dead letter of it; a reader has only to pass it by, and to say so.
            passed_by[error.reason] += 1
            continue
        if isinstance(payload, Heartbeat):
            last[payload.node_id] = LastHeartbeat(payload, record.partition, record.append_time_ms)
        else:
            ticks_ms.append(record.append_time_ms)
    return HeartbeatTail(newest_ms, last, max(ticks_ms, default=None), passed_by)


def _assemble(records: Sequence[RawRecord], stream: DecisionStream) -> list[LoggedDecision]:
    found = []
    for record in records:
        decision = stream.take(record)
        if decision is not None:
            found.append(LoggedDecision(decision, record.offset, record.append_time_ms))
    return found


def _from_first_of_log(records: Sequence[RawRecord], stream: DecisionStream) -> list[RawRecord]:
    return list(dropwhile(lambda record: not stream.belongs(record), records))


def _read_range(source: LogSource, place: TopicPartition, lower: int, upper: int) -> list[RawRecord]:
    """The records of one partition with ``lower`` <= offset < ``upper``."""
    batches = drain(source.reader, {place: lower}, source.limits, {place: upper}, min(_BATCH, upper - lower))
    return [record for record in chain.from_iterable(batches) if record.offset < upper]


def last_term_opened(source: LogSource) -> LoggedDecision | None:
    """The newest decision that opened a term; None in an empty log.

    Raises:
        LogUnavailableError: the log did not answer.
    """
    for logged in decisions_backwards(source):
        if any(isinstance(event, TermOpened) for event in logged.decision.events):
            return logged
    return None
