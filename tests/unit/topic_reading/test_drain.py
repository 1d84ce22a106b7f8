"""Reading partitions to an end: which one, and when it is given up."""

from collections.abc import Iterable, Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.config import HEARTBEATS, ClusterConfig
from controlplane.core.values.identifiers import TopicPartition
from controlplane.errors import LogContinuityError, LogUnavailableError
from controlplane.ports import OutgoingRecord, PartitionEnd, PolledBatch, RawRecord
from controlplane.testing import (
    MemoryBroker,
    MemoryEventWriter,
    MemoryLogReader,
    MemoryTransactionalWriter,
    VirtualClock,
)
from controlplane.topic_reading.drain import ReadLimits, drain

CLUSTER = ClusterConfig("c")
FIRST, SECOND = (TopicPartition(HEARTBEATS, number) for number in (0, 1))


class TickingReader(MemoryLogReader):
    """Every poll takes a while, as a poll that brings nothing does."""

    clock: VirtualClock
    poll_takes_ms = 50
    polls = 0
    assignments = 0

    def assign(self, positions: Mapping[TopicPartition, int]) -> None:
        """As the reader does, counted."""
        self.assignments += 1
        super().assign(positions)

    def poll(self, max_records: int, timeout_ms: int) -> PolledBatch:
        """As the reader does, later."""
        self.polls += 1
        self.clock.advance(self.poll_takes_ms)
        return super().poll(max_records, timeout_ms)


class Topic:
    """Two partitions of ``heartbeats``, with a clock of their own."""

    def __init__(self, *, reader: type[TickingReader] = TickingReader) -> None:
        self.clock = VirtualClock()
        self.broker = MemoryBroker(self.clock)
        self.broker.create_topic(CLUSTER.topic(HEARTBEATS), 2)
        self.reader = reader(CLUSTER, self.broker)
        self.reader.clock = self.clock
        self._events = MemoryEventWriter(CLUSTER, self.broker)

    def append(self, partition: int, count: int = 1) -> None:
        """Append records outside of any transaction."""
        for _ in range(count):
            self._events.send(OutgoingRecord(HEARTBEATS, b"k", b"v", partition))
        self._events.flush(0)

    def commit(self, partition: int, count: int = 1) -> None:
        """Append records in a transaction, which ends with a marker."""
        writer = MemoryTransactionalWriter(CLUSTER, self.broker)
        writer.open()
        writer.commit([OutgoingRecord(HEARTBEATS, b"k", b"v", partition)] * count)

    def limits(self, stall_ms: int = 1_000, total_ms: int | None = None) -> ReadLimits:
        """With the topic's clock."""
        return ReadLimits(self.clock, stall_ms, total_ms)


def offsets(batches: Iterable[Sequence[RawRecord]]) -> list[tuple[int, int]]:
    """Partition and offset of each record."""
    return [(record.partition, record.offset) for records in batches for record in records]


@given(
    st.lists(st.tuples(st.booleans(), st.integers(0, 1), st.integers(1, 5)), max_size=8),
    st.integers(1, 4),
    st.integers(0, 3),
)
def test_everything_up_to_the_present_end_comes_once_and_in_order(
    written: list[tuple[bool, int, int]], max_records: int, begin: int
) -> None:
    """Whatever the batches are, in transactions or not, and wherever the reading begins."""
    topic = Topic()
    for in_transaction, partition, count in written:
        (topic.commit if in_transaction else topic.append)(partition, count)
    ends = topic.reader.end_offsets(HEARTBEATS)
    starts = {place: min(begin, end) for place, end in ends.items()}
    whole = MemoryLogReader(CLUSTER, topic.broker)
    whole.assign(starts)
    expected = []
    while records := whole.poll(100, 0).records:
        expected += [(record.partition, record.offset) for record in records]
    found = offsets(drain(topic.reader, starts, topic.limits(), max_records=max_records))
    assert sorted(found) == sorted(expected)
    assert [offset for partition, offset in found if partition == 0] == sorted(
        offset for partition, offset in found if partition == 0
    )


def test_nothing_to_read_asks_for_nothing() -> None:
    """An empty topic costs no poll, whose answer may take a while, and no assignment, which would delay the next."""
    topic = Topic()
    assert offsets(drain(topic.reader, {FIRST: 0, SECOND: 0}, topic.limits())) == []
    topic.append(0, 3)
    assert offsets(drain(topic.reader, {FIRST: 3}, topic.limits())) == []
    assert (topic.reader.polls, topic.reader.assignments) == (0, 0)


def test_a_wanted_end_before_the_last_record_is_enough() -> None:
    """What follows may come in the last batch, and is not waited for."""
    topic = Topic()
    topic.append(0, 10)
    found = offsets(drain(topic.reader, {FIRST: 2}, topic.limits(), until={FIRST: 5}, max_records=1))
    assert found == [(0, 2), (0, 3), (0, 4)]


def test_an_end_behind_a_marker_is_reached() -> None:
    """The offset of a transaction's marker holds no record: only the reported end says that nothing is missing."""
    topic = Topic()
    topic.commit(0, 2)
    assert topic.reader.end_offsets(HEARTBEATS)[FIRST] == 3
    assert offsets(drain(topic.reader, {FIRST: 0}, topic.limits())) == [(0, 0), (0, 1)]


def test_the_end_of_a_topic_that_never_rests_is_found() -> None:
    """The end was asked for before: what came meanwhile is not waited for."""

    class Restless(TickingReader):
        def poll(self, max_records: int, timeout_ms: int) -> PolledBatch:
            batch = super().poll(max_records, timeout_ms)
            topic.append(0)
            assert self.polls < 20, "still reading"
            return PolledBatch(batch.records, {})

    topic = Topic(reader=Restless)
    topic.append(0, 3)
    found = offsets(drain(topic.reader, {FIRST: 0}, topic.limits(), max_records=1))
    assert found == [(0, 0), (0, 1), (0, 2)]


def test_a_log_that_stops_answering_ends_the_wait() -> None:
    """The message names what is missing, and says for how long nothing came."""
    topic = Topic()
    topic.append(0)
    topic.append(1)
    topic.reader.held_back = [SECOND]
    with pytest.raises(
        LogUnavailableError,
        match=r"the end of heartbeats\[1\] was not reached in 250 ms, the last progress was 200 ms ago",
    ):
        list(drain(topic.reader, {FIRST: 0, SECOND: 0}, topic.limits(stall_ms=200)))


@pytest.mark.timeout(20)
def test_news_of_partitions_that_are_read_hide_no_silence_of_another() -> None:
    """Ends that are reported again are none either: the port allows them as often as it is polled."""

    class Retelling(TickingReader):
        def poll(self, max_records: int, timeout_ms: int) -> PolledBatch:
            topic.append(0)
            batch = super().poll(max_records, timeout_ms)
            return PolledBatch(batch.records, {**batch.ended, FIRST: PartitionEnd(0, 0)})

    topic = Topic(reader=Retelling)
    topic.append(0)
    topic.append(1)
    topic.reader.held_back = [SECOND]
    with pytest.raises(LogUnavailableError, match=r"the end of heartbeats\[1\] was not reached"):
        list(drain(topic.reader, {FIRST: 0, SECOND: 0}, topic.limits(stall_ms=200)))


def test_steady_news_may_not_last_for_ever_where_there_is_a_limit() -> None:
    """A contender has only so long; a question may read a long log for minutes."""
    topic = Topic()
    topic.append(0, 100)
    with pytest.raises(LogUnavailableError, match="was not reached in 500 ms, the last progress was 0 ms ago"):
        list(drain(topic.reader, {FIRST: 0}, topic.limits(stall_ms=100, total_ms=500), max_records=1))
    assert len(offsets(drain(topic.reader, {FIRST: 0}, topic.limits(stall_ms=100), max_records=1))) == 100


def test_the_end_that_comes_in_the_last_moment_counts() -> None:
    """What has been read is not thrown away because it took long."""
    topic = Topic()
    topic.append(0)
    topic.reader.poll_takes_ms = 10_000
    assert offsets(drain(topic.reader, {FIRST: 0}, topic.limits(stall_ms=100, total_ms=100))) == [(0, 0)]


def test_a_topic_that_ends_before_the_beginning_is_refused() -> None:
    """It was recreated, and its records are others: that there is nothing to read would hide it."""
    topic = Topic()
    topic.append(0, 2)
    with pytest.raises(LogContinuityError, match=r"heartbeats\[0\] ends at offset 2, but 3 is needed: .*recreated"):
        list(drain(topic.reader, {FIRST: 3}, topic.limits()))


def test_offsets_that_are_no_longer_kept_are_refused() -> None:
    """Nothing is passed over in silence."""
    topic = Topic()
    topic.append(0, 5)
    topic.broker.delete_before(CLUSTER.topic(HEARTBEATS), 0, 3)
    with pytest.raises(LogContinuityError):
        list(drain(topic.reader, {FIRST: 1}, topic.limits()))
