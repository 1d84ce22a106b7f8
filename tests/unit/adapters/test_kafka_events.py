"""How a writer goes from one producer to the next, with producers that need no broker."""

import threading
import weakref
from collections.abc import Callable
from types import SimpleNamespace
from typing import ClassVar

import pytest
from confluent_kafka import KafkaError, KafkaException

from controlplane.adapters import kafka_client_watch, kafka_events
from controlplane.adapters.kafka_events import KafkaEventWriter
from controlplane.config import HEARTBEATS, ClusterConfig, KafkaConfig
from controlplane.errors import LogUnavailableError
from controlplane.ports import Delivery, OutgoingRecord
from tests.helpers.polling import poll_until

_TIMED_OUT = KafkaError(KafkaError._MSG_TIMED_OUT)  # noqa: SLF001 - librdkafka's own codes
_PURGED = KafkaError(KafkaError._PURGE_QUEUE)  # noqa: SLF001 - as above
_NO_ANSWER = KafkaException(KafkaError(KafkaError._TRANSPORT))  # noqa: SLF001 - as above
_NOT_MADE = KafkaException(KafkaError(KafkaError._CRIT_SYS_RESOURCE))  # noqa: SLF001 - as above

Report = Callable[[KafkaError | None, object], None]
BEAT = OutgoingRecord(HEARTBEATS, b"n1", b"beat", 0)


class Lost:
    """A producer to which nobody ever answers: each record is reported when the next one waits.

    What is purged is reported by the second poll. As in librdkafka, log lines count among what waits.
    """

    made: ClassVar[list["Lost"]] = []
    may_be_made: ClassVar[int] = 100

    def __init__(self, settings: dict[str, object]) -> None:
        if len(self.made) == Lost.may_be_made:
            raise _NOT_MADE
        self.waiting: list[Report] = []
        self.log_lines = 0
        self.reports_with = _TIMED_OUT
        self.polls_before_report = 0
        self.made.append(self)

    def produce(self, topic: str, value: bytes, key: bytes, partition: int, on_delivery: Report) -> None:
        """Wait for an acknowledgement."""
        self.waiting.append(on_delivery)

    def purge(self) -> None:
        """What waits is reported soon."""
        self.reports_with = _PURGED
        self.polls_before_report = 1

    def poll(self, timeout: float) -> int:
        """Run callbacks."""
        self.log_lines = 0
        if self.polls_before_report:
            self.polls_before_report -= 1
            return 0
        last = [] if self.reports_with is _PURGED else self.waiting[-1:]
        waiting, self.waiting = self.waiting[: len(self.waiting) - len(last)], last
        message = SimpleNamespace(partition=lambda: 0, offset=lambda: None)
        for report in waiting:
            report(self.reports_with, message)
        return len(waiting)

    def list_topics(self, name: str, timeout: float) -> object:
        """No answer, and a log line that says so."""
        self.log_lines += 1
        raise _NO_ANSWER

    def __len__(self) -> int:
        """Callbacks to run."""
        return len(self.waiting) + self.log_lines


class Answered:
    """What an inquiry finds that ends at once."""

    leader_answered = True
    doubted_answered = False
    is_over = True

    def __init__(self, *_: object) -> None:
        """Ask nobody."""


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[Lost]:
    """The producers in the order in which they were made."""
    monkeypatch.setattr(Lost, "made", [])
    monkeypatch.setattr(Lost, "may_be_made", 100)
    monkeypatch.setattr(kafka_events, "Producer", Lost)
    monkeypatch.setattr(kafka_events, "Inquiry", Answered)
    monkeypatch.setattr(kafka_client_watch, "SECOND_LOOK_S", 0.0)
    return Lost.made


@pytest.fixture
def now_s(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time, which this test moves."""
    time_s = [1_000.0]

    def monotonic() -> float:
        time_s[0] += 0.001
        return time_s[0]

    monkeypatch.setattr(kafka_events, "time", SimpleNamespace(monotonic=monotonic))
    return time_s


def new_writer() -> KafkaEventWriter:
    """One writer."""
    return KafkaEventWriter(ClusterConfig("demo"), KafkaConfig("localhost:1"))


def beat_until_replaced(writer: KafkaEventWriter, made: list[Lost], now_s: list[float]) -> list[Delivery]:
    """Send each second until there is another producer; what was told meanwhile."""
    told: list[Delivery] = []
    for _ in range(30):
        if len(made) > 1:
            return told
        writer.send(BEAT, told.append)
        now_s[0] += 1.0
        writer.poll(0)
    raise AssertionError("no other producer was made")


def test_a_lost_producer_is_replaced_and_what_it_held_is_told(made: list[Lost], now_s: list[float]) -> None:
    """Also where its last callbacks come late: nobody may wait for a delivery that is never told."""
    writer = new_writer()
    told = beat_until_replaced(writer, made, now_s)
    count = len(told)
    writer.poll(0)
    assert (len(told), writer.awaits_delivery) == (count, True), "the last callback has not come yet"
    writer.poll(0)
    assert (len(told), writer.awaits_delivery) == (count + 1, False)
    assert {delivery.error for delivery in told} == {"Local: Message timed out (_MSG_TIMED_OUT)"}
    writer.send(BEAT, told.append)
    writer.close()
    assert "_PURGE_QUEUE" in (told[-1].error or ""), "this one was given up because the writer ends"


def test_a_retired_producer_ends_aside(made: list[Lost], now_s: list[float]) -> None:
    """Its end joins librdkafka's threads, which takes seconds where a host's name is looked for."""
    writer = new_writer()
    beat_until_replaced(writer, made, now_s)
    ended_in: list[str] = []
    weakref.finalize(made[0], lambda: ended_in.append(threading.current_thread().name))
    made.pop(0)
    poll_until(lambda: (writer.poll(0), ended_in)[1])
    assert ended_in == ["kafka-close"]


def test_without_another_producer_the_lost_one_is_kept(
    made: list[Lost], now_s: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever polls is not to pay for what may pass; it is tried again."""
    monkeypatch.setattr(Lost, "may_be_made", 1)
    writer = new_writer()
    with pytest.raises(AssertionError, match="no other producer"):
        beat_until_replaced(writer, made, now_s)
    with pytest.raises(LogUnavailableError):
        writer.partition_count(HEARTBEATS)
    monkeypatch.setattr(Lost, "may_be_made", 100)
    beat_until_replaced(writer, made, now_s)


def test_who_only_flushes_is_looked_after(made: list[Lost], now_s: list[float]) -> None:
    """A writer of snapshots sends seldom, and then waits."""
    writer = new_writer()
    for _ in range(6):
        writer.send(BEAT)
        now_s[0] += 30.0
        writer.flush(100)
    assert len(made) == 2


@pytest.mark.parametrize(("waiting", "producers"), [(0, 2), (1, 1)])
def test_only_an_idle_producer_is_replaced_for_a_question(made: list[Lost], waiting: int, producers: int) -> None:
    """What is sent shows by itself whether it arrives, and is not to be given up for a question."""
    writer = new_writer()
    for _ in range(waiting):
        writer.send(BEAT)
    with pytest.raises(LogUnavailableError):
        writer.partition_count(HEARTBEATS)
    assert len(made) == producers
