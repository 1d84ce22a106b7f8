"""Reading a cluster from outside: its routing table, its last decisions, its nodes' last heartbeats.

Nothing here writes. The functions take a :class:`LogReader`, so they work on the in-memory log too.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from controlplane.adapters.system_clock import SystemClock
from controlplane.codec.decisions import DecisionAssembler
from controlplane.codec.framing import Framing
from controlplane.codec.inputs import decode_input
from controlplane.config import DECISIONS, HEARTBEATS, ROUTING_TABLE, ClusterConfig, KafkaConfig, SofaLeaseConfig
from controlplane.core.cluster.events import TermOpened
from controlplane.core.log.decision import Decision
from controlplane.core.membership.inputs import Heartbeat
from controlplane.core.routing.replica import RoutingTable
from controlplane.core.values.identifiers import NodeId, TopicPartition
from controlplane.errors import InvalidInputError, LogContinuityError, LogUnavailableError
from controlplane.log_reading.deadlines import StallWatch
from controlplane.ports import LeaseStore, LockStore, LogReader, RawRecord
from controlplane.table_follower import TableFollower

READ_TIMEOUT_MS: Final = 15_000
"""How long a reading command waits for the next batch before it calls the log unavailable."""
LEASE_LOOK_TIMEOUT_MS: Final = 2_000
"""For a request to Redis by somebody who only looks; a leader is less patient."""
_POLL_MS: Final = 200
_BATCH: Final = 2_000
_DECISIONS_PLACE: Final = TopicPartition(DECISIONS, 0)
_FIRST_DECISIONS: Final = 64
_FIRST_HEARTBEATS: Final = 256


def open_reader(cluster: ClusterConfig, kafka: KafkaConfig) -> LogReader:
    """A reader of the cluster's topics in Kafka; the caller closes it."""
    from controlplane.adapters.kafka_log import KafkaLogReader

    return KafkaLogReader(cluster, kafka)


@dataclass(frozen=True, slots=True)
class LoggedDecision:
    """A decision with the place of its last part in ``decisions`` and the time at which the broker appended it."""

    decision: Decision
    offset: int
    append_time_ms: int


def read_routing_table(reader: LogReader, timeout_ms: int = READ_TIMEOUT_MS) -> RoutingTable | None:
    """The newest whole table; None if the cluster has none yet.

    Raises:
        LogUnavailableError: the log did not answer.
        LogContinuityError: the topic holds rows of more than one log, or rows that no marker confirms.
    """
    follower = TableFollower(reader)
    watch = StallWatch(SystemClock(), timeout_ms)
    while not (progress := follower.step(_POLL_MS)).ended:
        if watch.is_stalled(progress=bool(progress.tables)):
            raise LogUnavailableError(f"the end of {ROUTING_TABLE}[0] was not reached within {timeout_ms} ms")
    return follower.table


def decisions_backwards(
    reader: LogReader, timeout_ms: int = READ_TIMEOUT_MS, before: int | None = None
) -> Iterator[LoggedDecision]:
    """The decisions from the newest to the oldest, read from the end in windows that grow while more are asked for.

    With ``before``, an offset at which a decision begins, only those that stand before it.

    Raises:
        LogUnavailableError: the log did not answer.
    """
    oldest = reader.start_offsets(DECISIONS)[_DECISIONS_PLACE]
    upper = reader.end_offsets(DECISIONS)[_DECISIONS_PLACE] if before is None else before
    window = _FIRST_DECISIONS
    while upper > oldest:
        lower = max(oldest, upper - window)
        window *= 2
        records = _read_range(reader, _DECISIONS_PLACE, lower, upper, timeout_ms)
        if records and lower > oldest:
            # The parts of a decision share their key, and the first one here may begin before this window.
            first_key = records[0].key
            records = [record for record in records if record.key != first_key]
            upper = records[0].offset if records else upper
        else:
            upper = lower
        yield from reversed(_assemble(records))


def read_last_decisions(reader: LogReader, count: int, timeout_ms: int = READ_TIMEOUT_MS) -> list[LoggedDecision]:
    """The last ``count`` decisions, oldest first; fewer if the log holds fewer.

    Raises:
        LogUnavailableError: the log did not answer.
    """
    newest_first = decisions_backwards(reader, timeout_ms)
    found = [logged for logged, _ in zip(newest_first, range(count), strict=False)]
    return found[::-1]


def read_decisions(
    reader: LogReader, timeout_ms: int = READ_TIMEOUT_MS, start_offset: int | None = None
) -> Iterator[LoggedDecision]:
    """The decisions from the oldest that is kept, or from where one begins, to the present end.

    Raises:
        LogUnavailableError: the log did not answer.
        LogContinuityError: a record is no decision, or a part of one is missing.
    """
    assembler = DecisionAssembler()
    offset = 0
    positions = reader.start_offsets(DECISIONS) if start_offset is None else {_DECISIONS_PLACE: start_offset}
    for record in _read(reader, positions, timeout_ms):
        offset = record.offset
        yield from _assemble([record], assembler)
    if assembler.within_decision:
        raise LogContinuityError(f"{DECISIONS}[0]@{offset}: the log ends within a decision, whose last part is missing")


class DecisionFollower:
    """Reads decisions as they are committed."""

    def __init__(self, reader: LogReader, next_offset: int | None = None) -> None:
        """Begin where a decision begins, or behind what is there now; from here on the reader is the follower's."""
        self._reader = reader
        self._assembler = DecisionAssembler()
        reader.assign(reader.end_offsets(DECISIONS) if next_offset is None else {_DECISIONS_PLACE: next_offset})

    def poll(self, timeout_ms: int) -> list[LoggedDecision]:
        """The decisions that came meanwhile; empty after ``timeout_ms``."""
        return _assemble(self._reader.poll(_BATCH, timeout_ms).records, self._assembler)

    def wait_for(self, wanted: Callable[[LoggedDecision], bool], timeout_ms: int) -> LoggedDecision | None:
        """The first decision from here on that is wanted; None when the time is over."""
        deadline = time.monotonic() + timeout_ms / 1_000
        while time.monotonic() < deadline:
            for logged in self.poll(_POLL_MS):
                if wanted(logged):
                    return logged
        return None


@dataclass(frozen=True, slots=True)
class LastHeartbeat:
    """The newest heartbeat of a node and when the broker appended it."""

    heartbeat: Heartbeat
    append_time_ms: int


@dataclass(frozen=True, slots=True)
class HeartbeatTail:
    """The end of ``heartbeats``.

    Attributes:
        now_ms: the greatest append time of a tick or heartbeat in it; 0 if the topic is empty.
        last: the newest heartbeat of each node that was found.
    """

    now_ms: int
    last: Mapping[NodeId, LastHeartbeat]


def read_last_heartbeats(
    reader: LogReader,
    wanted: AbstractSet[NodeId],
    longest_ms: int,
    timeout_ms: int = READ_TIMEOUT_MS,
    framing: Framing | None = None,
) -> HeartbeatTail:
    """The last heartbeats of the wanted nodes, read from the end of each partition backwards.

    Args:
        reader: reads the cluster's log.
        wanted: read back only until each of these is found,
        longest_ms: or so much log time was read, or the start of the topic is reached.
        timeout_ms: how long to wait for the next batch.
        framing: how heartbeats are framed; None knows no registry's schema ids.

    Raises:
        LogUnavailableError: the log did not answer.
    """
    starts = reader.start_offsets(HEARTBEATS)
    ends = reader.end_offsets(HEARTBEATS)
    window = _FIRST_HEARTBEATS
    while True:
        positions = {place: max(starts[place], end - window) for place, end in ends.items()}
        records = list(_read(reader, positions, timeout_ms))
        tail = _heartbeat_tail(records, framing)
        at_start = all(positions[place] == starts[place] for place in positions)
        oldest_ms = _latest_first_append_ms(records)
        if at_start or wanted <= tail.last.keys() or oldest_ms < tail.now_ms - longest_ms:
            return tail
        window *= 4


def _latest_first_append_ms(records: Sequence[RawRecord]) -> int:
    """The time from which on every partition has been read."""
    first: dict[int, int] = {}
    for record in records:
        first.setdefault(record.partition, record.append_time_ms)
    return max(first.values(), default=0)


def _heartbeat_tail(records: Sequence[RawRecord], framing: Framing | None) -> HeartbeatTail:
    last: dict[NodeId, LastHeartbeat] = {}
    now_ms = 0
    for record in records:
        now_ms = max(now_ms, record.append_time_ms)
        try:
            payload = decode_input(HEARTBEATS, record, framing).payload
        except InvalidInputError:
            continue  # the leader makes a dead letter of it; a reader has only to pass it by
        if isinstance(payload, Heartbeat):
            last[payload.node_id] = LastHeartbeat(payload, record.append_time_ms)
    return HeartbeatTail(now_ms, last)


def _assemble(records: Sequence[RawRecord], assembler: DecisionAssembler | None = None) -> list[LoggedDecision]:
    assembling = assembler or DecisionAssembler()
    found = []
    for record in records:
        decision = None if record.value is None else assembling.add(record.value)
        if decision is not None:
            found.append(LoggedDecision(decision, record.offset, record.append_time_ms))
    return found


def _read_range(reader: LogReader, place: TopicPartition, lower: int, upper: int, timeout_ms: int) -> list[RawRecord]:
    """The records of one partition with ``lower`` <= offset < ``upper``."""
    found = []
    for record in _read(reader, {place: lower}, timeout_ms, min(_BATCH, upper - lower)):
        if record.offset >= upper:
            break
        found.append(record)
    return found


def _read(
    reader: LogReader, positions: Mapping[TopicPartition, int], timeout_ms: int, batch_size: int = _BATCH
) -> Iterator[RawRecord]:
    """Records from the positions to the present end of each partition, and perhaps some that came meanwhile.

    Where the end is, is asked first: somebody who waits for a moment in which nothing follows may wait for long in a
    topic that is written to all the time. Behind a transaction's marker there is no record, so there it is that moment.
    """
    ends: dict[TopicPartition, int] = {}
    for topic in {place.topic for place in positions}:
        ends |= reader.end_offsets(topic)
    reader.assign(positions)
    missing = {place for place, position in positions.items() if position < ends[place]}
    watch = StallWatch(SystemClock(), timeout_ms)
    while missing:
        batch = reader.poll(batch_size, _POLL_MS)
        yield from batch.records
        # Ends are told again and again: those of other partitions must not hide that nothing comes of this one.
        has_news = bool(batch.records or missing & batch.ended)
        missing -= batch.ended
        read_to = {TopicPartition(record.topic, record.partition): record.offset for record in batch.records}
        missing -= {place for place, offset in read_to.items() if offset + 1 >= ends[place]}
        if watch.is_stalled(progress=has_news):
            places = ", ".join(f"{place.topic}[{place.partition}]" for place in sorted(missing))
            raise LogUnavailableError(f"the end of {places} was not reached within {timeout_ms} ms")


@contextmanager
def lease_store(cluster: ClusterConfig, redis_url: str) -> Iterator[LeaseStore]:
    """The cluster's lease in Redis, to look at; closed at the end."""
    from controlplane.adapters.redis_lease import RedisLeaseStore

    store = RedisLeaseStore(cluster, redis_url, LEASE_LOOK_TIMEOUT_MS)
    try:
        yield store
    finally:
        store.close()


@contextmanager
def lock_store(cluster: ClusterConfig, redis_url: str, lock: SofaLeaseConfig) -> Iterator[LockStore]:
    """A lock of lease profile ``sofa`` in Redis, and a look at all of them; closed at the end."""
    from controlplane.adapters.redis_lock import RedisLockStore

    store = RedisLockStore(cluster, redis_url, lock.data_center, lock.lock_name, LEASE_LOOK_TIMEOUT_MS)
    try:
        yield store
    finally:
        store.close()


def last_term_opened(reader: LogReader, timeout_ms: int = READ_TIMEOUT_MS) -> LoggedDecision | None:
    """The newest decision that opened a term; None in an empty log.

    Raises:
        LogUnavailableError: the log did not answer.
    """
    for logged in decisions_backwards(reader, timeout_ms):
        if any(isinstance(event, TermOpened) for event in logged.decision.events):
            return logged
    return None
