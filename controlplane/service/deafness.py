"""Notices that a controller does not read an input partition any further, although records stand there.

A controller that reads most of its inputs looks healthy, and yet it sees no death, no join or no intent in the
partition that it does not read: its connection to one broker may be gone in one direction, or its client be confused.
It compares how far it has read with the ends that Kafka is asked for now and then. These are last stable offsets: a
transaction that hangs keeps every reader from what stands behind it, and another leader would read no more.
"""

from collections.abc import Callable, Mapping
from contextlib import closing
from typing import Final

import structlog

from controlplane.core.election.leading import DEAF_AFTER_MS
from controlplane.core.log.inputs import INPUT_TOPICS
from controlplane.core.values.identifiers import TopicPartition
from controlplane.core.values.positions import position_key
from controlplane.errors import RetryableError
from controlplane.ports import Clock, LogReader, Threads
from controlplane.service.guarded_thread import GuardedThread
from controlplane.service.ticker import Ticker

_ASK_EVERY_MS: Final = 2_000
_ANSWER_COUNTS_MS: Final = 6_000
"""Time for which an answer of Kafka shows that the partition can be read. Where partitions of each topic have no
leader, the next answers come after 5 s."""

_log = structlog.get_logger(__name__)


class DeafnessWatch:
    """Compares what was read with what is known to stand there, on the monotonic clock. Not thread-safe."""

    def __init__(self, clock: Clock) -> None:
        """Begin without knowledge of any partition."""
        self._clock = clock
        self._awaited: dict[TopicPartition, tuple[int, int]] = {}
        self._told: frozenset[TopicPartition] = frozenset()

    def begin_again(self) -> None:
        """Give every partition the whole time again, as for a controller that has just begun to lead."""
        self._awaited = {}

    def look(self, read_to: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int]) -> set[TopicPartition]:
        """The partitions that have not been read on for too long; changes are logged.

        Args:
            read_to: for each partition that is read the offset before which everything was read.
            ends: for each partition of which Kafka answers now the offset up to which it can be read. The time of a
                partition that is missing begins again: nobody reads what Kafka does not answer.
        """
        now_ms = self._clock.monotonic_ms()
        awaited: dict[TopicPartition, tuple[int, int]] = {}
        for place, offset in read_to.items():
            if place not in ends:  # nobody could read it now
                continue
            end, since_ms = self._awaited.get(place, (0, 0))
            if offset < end:
                awaited[place] = end, since_ms
            elif offset < ends[place]:
                awaited[place] = ends[place], now_ms
        self._awaited = awaited
        deaf = {place for place, (_, since_ms) in awaited.items() if now_ms - since_ms >= DEAF_AFTER_MS}
        self._tell(frozenset(deaf))
        return deaf

    def _tell(self, deaf: frozenset[TopicPartition]) -> None:
        if deaf == self._told:
            return
        self._told = deaf
        if deaf:
            _log.error("partitions are not read on, although records stand there", partitions=_named(deaf))
        else:
            _log.info("every partition is read on again")


class InputEnds:
    """A thread that asks Kafka now and then where the input topics end; their readers do not wait for it."""

    def __init__(self, open_reader: Callable[[], LogReader], clock: Clock, threads: Threads) -> None:
        """Set up the thread."""
        self._open_reader = open_reader
        self._clock = clock
        self._ends: dict[TopicPartition, int] = {}
        self._answered_at_ms: dict[TopicPartition, int] = {}
        self._thread = GuardedThread(threads, "input-ends", self._run)

    def start(self) -> None:
        """Begin to ask; :meth:`worst_partition_ms` counts from here."""
        self._answered_at_ms = {TopicPartition(topic, 0): self._clock.monotonic_ms() for topic in INPUT_TOPICS}
        self._thread.start()

    def stop(self) -> None:
        """End the thread."""
        self._thread.stop()

    def last(self) -> Mapping[TopicPartition, int]:
        """The last stable offsets in Kafka's last answers; partitions of which it does not answer now are missing.

        Raises:
            BaseException: the exception that ended the thread, if any.
        """
        self._thread.require_alive()
        now_ms = self._clock.monotonic_ms()
        answered_at_ms = dict(self._answered_at_ms)
        ends = dict(self._ends).items()
        return {place: end for place, end in ends if now_ms - answered_at_ms[place] < _ANSWER_COUNTS_MS}

    def worst_partition_ms(self) -> int:
        """Time since Kafka said where a partition ends, of the partition for which that is longest; 0 before the start.

        Raises:
            BaseException: the exception that ended the thread, if any.
        """
        self._thread.require_alive()
        now_ms = self._clock.monotonic_ms()
        return now_ms - min(dict(self._answered_at_ms).values(), default=now_ms)

    def _run(self) -> None:
        with closing(self._open_reader()) as reader:
            while not self._thread.stopping.wait(_ASK_EVERY_MS / 1_000):
                self._ask(reader)

    def _ask(self, reader: LogReader) -> None:
        for topic in INPUT_TOPICS:
            try:
                ends = reader.end_offsets(topic, only_answering=True)
            except RetryableError as error:
                _log.debug("Kafka does not say where an input ends", topic=topic, error=str(error))
                continue
            now_ms = self._clock.monotonic_ms()
            self._answered_at_ms |= dict.fromkeys(ends, now_ms)
            self._ends |= ends


def worst_partition_ms(ticker: Ticker, ends: InputEnds) -> int:
    """Time for which Kafka has not answered this controller about the input partition of which that is longest."""
    return max(ticker.worst_partition_ms(), ends.worst_partition_ms())


def _named(places: frozenset[TopicPartition]) -> list[str]:
    return [position_key(place) for place in sorted(places)]
