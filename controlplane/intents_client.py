"""The client of intents: sends what an operator asks for. Inspection finds the answer in the decision log."""

from typing import Final

from controlplane.codec.inputs import encode_input
from controlplane.config import INTENTS
from controlplane.core.intents.intent import Intent
from controlplane.errors import ConfigurationError, LogUnavailableError
from controlplane.ports import Delivery, EventWriter, OutgoingRecord

SEND_TIMEOUT_MS: Final = 20_000
"""Time for the acknowledgement. A broker that has died holds it back until its session has ended, 9 s by Kafka's
default, and a leader that is elected then has to be found."""
_REPORTED_WITHIN_MS: Final = 1_000


def submit_intent(writer: EventWriter, intent: Intent) -> Delivery:
    """Append an intent to its topic and wait for the acknowledgement; return topic, partition and offset.

    Raises:
        ConfigurationError: this client has no right to write intents.
        LogUnavailableError: Kafka did not acknowledge the intent; it may have been written nevertheless.
    """
    deliveries: list[Delivery] = []
    writer.send(OutgoingRecord(INTENTS, intent.intent_id.encode(), encode_input(intent)), deliveries.append)
    writer.flush(SEND_TIMEOUT_MS + _REPORTED_WITHIN_MS)
    if not deliveries:
        raise _unknown(intent, f"within {SEND_TIMEOUT_MS:,} ms")
    if deliveries[0].denied:
        raise ConfigurationError(str(deliveries[0].error))
    if deliveries[0].error is not None:
        raise _unknown(intent, f"({deliveries[0].error})")
    return deliveries[0]


def _unknown(intent: Intent, why: str) -> LogUnavailableError:
    """The error for a missing acknowledgement, which does not exclude that the record is in the log."""
    return LogUnavailableError(
        f"Kafka did not acknowledge the intent {intent.intent_id} {why}. It may have been written nevertheless: "
        "check whether 'controlplane log show' names it among the causes; if it does not, ask again"
    )
