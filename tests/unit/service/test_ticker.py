"""What the ticker says of the time in which its process did not run."""

from collections.abc import Callable
from typing import Any

import pytest

from controlplane.config import HEARTBEATS, ClusterConfig
from controlplane.core.values.identifiers import TopicPartition
from controlplane.service.ticker import UNANSWERED_MS, Ticker
from controlplane.testing import MemoryBroker, MemoryEventWriter, MemoryLogReader, VirtualClock

CLUSTER = ClusterConfig("test")
INTERVAL_MS = 100


class OneThread:
    """The threads and the signals of a ticker: a thread runs when it is started, one turn for each given wait."""

    def __init__(self, clock: VirtualClock, *waits: Callable[[], None]) -> None:
        """After each wait of the ticker, for which time passes, something happens."""
        self._clock = clock
        self._waits = list(waits)
        self._run: Callable[[], None] = lambda: None

    def signal(self) -> "OneThread":
        """The only one."""
        return self

    def thread(self, run: Callable[[], None], _: str) -> "OneThread":
        """The only one."""
        self._run = run
        return self

    def start(self) -> None:
        """Run until no wait is left."""
        self._run()

    def is_set(self) -> bool:
        """Whether no wait is left."""
        return not self._waits

    def wait(self, timeout_s: float) -> None:
        """Let this time pass."""
        self._clock.advance(round(timeout_s * 1_000))
        self._waits.pop(0)()


class SlowWriter(MemoryEventWriter):
    """Waits for a broker that does not answer how many partitions there are."""

    clock: VirtualClock

    def partition_count(self, topic: str) -> int:
        """After five seconds."""
        self.clock.advance(5_000)
        return super().partition_count(topic)


def ticker_of(clock: VirtualClock, threads: OneThread) -> Ticker:
    """A ticker whose first question to Kafka takes five seconds."""
    broker = MemoryBroker(clock)
    broker.create_topic(CLUSTER.topic(HEARTBEATS))
    writer = SlowWriter(CLUSTER, broker)
    writer.clock = clock
    some: Any = threads
    return Ticker(writer, clock, some, "c1", INTERVAL_MS)


def test_time_for_which_a_process_did_not_run_is_told_once() -> None:
    """It woke much later than it had asked for; what Kafka takes for an answer is no standing still."""
    clock = VirtualClock()
    seen: list[int] = []
    threads = OneThread(
        clock,
        lambda: seen.append(ticker.stood_still_ms()),
        lambda: clock.advance(3_000),
        lambda: seen.extend([ticker.stood_still_ms(), ticker.stood_still_ms()]),
    )
    ticker = ticker_of(clock, threads)
    ticker.start()
    assert seen == [0, 3_000, 0]


def test_a_partition_counts_as_acknowledged_for_as_long_as_its_own_ticks_are() -> None:
    """Those in other partitions say nothing of it."""
    clock = VirtualClock()
    ticker = ticker_of(clock, OneThread(clock, lambda: None))
    ticker.start()
    clock.advance(5_000)
    place = TopicPartition(HEARTBEATS, 0)
    (acknowledged_ms,) = [each for each in range(5_000, 5_200) if place in ticker.acknowledged_within(each + 1)][:1]
    assert acknowledged_ms == ticker.since_acknowledged_ms()
    assert ticker.acknowledged_within(acknowledged_ms) == set()
    assert ticker.longest_unanswered_ms() == acknowledged_ms


def test_the_partition_without_acknowledgements_for_longest_is_told() -> None:
    """A broker that this controller cannot reach leads it, while ticks elsewhere are acknowledged."""
    clock = VirtualClock()
    broker = MemoryBroker(clock)
    broker.create_topic(CLUSTER.topic(HEARTBEATS), 2)

    def lose_leader() -> None:
        broker.lose_leader(CLUSTER.topic(HEARTBEATS), 1)

    waits = [lambda: None, lose_leader, *[lambda: None] * 20]
    some: Any = OneThread(clock, *waits)
    ticker = Ticker(MemoryEventWriter(CLUSTER, broker), clock, some, "c1", INTERVAL_MS)
    ticker.cover(2)
    ticker.start()
    assert ticker.since_acknowledged_ms() <= INTERVAL_MS
    assert ticker.longest_unanswered_ms() == pytest.approx(20 * INTERVAL_MS, abs=2 * INTERVAL_MS)


def test_ticks_do_not_pile_up_for_a_partition_that_takes_none() -> None:
    """They would all arrive at once, and cost most when every process has much to do. Others get theirs meanwhile."""
    clock = VirtualClock()
    broker = MemoryBroker(clock)
    topic = CLUSTER.topic(HEARTBEATS)
    broker.create_topic(topic, 2)
    ends: list[tuple[int, int]] = []

    def look() -> None:
        offsets = MemoryLogReader(CLUSTER, broker).end_offsets(HEARTBEATS)
        ends.append((offsets[TopicPartition(HEARTBEATS, 0)], offsets[TopicPartition(HEARTBEATS, 1)]))

    def lose() -> None:
        look()
        broker.lose_leader(topic, 1)

    def elect() -> None:
        broker.elect_leader(topic, 1)
        look()

    some: Any = OneThread(clock, lambda: None, lose, *[lambda: None] * 15, elect, *[lambda: None] * 8, look)
    ticker = Ticker(MemoryEventWriter(CLUSTER, broker), clock, some, "c1", INTERVAL_MS)
    ticker.cover(2)
    ticker.start()
    before, late, after = ends
    assert before == (2, 2)
    assert late == (18, 2 + UNANSWERED_MS // INTERVAL_MS)
    assert (after[0] - late[0], after[1] - late[1]) == (9, 8), "one at each interval again, once late ones are answered"


def test_a_thread_that_wakes_before_the_ticker_knows_of_the_time() -> None:
    """All threads of a process wake at once, in any order."""
    clock = VirtualClock()
    seen: list[int] = []

    def wake_first() -> None:
        clock.advance(3_000)
        seen.append(ticker.stood_still_ms())

    ticker = ticker_of(clock, OneThread(clock, wake_first))
    ticker.start()
    assert seen == [3_000]
