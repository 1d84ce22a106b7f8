"""Writes refused inputs to the ``dead-letters`` topic, at least once."""

from collections.abc import Iterable
from typing import Final

import structlog

from controlplane.codec.outputs import encode_dead_letter
from controlplane.config import DEAD_LETTERS
from controlplane.core.outputs import DeadLetter
from controlplane.core.records import Refusal
from controlplane.errors import LogUnavailableError
from controlplane.ports import Delivery, EventWriter, OutgoingRecord
from controlplane.service.metrics import ControllerMetrics

RAW_KEPT_BYTES: Final = 64 * 1024
"""How much of a refused record's bytes a dead letter keeps."""

_log = structlog.get_logger(__name__)


class DeadLetterWriter:
    """One writer's dead letters; :meth:`flush` before positions are committed that pass the refused inputs."""

    def __init__(self, writer: EventWriter, written_by: str, metrics: ControllerMetrics) -> None:
        """``written_by`` stands in every letter."""
        self._writer = writer
        self._written_by = written_by
        self._metrics = metrics
        self._in_flight = 0
        self._failed: list[str] = []

    def write(self, refusals: Iterable[Refusal]) -> None:
        """Queue a dead letter for each refusal."""
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
                raw=refusal.raw[:RAW_KEPT_BYTES],
                raw_length_bytes=len(refusal.raw),
            )
            self._metrics.dead_letters.labels(refusal.reason).inc()
            _log.info("input refused", reason=refusal.reason, detail=refusal.detail, at=str(coordinates))
            record = OutgoingRecord(DEAD_LETTERS, str(coordinates).encode(), encode_dead_letter(letter))
            self._in_flight += 1
            self._writer.send(record, self._on_delivery)

    def flush(self, timeout_ms: int) -> None:
        """Wait until every letter is in the log.

        Raises:
            LogUnavailableError: some could not be written; their inputs have to be read again.
        """
        if self._in_flight == 0:
            return
        self._writer.flush(timeout_ms)
        failed, self._failed = self._failed, []
        if failed or self._in_flight:
            message = f"{self._in_flight} dead letters are not written, {len(failed)} failed: {failed[:1]}"
            raise LogUnavailableError(message)

    def _on_delivery(self, delivery: Delivery) -> None:
        self._in_flight -= 1
        if delivery.error is not None:
            self._failed.append(delivery.error)
