"""Writes snapshots of the state while this controller leads, in a thread and with a producer of its own.

Writing does not delay decisions: states are immutable, so the leader hands over a reference, and the encoding pauses
every millisecond or two. Writing does not stop a leader: an error is logged and counted, and another attempt follows
later. No fencing is needed, because readers reject a snapshot that the log does not confirm.
"""

import queue
from collections.abc import Callable, Iterable
from contextlib import closing
from typing import Final

import structlog

from controlplane.codec.outputs import encode_snapshot_part
from controlplane.config import SNAPSHOTS, SnapshotConfig
from controlplane.core.log.snapshots.body import parts_of, pieces_of, snapshot_id
from controlplane.core.log.snapshots.catalog import StoredSnapshot, part_key, sound, superseded_keys
from controlplane.core.log.snapshots.log_point import LogPoint
from controlplane.core.log.snapshots.schedule import LastSnapshot, due
from controlplane.core.log.state import State
from controlplane.core.values.identifiers import Seq, Term
from controlplane.errors import ControlPlaneError, LogUnavailableError
from controlplane.ports import Clock, Delivery, EventWriter, LogReader, Mailbox, OutgoingRecord, Threads
from controlplane.service.guarded_thread import GuardedThread
from controlplane.service.metrics import ControllerMetrics
from controlplane.topic_reading.start_point import read_catalog
from controlplane.version import __version__

_IDLE_S: Final = 0.5
_PAUSE_S: Final = 0.001
_BYTES_BETWEEN_PAUSES: Final = 16 * 1024
"""What is encoded in one or two ms, the longest time for which other threads wait for the interpreter lock."""
_DELIVERY_LIMIT_MS: Final = 60_000
_FLUSH_MS: Final = 100
_RETRY_MS: Final = 30_000

_log = structlog.get_logger(__name__)


class _StoppedError(Exception):
    """The controller is ending; the snapshot being written stays incomplete."""


class SnapshotKeeper:
    """A thread that writes a snapshot when one is due, and deletes every snapshot that has two newer ones."""

    def __init__(
        self,
        writer: EventWriter,
        open_reader: Callable[[], LogReader],
        clock: Clock,
        threads: Threads,
        config: SnapshotConfig,
        metrics: ControllerMetrics,
    ) -> None:
        """Set up the thread; ``writer`` belongs to it from :meth:`start` on."""
        self._writer = writer
        self._open_reader = open_reader
        self._clock = clock
        self._config = config
        self._metrics = metrics
        self._points: Mailbox[LogPoint] = threads.mailbox()
        self._thread = GuardedThread(threads, "snapshots", self._run)
        self._known: tuple[Term, LastSnapshot] | None = None
        self._attempts = 0
        self._not_before_ms = clock.monotonic_ms()

    def start(self) -> None:
        """Start the thread; it waits for points of the log, which a leader passes to :meth:`look`."""
        self._thread.start()

    def stop(self) -> None:
        """End the thread; a snapshot being written stays incomplete, and readers skip it."""
        self._thread.stop()

    def look(self, point: LogPoint) -> None:
        """Offer the leader's point of the log. Returns at once; while a snapshot is written only the first is kept."""
        if self._points.empty():
            self._points.put(point)

    def _run(self) -> None:
        while not self._thread.stopping.is_set():
            try:
                point = self._points.get(timeout=_IDLE_S)
            except queue.Empty:
                point = None
            if self._clock.monotonic_ms() >= self._not_before_ms:
                self._try(point)

    def _try(self, point: LogPoint | None) -> None:
        try:
            if point is None:
                self._writer.poll(0)  # callbacks would accumulate in the client while nothing is written
            else:
                self._consider(point)
        except _StoppedError:
            return
        except ControlPlaneError as error:
            _log.warning("snapshot not written, retrying later", error=str(error), retry_ms=_RETRY_MS)
        except Exception:  # noqa: BLE001 - a failed snapshot must not end a leader
            _log.exception("snapshot not written because of a defect, retrying later", retry_ms=_RETRY_MS)
        else:
            return
        self._metrics.snapshot_failures.inc()
        self._not_before_ms = self._clock.monotonic_ms() + _RETRY_MS

    def _consider(self, point: LogPoint) -> None:
        term = point.state.term
        if self._known is None or self._known[0] != term:
            # Other controllers have led meanwhile, and their snapshots count towards the schedule as well.
            self._known = (term, self._newest(self._stored(), point))
        why = due(self._config, self._known[1], point)
        if why:
            self._write(point, why)
            self._known = (term, LastSnapshot(point.state.seq, point.state.decided_at_ms, point.read_bytes))

    def _write(self, point: LogPoint, why: str) -> None:
        began_at_ms = self._clock.monotonic_ms()
        state = point.state
        self._attempts += 1
        name = snapshot_id(state.seq, state.term, self._attempts)
        body = self._encoded(state)
        parts = list(parts_of(name, point, body, __version__))
        self._send(
            OutgoingRecord(SNAPSHOTS, part_key(name, part.part), encode_snapshot_part(part), 0) for part in parts
        )
        stored = self._stored()
        if name not in [each.snapshot_id for each in sound(stored, state.log_id, state.seq)]:
            raise LogUnavailableError(f"snapshot {name} was written, but topic {SNAPSHOTS} does not hold all of it")
        removed = superseded_keys(stored, state.log_id, state.seq)
        self._send(OutgoingRecord(SNAPSHOTS, key, None, 0) for key in removed)
        elapsed_ms = self._clock.monotonic_ms() - began_at_ms
        self._metrics.snapshots.inc()
        self._metrics.snapshot_seq.set(state.seq)
        self._metrics.snapshot_bytes.set(len(body))
        _log.info(
            "snapshot written",
            snapshot=name,
            why=why,
            parts=len(parts),
            size_bytes=len(body),
            removed_records=len(removed),
            elapsed_ms=elapsed_ms,
        )

    def _encoded(self, state: State) -> bytes:
        pieces, since_pause = [], 0
        for piece in pieces_of(state):
            pieces.append(piece)
            since_pause += len(piece)
            if since_pause >= _BYTES_BETWEEN_PAUSES:
                self._pause()
                since_pause = 0
        return b"".join(pieces)

    def _send(self, records: Iterable[OutgoingRecord]) -> None:
        """Append the records and wait until Kafka has acknowledged all of them.

        Raises:
            LogUnavailableError: Kafka rejected a record, or did not answer in time.
        """
        deliveries: list[Delivery] = []
        sent = 0
        for record in records:
            self._writer.send(record, deliveries.append)
            self._writer.poll(0)
            self._pause()
            sent += 1
        deadline_ms = self._clock.monotonic_ms() + _DELIVERY_LIMIT_MS
        while len(deliveries) < sent:
            self._writer.flush(_FLUSH_MS)
            if self._clock.monotonic_ms() > deadline_ms:
                raise LogUnavailableError(
                    f"{sent - len(deliveries)} of {sent} records of a snapshot are not written yet"
                )
            self._pause()
        for delivery in deliveries:
            if delivery.error is not None:
                raise LogUnavailableError(f"Kafka did not take a record of a snapshot: {delivery.error}")

    def _stored(self) -> list[StoredSnapshot]:
        with closing(self._open_reader()) as reader:
            return read_catalog(reader, self._clock).newest_first()

    def _newest(self, stored: list[StoredSnapshot], point: LogPoint) -> LastSnapshot:
        """The newest sound snapshot, from which the schedule counts; the present point if there is none yet."""
        headers = [each.header for each in sound(stored, point.state.log_id, point.state.seq)]
        if not headers or headers[0] is None:
            return LastSnapshot(Seq(0), point.state.decided_at_ms, point.read_bytes)
        self._metrics.snapshot_seq.set(headers[0].seq)
        return LastSnapshot(headers[0].seq, headers[0].decided_at_ms, point.read_bytes)

    def _pause(self) -> None:
        if self._thread.stopping.wait(_PAUSE_S):
            raise _StoppedError
