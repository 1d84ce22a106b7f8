"""A producer that is replaced if it gets no acknowledgements although Kafka answers other clients (decision 0014).

What is expected of a producer is an acknowledgement from each partition for which it gave a record up. It is suspected
only when it has given up another record: while nothing is sent, a missing acknowledgement proves nothing. A producer
with a fatal error is replaced at once.
"""

import threading
import time
from collections.abc import Callable
from collections.abc import Set as AbstractSet
from functools import partial

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer

from controlplane.adapters.kafka_errors import error_of, in_words, is_purged
from controlplane.adapters.kafka_log_listener import LogListener
from controlplane.adapters.kafka_probe import ANY_PARTITION, Place, Probe
from controlplane.adapters.kafka_replaceable_client import ReplaceableClient
from controlplane.adapters.kafka_stall_detector import LONGEST_STALL_LIMIT_S, StallDetector
from controlplane.ports.callbacks import CallbackGuard

_CLOSING_DRAIN_S = 1.0
_SERVE_STEP_S = 0.05
_TIMED_OUT = KafkaError._MSG_TIMED_OUT  # noqa: SLF001 - librdkafka's own codes begin with an underscore

Report = Callable[[KafkaError | None, Message], None]
"""Receives the result of one record: None or the reason why it was given up, and the record."""


class ReplaceableProducer(ReplaceableClient[Producer]):
    """Owns one producer at a time, and former ones until each of their records is reported. Thread-safe.

    Reports run in the thread that serves, drains or closes. Each record that was produced is reported once, whichever
    producer held it.

    Args:
        cluster: see :class:`ReplaceableClient`.
        role: as above.
        make: as above.
        make_probing: makes the consumer of a probe: a producer can ask who leads, but not the leaders themselves.
        message_timeout_s: time without an acknowledgement after which a producer gives a record up.
        now_s: a monotonic clock, in seconds.
    """

    def __init__(
        self,
        cluster: str,
        role: str,
        make: Callable[[LogListener], Producer],
        make_probing: Callable[[LogListener], Consumer],
        *,
        message_timeout_s: float,
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        """Make the first producer; connections are opened when they are needed."""
        super().__init__(cluster, role, make)
        self._make_probing = make_probing
        self._now_s = now_s
        # Counted here, because librdkafka's own counts include its log lines and errors.
        self._unreported = 0
        self._topics: set[str] = set()
        self._callbacks = CallbackGuard()
        self._retired: list[Producer] = []
        self._retired_for: KafkaError | None = None
        self._given_up_at_s: dict[Place, float] = {}
        self._given_up_kept_s = LONGEST_STALL_LIMIT_S + message_timeout_s
        self._has_given_up = False

    @property
    def unreported(self) -> int:
        """The number of records that were produced and not reported yet."""
        with self._lock:
            return self._unreported

    def produce(self, place: Place, key: bytes, value: bytes | None, report: Report) -> None:
        """Queue a record. A producer with a fatal error is replaced, and the new one takes the record.

        Args:
            place: the topic's full name, and the partition, or :data:`ANY_PARTITION` if the key determines it.
            key: the record's key.
            value: None is a tombstone.
            report: called once, by a later call of another method.

        Raises:
            BufferError: the producer's queue is full.
            KafkaException: the producer refuses the record.
        """
        name, partition = place
        self._topics.add(name)
        reported = self._counted(name, report)
        producer = self._current
        try:
            # The lock prevents that the record goes into a producer that was replaced meanwhile.
            with self._lock:
                producer = self._current
                producer.produce(name, value, key, partition, on_delivery=reported)
                self._unreported += 1
        except KafkaException as exception:
            error = error_of(exception)
            if not error.fatal():
                raise
            self._replace_broken(producer, error)
            with self._lock:
                self._current.produce(name, value, key, partition, on_delivery=reported)
                self._unreported += 1

    def cause_of(self, error: KafkaError) -> KafkaError:
        """The reason why a record was given up; if its producer was replaced, the reason for that."""
        retired_for = self._retired_for
        return retired_for if retired_for is not None and is_purged(error) else error

    def serve(self, timeout_s: float) -> None:
        """Run the callbacks that are due, after waiting for one until the timeout; then check the producer.

        Raises:
            RuntimeError: called in a report.
        """
        self._callbacks.refuse_in_callback()
        self._serve_retired()
        self._serve(self._current, timeout_s)
        if self.unreported:
            self.listener.new_leaders.ask(self._current, tuple(self._topics))
        self._check_unacknowledged()

    def drain(self, timeout_s: float) -> int:
        """Serve until each record is reported or the time is over; return how many are not reported yet.

        Raises:
            RuntimeError: called in a report.
        """
        self._callbacks.refuse_in_callback()
        self._drain(timeout_s)
        self._check_unacknowledged()
        return self.unreported

    def replace_unanswered(self, asked: Producer, cause: KafkaError) -> None:
        """Replace a producer that did not answer a request in time.

        A producer with unreported records is kept: they would be given up, and they show by themselves whether the
        producer is broken.
        """
        with self._lock:
            if not self._unreported:
                self._try_replace(asked, cause)

    def close(self) -> None:
        """Drain for a short time; records that are not acknowledged by then are given up."""
        self._drain(_CLOSING_DRAIN_S)
        self._current.purge()
        self._drain(_CLOSING_DRAIN_S)

    def _counted(self, name: str, report: Report) -> Report:
        """Wrap a report so that it is counted, also as run if the owner's part of it raises an error."""
        produced_at_s = self._now_s()

        def reported(error: KafkaError | None, message: Message) -> None:
            try:
                self._note(name, message.partition(), error, produced_at_s)
                with self._callbacks.callback():
                    report(error, message)
            finally:
                with self._lock:
                    self._unreported -= 1

        return reported

    def _note(self, name: str, partition: int | None, error: KafkaError | None, produced_at_s: float) -> None:
        """Expect an acknowledgement since the time when the first record of those given up in a row was produced."""
        place = name, ANY_PARTITION if partition is None else partition
        with self._lock:
            if error is None:
                now_s = self._now_s()
                self.stalls.arrived(place, now_s)
                self.stalls.arrived((name, ANY_PARTITION), now_s)
            elif error.code() == _TIMED_OUT:
                self.stalls.expect(place, produced_at_s)
                self._given_up_at_s[place] = self._now_s()
                self._has_given_up = True

    def _check_unacknowledged(self) -> None:
        """Check the producer if a probe is in progress, or if a record was given up since the last check."""
        now_s = self._now_s()
        with self._lock:
            if not self.is_suspected:
                if not self._has_given_up:
                    return
                self._has_given_up = False
                since_s = now_s - self._given_up_kept_s
                self._given_up_at_s = {place: at_s for place, at_s in self._given_up_at_s.items() if at_s >= since_s}
                self.stalls.expect_only(self._given_up_at_s.keys())
            self._check(now_s)

    def _drain(self, timeout_s: float) -> None:
        self._serve_retired()
        deadline_s = self._now_s() + timeout_s
        # Not with the producer's own flush, which runs further callbacks while a fatal error's exception is pending.
        while self.unreported and (remaining_s := deadline_s - self._now_s()) > 0:
            self._serve(self._current, min(remaining_s, _SERVE_STEP_S))
            self.listener.new_leaders.ask(self._current, tuple(self._topics))
            self._serve_retired()

    def _serve(self, producer: Producer, timeout_s: float) -> None:
        """Run callbacks; a fatal error is raised here as well as by the next record."""
        try:
            producer.poll(timeout_s)
        except KafkaException as exception:
            error = error_of(exception)
            if not error.fatal():
                raise
            self._replace_broken(producer, error)

    def _serve_retired(self) -> None:
        """Run the last callbacks of producers that were replaced, and free those that have none left."""
        if not self._retired:
            return
        self._run_last_callbacks(self._retired)
        with self._lock:
            finished = [producer for producer in self._retired if not len(producer)]
            self._retired = [producer for producer in self._retired if producer not in finished]
            if not self._retired:
                self._retired_for = None
        if finished:
            # Dropping the last reference joins librdkafka's threads; closing would not wait for another thread inside.
            threading.Thread(target=finished.clear, name="kafka-close", daemon=True).start()

    def _run_last_callbacks(self, producers: list[Producer]) -> None:
        """Run callbacks, in a frame of its own: with a reference in its frame, the caller would free the producer."""
        for producer in producers:
            if len(producer):
                self._serve(producer, _SERVE_STEP_S)

    def _replace_broken(self, broken: Producer, error: KafkaError) -> None:
        """Replace a producer after a fatal error; an idempotent producer that is out of sequence sends no more."""
        with self._lock:
            if not self._replace(broken, error):
                return
            self.stalls = StallDetector()
        self._logger.warning("Kafka producer replaced after a fatal error", error=in_words(error))

    def _start_probe(self, places: AbstractSet[Place]) -> Probe:
        return Probe(partial(self._make_probing, self.listener), places, self._logger, self._current)

    def _retire(self, former: Producer, cause: KafkaError) -> None:
        self._retired_for = cause
        former.purge()
        self._retired.append(former)
