"""Sends the records of a node."""

from collections.abc import Callable, Iterable
from typing import Final

from controlplane.codec.inputs import encode_input
from controlplane.core.log.inputs import InputPayload
from controlplane.errors import InvalidInputError, LogUnavailableError
from controlplane.node.shared import Shared
from controlplane.ports import Delivery, EventWriter, OutgoingRecord

_TOO_LARGE: Final = "record_too_large"


def send_record(
    shared: Shared, writer: EventWriter, topic: str, payload: InputPayload, on_delivery: Callable[[Delivery], None]
) -> None:
    """Append a record of the node; it is given up if that does not succeed in time.

    Raises:
        InvalidInputError: every reader would refuse the record.
    """
    try:
        writer.send(OutgoingRecord(topic, shared.node.node_id.encode(), encode_input(payload)), on_delivery)
    except LogUnavailableError as error:
        shared.logger.warning("event not sent", kind=type(payload).__name__, error=str(error))


class SizeLimitedSender:
    """Sends records that may take more than a record may, with less in them then.

    A node lives whatever its reports take, and its death would only give other nodes more to report.
    """

    def __init__(self, shared: Shared, writer: EventWriter, topic: str) -> None:
        """Begin as if everything fitted. The writer belongs to the caller."""
        self._shared = shared
        self._writer = writer
        self._topic = topic
        self._left_out = ""

    def send(self, payloads: Iterable[tuple[InputPayload, str]], on_delivery: Callable[[Delivery], None]) -> None:
        """Append the first record that fits, and log a warning when it is another one than last time.

        Args:
            payloads: the record, and what it may be instead, each made only if the one before does not fit; with what
                is left out of it, in words.
            on_delivery: see :meth:`controlplane.ports.EventWriter.send`.

        Raises:
            InvalidInputError: every reader would refuse the record, or not even the last one fits.
        """
        too_large: InvalidInputError | None = None
        for payload, left_out in payloads:
            try:
                send_record(self._shared, self._writer, self._topic, payload, on_delivery)
            except InvalidInputError as error:
                if error.reason != _TOO_LARGE:
                    raise
                too_large = error
                continue
            if left_out not in ("", self._left_out):
                text = f"records are sent without {left_out}: they take too much"
                self._shared.logger.warning(text, topic=self._topic, error=too_large and too_large.detail)
            self._left_out = left_out
            return
        if too_large is not None:
            raise too_large
