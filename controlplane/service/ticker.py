"""Writes ticks, which mark time in the log, to each partition of ``heartbeats``; standbys tick like the leader."""

from collections.abc import Iterable

import structlog

from controlplane.codec.inputs import encode_input
from controlplane.config import HEARTBEATS
from controlplane.core.membership.inputs import Tick
from controlplane.core.values.identifiers import ControllerId
from controlplane.errors import ConfigurationError, LogUnavailableError
from controlplane.ports import Clock, Delivery, EventWriter, OutgoingRecord, Threads

_log = structlog.get_logger(__name__)


class Ticker:
    """A thread that writes ticks to Kafka."""

    def __init__(
        self, writer: EventWriter, clock: Clock, threads: Threads, controller_id: ControllerId, interval_ms: int
    ) -> None:
        """Set up the thread; ``writer`` belongs to it from :meth:`start` on."""
        self._writer = writer
        self._clock = clock
        self._controller_id = controller_id
        self._interval_ms = interval_ms
        self._stop = threads.signal()
        self._acknowledged_at_ms = clock.monotonic_ms()
        self._wanted_partitions = 1
        self._failure: BaseException | None = None
        self._denied: str | None = None
        self._thread = threads.thread(self._run, "ticker")

    def start(self) -> None:
        """Begin to tick; :meth:`since_acknowledged_ms` counts from here."""
        self._acknowledged_at_ms = self._clock.monotonic_ms()
        self._thread.start()

    def cover(self, partitions: int) -> None:
        """Tick to at least this many partitions; Kafka is asked for their number only if this is more than before."""
        self._wanted_partitions = partitions

    def stop(self) -> None:
        """End the thread; ticks still queued are dropped."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(timeout=5)

    def since_acknowledged_ms(self) -> int:
        """Milliseconds since Kafka last acknowledged a tick, on the monotonic clock.

        Raises:
            BaseException: the exception that ended the ticker's thread, if any.
        """
        if self._failure is not None:
            raise self._failure
        return self._clock.monotonic_ms() - self._acknowledged_at_ms

    def _run(self) -> None:
        try:
            partitions = 0
            while not self._stop.is_set():
                began_at_ms = self._clock.monotonic_ms()
                try:
                    self._tick(range(partitions))
                    if partitions < self._wanted_partitions:
                        counted = self._writer.partition_count(HEARTBEATS)
                        self._tick(range(partitions, counted))
                        partitions = counted
                except LogUnavailableError as error:
                    _log.warning("tick not written", error=str(error))
                self._writer.poll(0)
                self._refuse_denial()
                elapsed_ms = self._clock.monotonic_ms() - began_at_ms
                self._stop.wait(max(self._interval_ms - elapsed_ms, 1) / 1_000)
        except BaseException as failure:  # noqa: BLE001 - handed to the controller's thread, which raises it
            self._failure = failure

    def _refuse_denial(self) -> None:
        if self._denied is not None:
            raise ConfigurationError(self._denied)

    def _tick(self, partitions: Iterable[int]) -> None:
        value = encode_input(Tick(self._controller_id, self._clock.wall_ms()))
        key = self._controller_id.encode()
        for partition in partitions:
            self._writer.send(OutgoingRecord(HEARTBEATS, key, value, partition), self._on_delivery)

    def _on_delivery(self, delivery: Delivery) -> None:
        if delivery.denied:
            self._denied = delivery.error
        if delivery.error is None:
            self._acknowledged_at_ms = self._clock.monotonic_ms()
