"""Asking a cluster for something as an operator: an intent goes in, its answer comes out of the decision log."""

from dataclasses import dataclass
from typing import Final

from controlplane.bootstrap.readers import DecisionFollower, LoggedDecision
from controlplane.codec.inputs import encode_input
from controlplane.config import INTENTS, ClusterConfig, KafkaConfig
from controlplane.core.intents.events import IntentAnswered
from controlplane.core.intents.intent import Intent
from controlplane.core.values.identifiers import IntentId
from controlplane.errors import ConfigurationError, LogUnavailableError
from controlplane.ports import Delivery, EventWriter, LogReader, OutgoingRecord

SEND_TIMEOUT_MS: Final = 10_000


def open_event_writer(cluster: ClusterConfig, kafka: KafkaConfig) -> EventWriter:
    """A writer of single records to the cluster's topics in Kafka; the caller closes it."""
    from controlplane.adapters.kafka_log import KafkaEventWriter

    return KafkaEventWriter(cluster, kafka)


@dataclass(frozen=True, slots=True)
class Answer:
    """What became of an intent, and the decision that says so."""

    event: IntentAnswered
    logged: LoggedDecision


def submit_intent(writer: EventWriter, intent: Intent) -> Delivery:
    """Append an intent; returns where it stands.

    Raises:
        ConfigurationError: this user may not write intents.
        LogUnavailableError: Kafka did not acknowledge it; it may have been taken all the same, or still arrive.
    """
    deliveries: list[Delivery] = []
    writer.send(OutgoingRecord(INTENTS, intent.intent_id.encode(), encode_input(intent)), deliveries.append)
    writer.flush(SEND_TIMEOUT_MS)
    if not deliveries:
        raise _unknown(intent, f"within {SEND_TIMEOUT_MS:,} ms")
    if deliveries[0].denied:
        raise ConfigurationError(str(deliveries[0].error))
    if deliveries[0].error is not None:
        raise _unknown(intent, f"({deliveries[0].error})")
    return deliveries[0]


def _unknown(intent: Intent, why: str) -> LogUnavailableError:
    """A record without an acknowledgement may stand in the log: nobody may conclude that it was not taken."""
    return LogUnavailableError(
        f"Kafka did not acknowledge the intent {intent.intent_id} {why}. That does not prove that it was not taken: "
        "when Kafka is back, look whether 'controlplane log show' names it among the causes; if it does not, ask again"
    )


class AnswerWatch:
    """Watches the decision log for the answer to an intent; begin it before the intent is sent."""

    def __init__(self, reader: LogReader) -> None:
        """Begin behind the last decision; the reader belongs to the watch from here on."""
        self._follower = DecisionFollower(reader)

    def wait(self, intent_id: IntentId, timeout_ms: int) -> Answer | None:
        """The answer, or None if the log holds none when the time is over."""
        found: list[IntentAnswered] = []

        def answers(logged: LoggedDecision) -> bool:
            events = [event for event in logged.decision.events if isinstance(event, IntentAnswered)]
            found.extend(event for event in events if event.intent_id == intent_id)
            return bool(found)

        logged = self._follower.wait_for(answers, timeout_ms)
        return None if logged is None else Answer(found[0], logged)
