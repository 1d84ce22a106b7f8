"""Dead letters are written at least once, whatever the broker does, and only some positions wait for them."""

import pytest
from prometheus_client import CollectorRegistry
from structlog.testing import capture_logs

from controlplane.codec.outputs import decode_dead_letter
from controlplane.config import DEAD_LETTERS, HEARTBEATS, INTENTS, MEMBERSHIP, ClusterConfig
from controlplane.core.values.dead_letter import DeadLetter
from controlplane.core.values.identifiers import Coordinates, TopicPartition
from controlplane.core.values.inputs import Refusal
from controlplane.service import dead_letters
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
        self.registry = CollectorRegistry()
        self.letters = DeadLetterWriter(self.events, "c1", ControllerMetrics(self.registry))

    def refuse(self, *offsets: int, topic: str = HEARTBEATS, raw: bytes = b"raw") -> None:
        """Write letters about inputs at these offsets."""
        self.letters.write(
            Refusal.of(Coordinates(topic, 0, offset, 0), "test", "for the test", raw) for offset in offsets
        )

    def offsets(self) -> list[int]:
        """The inputs that the letters in the log are about."""
        return [letter.offset for letter in self.written()]

    def written(self) -> list[DeadLetter]:
        """The letters in the log."""
        reader = MemoryLogReader(self.cluster, self.broker)
        reader.assign(reader.start_offsets(DEAD_LETTERS))
        return [decode_dead_letter(record.value or b"") for record in reader.poll(1_000, 0).records]


def test_a_flush_leaves_every_letter_in_the_log() -> None:
    """Kafka has acknowledged them all."""
    desk = Desk()
    desk.refuse(1, 2, 3)
    desk.letters.flush(1_000)
    assert desk.offsets() == [1, 2, 3]
    assert desk.letters.unwritten == 0


def test_letters_that_were_given_up_are_sent_again() -> None:
    """The inputs were read already and will not come again: the letter is all that is left of the refusal."""
    desk = Desk()
    desk.broker.available = False
    desk.refuse(1, 2)
    desk.clock.advance(10_000)
    desk.letters.flush(1_000)
    assert desk.letters.unwritten == 2
    desk.broker.available = True
    desk.letters.flush(1_000)
    assert sorted(desk.offsets()) == [1, 2]


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
    desk.letters.flush(1_000)
    assert desk.letters.unwritten == 2 * QUEUE_LIMIT
    desk.broker.available = True
    for _ in range(2):
        desk.letters.flush(1_000)
    assert desk.offsets() == list(range(2 * QUEUE_LIMIT))


def test_only_refused_membership_records_and_intents_hold_positions_back() -> None:
    """Each by its first letter that is not written. Those that positions have passed already hold back nothing."""
    desk = Desk()
    desk.broker.available = False
    desk.refuse(3, 2)
    desk.refuse(9, 7, topic=INTENTS)
    desk.refuse(5, topic=MEMBERSHIP)
    intents, membership = TopicPartition(INTENTS, 0), TopicPartition(MEMBERSHIP, 0)
    assert desk.letters.gates({}) == {intents: 7, membership: 5}
    assert desk.letters.gates({"intents[0]": 8, "membership[0]": 6}) == {intents: 9}
    desk.broker.available = True
    desk.letters.flush(1_000)
    assert desk.letters.gates({"intents[0]": 8, "membership[0]": 6}) == {}


def test_letters_of_heartbeats_are_no_unanswered_inputs() -> None:
    """A controller reads nothing more while very many inputs are unanswered; nobody waits for a heartbeat's letter."""
    desk = Desk()
    desk.broker.available = False
    desk.refuse(*range(5))
    desk.refuse(7, topic=INTENTS)
    desk.refuse(8, topic=MEMBERSHIP)
    assert desk.letters.unanswered == 2
    desk.broker.available = True
    desk.letters.flush(1_000)
    assert desk.letters.unanswered == 0


def test_an_input_that_is_refused_again_before_positions_pass_it_gets_one_letter() -> None:
    """A decision that has to leave it out refuses it, and so does the next one that takes it up."""
    desk = Desk()
    desk.broker.available = False
    desk.refuse(7, topic=INTENTS)
    desk.refuse(7, topic=INTENTS)
    desk.broker.available = True
    desk.letters.flush(1_000)
    desk.refuse(7, topic=INTENTS)
    desk.letters.flush(1_000)
    assert desk.offsets() == [7]


def test_beyond_a_bound_heartbeats_get_no_letter_and_intents_do(monkeypatch: pytest.MonkeyPatch) -> None:
    """A writer of garbage must not fill a leader's memory while the topic is away."""
    monkeypatch.setattr(dead_letters, "_MOST_LETTERS", 3)
    desk = Desk()
    desk.broker.available = False
    desk.refuse(*range(5))
    desk.refuse(7, 8, topic=INTENTS)
    assert desk.letters.unwritten == 5
    assert desk.registry.get_sample_value("controlplane_dead_letters_dropped_total") == 2
    desk.broker.available = True
    desk.letters.flush(1_000)
    assert desk.offsets() == [0, 1, 2, 7, 8]


def test_beyond_a_bound_letters_are_written_without_the_bytes_of_the_input(monkeypatch: pytest.MonkeyPatch) -> None:
    """The coordinates say where the input stands."""
    monkeypatch.setattr(dead_letters, "_MOST_BYTES", 100)
    desk = Desk()
    desk.broker.available = False
    desk.refuse(1, 2, topic=INTENTS, raw=bytes(200))
    desk.broker.available = True
    desk.letters.flush(1_000)
    assert [len(letter.raw) for letter in desk.written()] == [200, 0]
    assert [letter.raw_length_bytes for letter in desk.written()] == [200, 200]


def test_of_very_many_refused_heartbeats_few_are_logged_and_every_intent_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """A topic with the wrong setting refuses a hundred a second. An intent's sender looks for its line."""
    monkeypatch.setattr(dead_letters, "_HEARTBEATS_LOGGED_EVERY", 10)
    desk = Desk()
    with capture_logs() as lines:
        desk.refuse(*range(25))
        desk.refuse(*range(3), topic=INTENTS)
    told = [(line["at"], line["refused"]) for line in lines if line["event"] == "input refused"]
    assert [refused for at, refused in told if at.startswith(HEARTBEATS)] == [1, 11, 21]
    assert [refused for at, refused in told if at.startswith(INTENTS)] == [1, 2, 3]
