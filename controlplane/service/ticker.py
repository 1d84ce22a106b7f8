"""Writes ticks, which mark time in the log, to each partition of ``heartbeats``; standbys tick like the leader."""

from collections import Counter
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Final

import structlog

from controlplane.codec.inputs import encode_input
from controlplane.config import HEARTBEATS
from controlplane.core.membership.inputs import Tick
from controlplane.core.values.identifiers import ControllerId, Epoch, Seq, TopicPartition
from controlplane.errors import ConfigurationError, LogUnavailableError
from controlplane.ports import Clock, Delivery, EventWriter, OutgoingRecord, Threads
from controlplane.service.guarded_thread import GuardedThread

UNANSWERED_MS: Final = 500
"""Time whose ticks to one partition may wait for their answers at once: ticks come in time if an answer takes as long.

More of them would mark little time, because they arrive together once the partition takes records again. A controller's
hundreds took all of a core for seconds after the death of one of three brokers, when every process had most to do.
"""

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
        self._unanswered_at_most = max(2, -(-UNANSWERED_MS // interval_ms))
        self._acknowledged_at_ms = self._began_at_ms = clock.monotonic_ms()
        self._acknowledged_at_ms_in: dict[TopicPartition, int] = {}
        self._appended_at_ms: dict[TopicPartition, int] = {}
        self._unanswered: Counter[int] = Counter()
        self._stood_still_ms = 0
        self._wakes_at_ms: int | None = None
        self._partitions = 0
        self._wanted_partitions = 1
        self._read: tuple[Seq, Epoch] = (Seq(0), Epoch(0))
        self._denied: str | None = None
        self._thread = GuardedThread(threads, "ticker", self._run)

    def start(self) -> None:
        """Begin to tick; :meth:`since_acknowledged_ms` and :meth:`longest_unanswered_ms` count from here."""
        self._acknowledged_at_ms = self._began_at_ms = self._clock.monotonic_ms()
        self._thread.start()

    def serve_idle(self) -> None:
        """Run the callbacks of the writer before :meth:`start`; its reports accumulate until then."""
        self._writer.poll(0)

    def cover(self, partitions: int) -> None:
        """Tick to at least this many partitions; Kafka is asked for their number only if this is more than before."""
        self._wanted_partitions = partitions

    def name(self, seq: Seq, table_epoch: Epoch) -> None:
        """Name the last decision that this controller has read in the next ticks, with the table epoch after it."""
        self._read = seq, table_epoch

    def stop(self) -> None:
        """End the thread; ticks still queued are dropped."""
        self._thread.stop()

    def since_acknowledged_ms(self) -> int:
        """Milliseconds since Kafka last acknowledged a tick, on the monotonic clock.

        Raises:
            BaseException: the exception that ended the ticker's thread, if any.
        """
        self._thread.require_alive()
        return self._clock.monotonic_ms() - self._acknowledged_at_ms

    def stood_still_ms(self) -> int:
        """The longest time for which this process did not run, since the last call.

        It is the time by which the ticker's thread woke too late. A thread that waits for an answer of Kafka does not
        count as one that stood still.
        """
        wakes_at_ms, longest_ms = self._wakes_at_ms, self._stood_still_ms
        self._stood_still_ms = 0
        return longest_ms if wakes_at_ms is None else max(longest_ms, self._clock.monotonic_ms() - wakes_at_ms)

    def longest_unanswered_ms(self) -> int:
        """Time since Kafka acknowledged a tick in a partition, of the partition for which that is longest."""
        times_ms = dict(self._acknowledged_at_ms_in)
        places = (TopicPartition(HEARTBEATS, number) for number in range(self._partitions))
        oldest_ms = min((times_ms.get(place, self._began_at_ms) for place in places), default=self._began_at_ms)
        return self._clock.monotonic_ms() - oldest_ms

    def acknowledged_within(self, milliseconds: int) -> set[TopicPartition]:
        """The partitions in which Kafka has acknowledged a tick for no longer than this."""
        now_ms = self._clock.monotonic_ms()
        times_ms = dict(self._acknowledged_at_ms_in)
        return {place for place, at_ms in times_ms.items() if now_ms - at_ms < milliseconds}

    def broker_times_ms(self) -> tuple[Mapping[TopicPartition, int], bool]:
        """When this controller's last ticks were appended, by the brokers' clocks, and whether none is missing.

        Returns:
            For each partition with an acknowledged tick its append time in ms, and whether these are all partitions.

        Raises:
            BaseException: the exception that ended the ticker's thread, if any.
        """
        self._thread.require_alive()
        times_ms = dict(self._appended_at_ms)
        return times_ms, 0 < self._partitions <= len(times_ms)

    def _run(self) -> None:
        while not self._thread.stopping.is_set():
            began_at_ms = self._clock.monotonic_ms()
            try:
                self._tick(range(self._partitions))
                if self._partitions < self._wanted_partitions:
                    counted = self._writer.partition_count(HEARTBEATS)
                    self._tick(range(self._partitions, counted))
                    self._partitions = counted
            except LogUnavailableError as error:
                _log.warning("tick not written", error=str(error))
            self._writer.poll(0)
            self._refuse_denial()
            self._rest(began_at_ms)

    def _rest(self, began_at_ms: int) -> None:
        """Wait for the next round, and note by how much this thread wakes too late."""
        now_ms = self._clock.monotonic_ms()
        wakes_at_ms = self._wakes_at_ms = max(began_at_ms + self._interval_ms, now_ms + 1)
        self._thread.stopping.wait((wakes_at_ms - now_ms) / 1_000)
        self._stood_still_ms = max(self._stood_still_ms, self._clock.monotonic_ms() - wakes_at_ms)
        self._wakes_at_ms = None

    def _refuse_denial(self) -> None:
        if self._denied is not None:
            raise ConfigurationError(self._denied)

    def _tick(self, partitions: Iterable[int]) -> None:
        value = encode_input(Tick(self._controller_id, self._clock.wall_ms(), *self._read))
        key = self._controller_id.encode()
        for number in partitions:
            if self._unanswered[number] < self._unanswered_at_most:
                self._writer.send(OutgoingRecord(HEARTBEATS, key, value, number), partial(self._on_delivery, number))
                self._unanswered[number] += 1

    def _on_delivery(self, number: int, delivery: Delivery) -> None:
        self._unanswered[number] -= 1
        if delivery.denied:
            self._denied = delivery.error
        if delivery.error is None:
            self._acknowledged_at_ms = self._clock.monotonic_ms()
            place = TopicPartition(delivery.topic, delivery.partition)
            self._acknowledged_at_ms_in[place] = self._acknowledged_at_ms
            self._appended_at_ms[place] = delivery.append_time_ms
