"""Asks Kafka now and then where partitions end, in a thread, so that their readers do not wait for it.

The ends of inputs show whether a controller reads on. Answers about the other topics that a leader reads or writes show
whether it reaches their brokers at all.
"""

from collections.abc import Callable, Mapping
from contextlib import closing
from typing import Final, NamedTuple

import structlog

from controlplane.config import DEAD_LETTERS, DECISIONS, ROUTING_TABLE
from controlplane.core.log.inputs import INPUT_TOPICS
from controlplane.core.values.identifiers import TopicPartition
from controlplane.errors import RetryableError
from controlplane.ports import Clock, LogReader, Threads
from controlplane.service.guarded_thread import GuardedThread
from controlplane.service.ticker import Ticker

_TOPICS: Final = (*INPUT_TOPICS, DECISIONS, ROUTING_TABLE, DEAD_LETTERS)
"""The topics that a leader needs. An input that is refused holds back its partition until its letter is written."""
ASKED_EVERY_MS: Final = 2_000
_ANSWER_COUNTS_MS: Final = 6_000
"""Time for which an answer of Kafka shows that the partition can be read. Where partitions of each topic have no
leader, the next answers come after 5 s."""

_log = structlog.get_logger(__name__)


class _LastAnswer(NamedTuple):
    """What Kafka answered last about a partition.

    Attributes:
        end: the last stable offset; None before the first answer.
        at_ms: when it answered, or when the thread began to ask; monotonic.
    """

    end: int | None
    at_ms: int


class TopicEnds:
    """The thread. Other threads may ask it for the last answers at any time."""

    def __init__(self, open_reader: Callable[[], LogReader], clock: Clock, threads: Threads) -> None:
        """Set up the thread."""
        self._open_reader = open_reader
        self._clock = clock
        self._answers: Mapping[TopicPartition, _LastAnswer] = {}
        """Replaced as a whole, so that a reader in another thread sees an end and its time together."""
        self._thread = GuardedThread(threads, "topic-ends", self._run)

    def start(self) -> None:
        """Begin to ask; :meth:`longest_unanswered_ms` counts from here."""
        now_ms = self._clock.monotonic_ms()
        self._answers = {TopicPartition(topic, 0): _LastAnswer(None, now_ms) for topic in _TOPICS}
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
        answers, now_ms = self._answers, self._clock.monotonic_ms()
        return {
            place: answer.end
            for place, answer in answers.items()
            if answer.end is not None and now_ms - answer.at_ms < _ANSWER_COUNTS_MS
        }

    @property
    def has_answers(self) -> bool:
        """Whether Kafka has answered about every topic once."""
        return all(answer.end is not None for answer in self._answers.values())

    def longest_unanswered_ms(self) -> int:
        """Time since Kafka said where a partition ends, of the partition for which that is longest; 0 before the start.

        Raises:
            BaseException: the exception that ended the thread, if any.
        """
        self._thread.require_alive()
        answers, now_ms = self._answers, self._clock.monotonic_ms()
        return now_ms - min((answer.at_ms for answer in answers.values()), default=now_ms)

    def _run(self) -> None:
        with closing(self._open_reader()) as reader:
            while not self._thread.stopping.wait(ASKED_EVERY_MS / 1_000):
                self._ask(reader)

    def _ask(self, reader: LogReader) -> None:
        for topic in _TOPICS:
            try:
                ends = reader.end_offsets(topic, only_answering=True)
            except RetryableError as error:
                _log.debug("Kafka does not say where a topic ends", topic=topic, error=str(error))
                continue
            now_ms = self._clock.monotonic_ms()
            self._answers = {**self._answers, **{place: _LastAnswer(end, now_ms) for place, end in ends.items()}}


def longest_unanswered_ms(ticker: Ticker, ends: TopicEnds) -> int:
    """Time for which Kafka has not answered this controller about the partition of which that is longest."""
    return max(ticker.longest_unanswered_ms(), ends.longest_unanswered_ms())
