"""A partition that is not read on although records stand there is noticed after its time, and not before."""

from collections.abc import Callable
from typing import Any

from structlog.testing import capture_logs

from controlplane.config import HEARTBEATS, INTENTS, ClusterConfig
from controlplane.core.election.leading import DEAF_AFTER_MS
from controlplane.core.log.inputs import INPUT_TOPICS
from controlplane.core.values.identifiers import TopicPartition
from controlplane.service.deafness import DeafnessWatch, InputEnds
from controlplane.testing import MemoryBroker, MemoryLogReader, VirtualClock

FIRST, SECOND, ASKED = TopicPartition(HEARTBEATS, 0), TopicPartition(HEARTBEATS, 1), TopicPartition(INTENTS, 0)


def test_a_partition_that_is_not_read_on_is_told_of_once() -> None:
    """Whatever else is written there meanwhile, the time counts from the first record that was not read."""
    clock = VirtualClock()
    watch = DeafnessWatch(clock)
    found = []
    with capture_logs() as logs:
        for second in range(15):
            found.append(watch.look({FIRST: 5 + second, SECOND: 5}, {FIRST: 6 + second, SECOND: 6 + second}))
            clock.advance(1_000)
        assert watch.look({FIRST: 30, SECOND: 25}, {FIRST: 31, SECOND: 26}) == set()
    assert [second for second, deaf in enumerate(found) if deaf] == [10, 11, 12, 13, 14]
    assert found[-1] == {SECOND}
    assert [(each["log_level"], each.get("partitions")) for each in logs] == [
        ("error", ["heartbeats[1]"]),
        ("info", None),
    ]


def test_a_partition_that_lags_and_is_read_on_is_not_deaf() -> None:
    """It always lacks something; but what it lacked was read within the time."""
    clock = VirtualClock()
    watch = DeafnessWatch(clock)
    for second in range(60):
        assert watch.look({FIRST: second}, {FIRST: second + 5}) == set()
        clock.advance(1_000)


def test_what_is_not_read_now_or_has_no_known_end_is_not_deaf() -> None:
    """Inputs may be held back on purpose, and a partition without a leader has no ticks."""
    clock = VirtualClock()
    watch = DeafnessWatch(clock)
    for _ in range(2):
        assert watch.look({FIRST: 5}, {ASKED: 9}) == set()
        clock.advance(2 * DEAF_AFTER_MS)


def test_a_controller_that_begins_to_lead_has_the_whole_time() -> None:
    """Two controllers, each deaf to another partition, must not hand over to each other at once."""
    clock = VirtualClock()
    watch = DeafnessWatch(clock)
    watch.look({FIRST: 5}, {FIRST: 6})
    clock.advance(DEAF_AFTER_MS)
    watch.begin_again()
    assert watch.look({FIRST: 5}, {FIRST: 6}) == set()
    clock.advance(DEAF_AFTER_MS)
    assert watch.look({FIRST: 5}, {FIRST: 6}) == {FIRST}


def test_time_in_which_kafka_does_not_answer_of_a_partition_does_not_count() -> None:
    """Until it has a leader again nobody reads it, and then a client needs a moment to find that leader."""
    clock = VirtualClock()
    watch = DeafnessWatch(clock)
    watch.look({FIRST: 5}, {FIRST: 6})
    clock.advance(DEAF_AFTER_MS - 1)
    assert watch.look({FIRST: 5}, {}) == set()
    clock.advance(DEAF_AFTER_MS)
    assert watch.look({FIRST: 5}, {FIRST: 6}) == set()
    clock.advance(DEAF_AFTER_MS)
    assert watch.look({FIRST: 5}, {FIRST: 6}) == {FIRST}


class Asking:
    """Input topics of one partition each, and their ends as a controller asks for them."""

    def __init__(self) -> None:
        """The thread has begun, and nothing was asked yet."""
        self.clock = VirtualClock()
        self.cluster = ClusterConfig("test")
        self.broker = MemoryBroker(self.clock)
        for topic in INPUT_TOPICS:
            self.broker.create_topic(self.cluster.topic(topic))
        self._turns: list[Callable[[], None]] = []
        threads: Any = self
        self.ends = InputEnds(lambda: MemoryLogReader(self.cluster, self.broker), self.clock, threads)
        self.ends.start()

    def signal(self) -> "Asking":
        """The only one."""
        return self

    def thread(self, run: Callable[[], None], _: str) -> "Asking":
        """The only one."""
        self.start = run
        return self

    def wait(self, timeout_s: float) -> bool:
        """Let this time pass, unless the thread has to end."""
        if not self._turns:
            return True
        self.clock.advance(round(timeout_s * 1_000))
        self._turns.pop(0)()
        return False

    def run(self, *turns: Callable[[], None]) -> None:
        """Ask once after each of these."""
        self._turns = list(turns)
        self.start()


def test_every_input_is_asked_for_and_answers_count_for_a_while() -> None:
    """An end that Kafka told before it went away says nothing of what can be read now."""
    asking = Asking()
    asking.run(lambda: None)
    assert asking.ends.last() == {TopicPartition(topic, 0): 0 for topic in INPUT_TOPICS}
    asking.run(lambda: asking.broker.lose_leader(asking.cluster.topic(INTENTS), 0))
    assert ASKED in asking.ends.last()
    asking.run(lambda: None, lambda: None)
    assert set(asking.ends.last()) == {TopicPartition(topic, 0) for topic in INPUT_TOPICS} - {ASKED}
    asking.broker.available = False
    asking.run(lambda: None, lambda: None, lambda: None)
    assert asking.ends.last() == {}


def test_what_stands_behind_a_transaction_that_hangs_is_not_to_be_read() -> None:
    """Its records are acknowledged; but no controller reads them before the transaction has ended."""
    asking = Asking()
    name = asking.cluster.topic(HEARTBEATS)
    epoch = asking.broker.init_transactions("somebody", 60_000)
    asking.broker.append_in_transaction("somebody", epoch, [(name, 0, b"x", b"y")])
    asking.run(lambda: None)
    assert asking.ends.last()[FIRST] == 0


def test_the_partition_of_which_kafka_has_not_answered_for_longest_is_told() -> None:
    """From the first question on, also if it never answers; answers of others say nothing."""
    asking = Asking()
    assert asking.ends.worst_partition_ms() == 0
    asking.broker.lose_leader(asking.cluster.topic(INTENTS), 0)
    asking.run(lambda: None, lambda: None)
    assert asking.ends.worst_partition_ms() == asking.clock.monotonic_ms() > 0
    asking.broker.elect_leader(asking.cluster.topic(INTENTS), 0)
    asking.run(lambda: None)
    assert asking.ends.worst_partition_ms() == 0
