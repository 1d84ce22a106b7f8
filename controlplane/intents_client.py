"""The client of intents: it sends what an operator asks for; inspection finds the answer in the decision log."""

from typing import Final

from controlplane.codec.inputs import encode_input
from controlplane.config import INTENTS
from controlplane.core.intents.intent import Intent
from controlplane.errors import ConfigurationError, LogUnavailableError
from controlplane.ports import Delivery, EventWriter, OutgoingRecord

SEND_TIMEOUT_MS: Final = 10_000


def submit_intent(writer: EventWriter, intent: Intent) -> Delivery:
    """Append an intent to its topic and wait for the acknowledgement; returns topic, partition and offset.

    Raises:
        ConfigurationError: the broker does not let this client write intents.
        LogUnavailableError: Kafka did not acknowledge it; it may have been written all the same.
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
    """A record without an acknowledgement may stand in the log all the same."""
    return LogUnavailableError(
        f"Kafka did not acknowledge the intent {intent.intent_id} {why}. That does not prove that it was not taken: "
        "when Kafka is back, look whether 'controlplane log show' names it among the causes; if it does not, ask again"
    )
