"""Fake librdkafka clients and probes, for tests of the code that replaces clients."""

from types import SimpleNamespace
from typing import cast

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from controlplane.adapters.kafka_log_listener import LogListener
from controlplane.adapters.kafka_probe import Probe, ProbeOutcome
from controlplane.adapters.kafka_replaceable_producer import Report

TIMED_OUT = KafkaError(KafkaError._MSG_TIMED_OUT)  # noqa: SLF001 - librdkafka's own codes
PURGED = KafkaError(KafkaError._PURGE_QUEUE)  # noqa: SLF001 - as above
FATAL = KafkaError(KafkaError._FATAL, "lost step", fatal=True)  # noqa: SLF001 - as above
UNANSWERED = KafkaError(KafkaError._TRANSPORT)  # noqa: SLF001 - as above
NOT_MADE = KafkaException(KafkaError(KafkaError._CRIT_SYS_RESOURCE))  # noqa: SLF001 - as above


def over(*, leader_answered: bool = True, doubted_answered: bool = False) -> Probe:
    """A probe that ended at once."""
    return cast("Probe", SimpleNamespace(outcome=ProbeOutcome(leader_answered, doubted_answered)))


def acknowledgement(offset: int) -> Message:
    """The message that a producer reports for a record of partition 0 that was appended."""
    fake = SimpleNamespace(partition=lambda: 0, offset=lambda: offset, timestamp=lambda: (1, 1_000 + offset))
    return cast("Message", fake)


GIVEN_UP = cast("Message", SimpleNamespace(partition=lambda: 0, offset=lambda: None))


class FakeProducer:
    """A producer whose deliveries the test decides.

    Attributes:
        queued: the reports of records that were produced and not reported yet.
        outcome: what a poll reports for all but the newest ``kept`` of them: None is an acknowledgement.
        polls_before_report: polls that report nothing yet.
        fails_with: raised by ``produce`` and ``poll``.
    """

    def __init__(self, outcome: KafkaError | None = TIMED_OUT, kept: int = 0) -> None:
        self.queued: list[Report] = []
        self.produced: list[tuple[str, bytes | None, bytes, int]] = []
        self.outcome = outcome
        self.kept = kept
        self.polls_before_report = 0
        self.log_lines = 0
        self.fails_with: KafkaError | None = None

    def produce(self, topic: str, value: bytes | None, key: bytes, partition: int, on_delivery: Report) -> None:
        """Queue a record."""
        if self.fails_with is not None:
            raise KafkaException(self.fails_with)
        self.produced.append((topic, value, key, partition))
        self.queued.append(on_delivery)

    def purge(self) -> None:
        """Give up the queued records. The second poll from now reports it."""
        self.outcome, self.kept, self.polls_before_report = PURGED, 0, 1

    def poll(self, timeout: float) -> int:
        """Run callbacks."""
        self.log_lines = 0
        if self.fails_with is not None:
            raise KafkaException(self.fails_with)
        if self.polls_before_report:
            self.polls_before_report -= 1
            return 0
        due = max(len(self.queued) - self.kept, 0)
        reports, self.queued = self.queued[:due], self.queued[due:]
        for offset, report in enumerate(reports):
            report(self.outcome, acknowledgement(offset) if self.outcome is None else GIVEN_UP)
        return len(reports)

    def list_topics(self, name: str, timeout: float) -> SimpleNamespace:
        """No answer, and a log line about it."""
        self.log_lines += 1
        raise KafkaException(UNANSWERED)

    def __len__(self) -> int:
        """Callbacks to run; as in librdkafka, log lines are among them."""
        return len(self.queued) + self.log_lines


class ProducerFactory:
    """Makes fake producers and keeps them.

    Attributes:
        made: in the order in which they were made.
        next_made: taken first.
        limit: no more can be made than this.
    """

    def __init__(self, *next_made: FakeProducer) -> None:
        self.made: list[FakeProducer] = []
        self.next_made = list(next_made)
        self.limit = 100

    def __call__(self, listener: LogListener) -> Producer:
        """Make one."""
        if len(self.made) >= self.limit:
            raise NOT_MADE
        self.made.append(self.next_made.pop(0) if self.next_made else FakeProducer(kept=1))
        return cast("Producer", self.made[-1])
