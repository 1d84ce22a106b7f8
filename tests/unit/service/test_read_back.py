"""A leader that reads its own decisions back, over logs that were led on, recreated or cut off, or are hard to hear."""

from collections.abc import Mapping

import pytest

from controlplane.config import DECISIONS
from controlplane.core.cluster.policy import ClusterPolicy
from controlplane.core.log.state import State
from controlplane.core.values.identifiers import Term, TopicPartition
from controlplane.errors import FencedError, LogContinuityError, LogUnavailableError
from controlplane.ports import LogReader, OutgoingRecord, PolledBatch
from controlplane.service.follower import LogFollower
from controlplane.service.read_back import ReadBack
from controlplane.testing import MemoryTransactionalWriter, VirtualClock
from controlplane.topic_reading.deadlines import STALL_LIMIT_MS
from tests.helpers.snapshots import SnapshotWorld
from tests.helpers.world import World

LOOKS_FOR_MS = STALL_LIMIT_MS + 2_000


class DeafReader:
    """Reads at most so many records; then it waits for more, and is told of no error."""

    def __init__(self, reader: LogReader, records: int) -> None:
        """Of all that the reader finds, the first ``records``."""
        self._reader = reader
        self._left = records

    def __getattr__(self, name: str) -> object:
        return getattr(self._reader, name)

    def assign(self, positions: Mapping[TopicPartition, int]) -> None:
        """As the reader does."""
        self._reader.assign(positions)

    def poll(self, max_records: int, timeout_ms: int) -> PolledBatch:
        """What the reader finds, or nothing."""
        if not self._left:
            return PolledBatch((), {})
        batch = self._reader.poll(min(max_records, self._left), timeout_ms)
        self._left -= len(batch.records)
        return batch


class Setup:
    """A log, a leader's follower whose first reader hears only its beginning, and a clock."""

    def __init__(self, heard: int) -> None:
        """``heard`` decisions come back, the others are committed as well."""
        self.history = World(ClusterPolicy(slot_count=8))
        self.history.admit("n1", "n2")
        self.history.run(5_000, ("n1",))
        self.log = SnapshotWorld(self.history.decisions)
        self.clock = VirtualClock()
        self.readers = 0
        self.heard = heard
        self.follower = LogFollower(self._reader, self.clock)
        self.follower.poll(0)
        self.barriers = 0
        self.read_back = ReadBack(self.follower, self._write_barrier, self.clock, STALL_LIMIT_MS)

    def look_for(self, milliseconds: int, led: State) -> None:
        """Look ten times a second."""
        for _ in range(0, milliseconds, 100):
            self.clock.advance(100)
            self.read_back.look(led, lambda: True)

    def _write_barrier(self) -> Mapping[TopicPartition, int]:
        self.barriers += 1
        writer = MemoryTransactionalWriter(self.log.cluster, self.log.broker)
        writer.open()
        return writer.write_barrier([OutgoingRecord(DECISIONS, b"barrier", b"barrier", 0)])

    def _reader(self) -> LogReader:
        self.readers += 1
        reader = self.log.reader()
        return DeafReader(reader, self.heard) if self.readers == 1 else reader  # type: ignore[return-value]


def test_a_reader_that_hears_nothing_is_replaced() -> None:
    """The decisions are there; only this reader is not told of them."""
    setup = Setup(heard=2)
    setup.look_for(LOOKS_FOR_MS, setup.history.state)
    assert setup.readers == 2
    assert setup.follower.state == setup.history.state
    setup.look_for(3 * LOOKS_FOR_MS, setup.history.state)
    assert setup.readers == 2


def test_decisions_are_read_back_as_they_come_and_not_a_whole_interval_at_once() -> None:
    """Folding hundreds of rows takes a leader long, and what its nodes report would wait for it once a second."""
    setup = Setup(heard=1_000)
    led = follow_on(setup.history)
    setup.log.commit(setup.history.decisions[-1])
    setup.clock.advance(1)
    assert not setup.read_back.look(led, lambda: True), "what else it looks for can wait"
    assert setup.follower.state == led


def test_a_reading_that_was_put_off_is_tried_again_at_the_interval(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not on each turn of the leader: a request that is not answered takes seconds."""
    setup = Setup(heard=1_000)
    led = follow_on(setup.history)
    polls = 0

    def unanswered(timeout_ms: int) -> bool:
        nonlocal polls
        polls += 1
        raise LogUnavailableError(f"no answer within {timeout_ms} ms")

    monkeypatch.setattr(setup.follower, "poll", unanswered)
    for _ in range(100):
        setup.clock.advance(50)
        setup.read_back.look(led, lambda: False)
    assert polls <= 6


def test_decisions_are_not_missed_while_kafka_acknowledges_nothing() -> None:
    """Kafka is away: a new client would only wait for it, and a leader that gave up would not be replaced."""
    setup = Setup(heard=2)
    for _ in range(0, 3 * LOOKS_FOR_MS, 100):
        setup.clock.advance(100)
        setup.read_back.look(setup.history.state, lambda: False)
    assert setup.readers == 1
    setup.look_for(LOOKS_FOR_MS, setup.history.state)
    assert setup.readers == 2


def test_a_log_that_has_lost_what_was_committed_is_led_no_longer() -> None:
    """Whoever reads it anew finds its end before the leader's last decision."""
    setup = Setup(heard=2)
    committed = follow_on(setup.history)
    with pytest.raises(LogContinuityError, match="decisions were lost, or the topic was recreated"):
        setup.look_for(LOOKS_FOR_MS, committed)


def test_decisions_whose_end_is_not_marked_are_waited_for() -> None:
    """Kafka acknowledges the end of a transaction before its marker is in the topic: readers stop there meanwhile."""
    setup = Setup(heard=1_000)
    topic = setup.log.cluster.topic(DECISIONS)
    setup.log.broker.hold_markers_back(topic, 0)
    led = follow_on(setup.history)
    setup.log.commit(setup.history.decisions[-1])
    setup.look_for(4 * LOOKS_FOR_MS, led)
    assert setup.follower.state.seq == led.seq - 1
    assert setup.barriers == 0
    setup.log.broker.write_markers(topic, 0)
    setup.look_for(1_000, led)
    assert setup.follower.state == led


def test_a_later_term_ends_a_leadership_that_has_nothing_to_commit() -> None:
    """Kafka refuses its next commit; until then nobody else tells it."""
    setup = Setup(heard=1_000)
    led = setup.follower.state
    setup.history.open_term(Term(7), controller_id="c9")
    setup.log.commit(setup.history.decisions[-1])
    with pytest.raises(FencedError, match="'c9' has opened term 7, so term 1 is over"):
        setup.look_for(1_000, led)


def follow_on(history: World) -> State:
    """The state after one decision more, which is in no log."""
    before = len(history.decisions)
    history.intent("more", "refresh_table")
    history.run(1_000, ("n1",))
    assert len(history.decisions) > before
    return history.state
