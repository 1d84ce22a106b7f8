"""Kafka is asked where the topics end that a leader needs; answers count for a while, and its silence is told."""

import sys
import threading
import time
from collections.abc import Callable
from typing import Any, cast

from controlplane.config import DEAD_LETTERS, DECISIONS, HEARTBEATS, INTENTS, ROUTING_TABLE, ClusterConfig
from controlplane.core.log.inputs import INPUT_TOPICS
from controlplane.core.values.identifiers import TopicPartition
from controlplane.ports import LogReader
from controlplane.service.topic_ends import TopicEnds
from controlplane.testing import MemoryBroker, MemoryLogReader, VirtualClock

_RACED_FOR_S = 1.0
"""The race was lost within a tenth of it; a busy machine runs fewer rounds."""
TOPICS = (*INPUT_TOPICS, DECISIONS, ROUTING_TABLE, DEAD_LETTERS)
FIRST, ASKED = TopicPartition(HEARTBEATS, 0), TopicPartition(INTENTS, 0)


class Asking:
    """Input topics of one partition each, and their ends as a controller asks for them."""

    def __init__(self, reader: LogReader | None = None) -> None:
        """The thread has begun, and nothing was asked yet; ``reader`` answers in place of the topics."""
        self.clock = VirtualClock()
        self.cluster = ClusterConfig("test")
        self.broker = MemoryBroker(self.clock)
        for topic in TOPICS:
            self.broker.create_topic(self.cluster.topic(topic))
        self._turns: list[Callable[[], None]] = []
        threads: Any = self
        self.ends = TopicEnds(lambda: reader or MemoryLogReader(self.cluster, self.broker), self.clock, threads)
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
    assert asking.ends.last() == {TopicPartition(topic, 0): 0 for topic in TOPICS}
    asking.run(lambda: asking.broker.lose_leader(asking.cluster.topic(INTENTS), 0))
    assert ASKED in asking.ends.last()
    asking.run(lambda: None, lambda: None)
    assert set(asking.ends.last()) == {TopicPartition(topic, 0) for topic in TOPICS} - {ASKED}
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
    assert asking.ends.longest_unanswered_ms() == 0
    assert not asking.ends.has_answers
    asking.broker.lose_leader(asking.cluster.topic(INTENTS), 0)
    asking.run(lambda: None, lambda: None)
    assert asking.ends.longest_unanswered_ms() == asking.clock.monotonic_ms() > 0
    assert not asking.ends.has_answers
    asking.broker.elect_leader(asking.cluster.topic(INTENTS), 0)
    asking.run(lambda: None)
    assert asking.ends.longest_unanswered_ms() == 0
    assert asking.ends.has_answers


class GrowingTopics:
    """Has a partition more for each question."""

    def __init__(self) -> None:
        """None was asked for yet."""
        self._asked = 0

    def end_offsets(self, topic: str, *, only_answering: bool) -> dict[TopicPartition, int]:
        """The end of the newest partition."""
        self._asked += 1
        return {TopicPartition(topic, self._asked): self._asked} if only_answering else {}

    def close(self) -> None:
        """Nothing is open."""


def test_answers_may_arrive_while_they_are_looked_at() -> None:
    """An end was once read without the time of its answer, which ended the controller."""
    former_s = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    ends_at_s = time.monotonic() + _RACED_FOR_S
    try:
        while time.monotonic() < ends_at_s:
            asking = Asking(cast("LogReader", GrowingTopics()))
            thread = threading.Thread(target=asking.run, args=[lambda: None] * 100)
            thread.start()
            while thread.is_alive() and time.monotonic() < ends_at_s:
                # Each partition of these topics ends at its own number.
                assert all(place.partition == end for place, end in asking.ends.last().items())
            thread.join()
    finally:
        sys.setswitchinterval(former_s)
