"""Writes refused inputs to the ``dead-letters`` topic, at least once."""

from collections import deque
from collections.abc import Iterable
from functools import partial

import structlog

from controlplane.codec.outputs import encode_dead_letter
from controlplane.config import DEAD_LETTERS
from controlplane.core.values.dead_letter import DeadLetter
from controlplane.core.values.inputs import Refusal
from controlplane.errors import ConfigurationError, LogUnavailableError
from controlplane.ports import Delivery, EventWriter, OutgoingRecord
from controlplane.service.metrics import ControllerMetrics

_log = structlog.get_logger(__name__)


class DeadLetterWriter:
    """The dead letters of one writer. :meth:`flush` has to succeed before positions past the inputs are committed."""

    def __init__(self, writer: EventWriter, written_by: str, metrics: ControllerMetrics) -> None:
        """Use a writer; ``written_by`` is the writer's name in every dead letter."""
        self._writer = writer
        self._written_by = written_by
        self._metrics = metrics
        self._waiting: deque[OutgoingRecord] = deque()
        self._in_flight = 0
        self._last_error = ""
        self._denied: str | None = None

    def write(self, refusals: Iterable[Refusal]) -> None:
        """Queue a dead letter for each refusal; those that Kafka does not accept now wait for :meth:`flush`."""
        for refusal in refusals:
            coordinates = refusal.coordinates
            letter = DeadLetter(
                reason=refusal.reason,
                detail=refusal.detail,
                topic=coordinates.topic,
                partition=coordinates.partition,
                offset=coordinates.offset,
                append_time_ms=coordinates.append_time_ms,
                writer=self._written_by,
                raw=refusal.raw,
                raw_length_bytes=refusal.raw_length_bytes,
            )
            self._metrics.dead_letters.labels(refusal.reason).inc()
            _log.info("input refused", reason=refusal.reason, detail=refusal.detail, at=str(coordinates))
            key = str(coordinates).encode()
            self._waiting.append(OutgoingRecord(DEAD_LETTERS, key, encode_dead_letter(letter)))
        self._send_waiting()
        self._writer.poll(0)  # only polling removes delivered records from the client's queue
        self._refuse_denial()

    def listen(self) -> None:
        """Process the client's callbacks; without that, they accumulate without bound while nothing is written."""
        self._writer.poll(0)

    def flush(self, timeout_ms: int) -> None:
        """Wait until every dead letter is in the log; deliveries that fail meanwhile are sent again.

        Raises:
            ConfigurationError: this controller has no right to write dead letters.
            LogUnavailableError: some are not written yet. They are kept, and the next flush tries again.
        """
        if self._missing == 0:
            return
        self._writer.poll(0)
        self._send_waiting()
        while before := self._missing:
            self._writer.flush(timeout_ms)
            self._refuse_denial()
            self._send_waiting()
            if self._missing >= before:
                message = f"{self._missing} dead letters are not written yet; last error: {self._last_error}"
                raise LogUnavailableError(message)

    def _refuse_denial(self) -> None:
        if self._denied is not None:
            raise ConfigurationError(self._denied)

    @property
    def _missing(self) -> int:
        return self._in_flight + len(self._waiting)

    def _send_waiting(self) -> None:
        while self._waiting:
            record = self._waiting[0]
            try:
                self._writer.send(record, partial(self._on_delivery, record))
            except LogUnavailableError as error:
                self._last_error = str(error)
                return
            self._waiting.popleft()
            self._in_flight += 1

    def _on_delivery(self, record: OutgoingRecord, delivery: Delivery) -> None:
        self._in_flight -= 1
        if delivery.denied:
            self._denied = delivery.error
        if delivery.error is not None:
            self._last_error = delivery.error
            self._waiting.append(record)
