"""Dead letters are written at least once, whatever the broker does, and never stand in a leader's way for good."""

import pytest
from prometheus_client import CollectorRegistry

from controlplane.codec.outputs import decode_dead_letter
from controlplane.config import DEAD_LETTERS, ClusterConfig
from controlplane.core.values.identifiers import Coordinates
from controlplane.core.values.inputs import Refusal
from controlplane.errors import LogUnavailableError
from controlplane.service.dead_letters import DeadLetterWriter
from controlplane.service.metrics import ControllerMetrics
from controlplane.testing import MemoryBroker, MemoryEventWriter, MemoryLogReader, VirtualClock

QUEUE_LIMIT = 5


class Desk:
    """A writer of dead letters, its broker and its time."""

    def __init__(self) -> None:
        """A broker that answers."""
        self.cluster = ClusterConfig("test")
        self.clock = VirtualClock()
        self.broker = MemoryBroker(self.clock)
        self.broker.create_topic(self.cluster.topic(DEAD_LETTERS))
        self.events = MemoryEventWriter(self.cluster, self.broker, queue_limit=QUEUE_LIMIT)
        self.letters = DeadLetterWriter(self.events, "c1", ControllerMetrics(CollectorRegistry()))

    def refuse(self, *offsets: int) -> None:
        """Write letters about inputs at these offsets."""
        self.letters.write(
            Refusal.of(Coordinates("heartbeats", 0, offset, 0), "test", "for the test", b"raw") for offset in offsets
        )

    def offsets(self) -> list[int]:
        """The inputs that the letters in the log are about."""
        reader = MemoryLogReader(self.cluster, self.broker)
        reader.assign(reader.start_offsets(DEAD_LETTERS))
        return [decode_dead_letter(record.value or b"").offset for record in reader.poll(1_000, 0).records]


def test_a_flush_leaves_every_letter_in_the_log() -> None:
    """Only then may positions be committed that pass the refused inputs."""
    desk = Desk()
    desk.refuse(1, 2, 3)
    desk.letters.flush(1_000)
    assert desk.offsets() == [1, 2, 3]


def test_letters_that_were_given_up_are_sent_again() -> None:
    """The inputs were read already and will not come again: the letter is all that is left of the refusal."""
    desk = Desk()
    desk.broker.available = False
    desk.refuse(1, 2)
    with pytest.raises(LogUnavailableError, match="2 dead letters"):
        desk.letters.flush(1_000)
    desk.clock.advance(10_000)
    with pytest.raises(LogUnavailableError, match="2 dead letters"):
        desk.letters.flush(1_000)
    desk.broker.available = True
    desk.letters.flush(1_000)
    assert sorted(desk.offsets()) == [1, 2]


def test_letters_that_were_given_up_long_ago_cost_the_next_commit_nothing() -> None:
    """An outage that is over must not end a leadership."""
    desk = Desk()
    desk.broker.available = False
    desk.refuse(1)
    desk.clock.advance(10_000)
    desk.broker.available = True
    desk.letters.flush(1_000)
    assert desk.offsets() == [1]


def test_a_flood_of_letters_without_any_commit_does_not_fill_the_queue() -> None:
    """Delivered letters leave the queue as others come, not only at a flush: a quiet table may be far from one."""
    desk = Desk()
    for offset in range(4 * QUEUE_LIMIT):
        desk.refuse(offset)
    desk.letters.flush(1_000)
    assert desk.offsets() == list(range(4 * QUEUE_LIMIT))


def test_a_full_queue_holds_letters_back_and_loses_none() -> None:
    """More letters than fit while the broker is away wait here, and the writer works on as soon as it is back."""
    desk = Desk()
    desk.broker.available = False
    desk.refuse(*range(2 * QUEUE_LIMIT))
    with pytest.raises(LogUnavailableError, match=f"{2 * QUEUE_LIMIT} dead letters"):
        desk.letters.flush(1_000)
    desk.broker.available = True
    desk.letters.flush(1_000)
    assert desk.offsets() == list(range(2 * QUEUE_LIMIT))
    desk.letters.flush(1_000)
