"""Writes refused inputs to the ``dead-letters`` topic, and says which positions have to wait for that.

A refused heartbeat delays nothing: the next one says the same, and deaths are decided by heartbeats. A refused
membership record or intent stays before the positions of every decision until its letter is in the topic, because the
letter is the only answer that its sender gets. What other partitions hold, and what stands before it, is decided on.
"""

from collections import Counter, deque
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Final, NamedTuple

import structlog

from controlplane.codec.outputs import encode_dead_letter
from controlplane.config import DEAD_LETTERS
from controlplane.core.log.inputs import DECIDED_TOPICS
from controlplane.core.values.dead_letter import DeadLetter
from controlplane.core.values.identifiers import Coordinates, TopicPartition
from controlplane.core.values.inputs import Refusal
from controlplane.core.values.positions import position_key
from controlplane.errors import ConfigurationError, LogUnavailableError
from controlplane.ports import Delivery, EventWriter, OutgoingRecord
from controlplane.service.metrics import ControllerMetrics

_MOST_LETTERS: Final = 10_000
"""Letters that wait for the topic at most. Beyond that, letters of heartbeats are dropped and counted."""
_MOST_BYTES: Final = 64_000_000
"""Limit of the letters that wait. Beyond that, further ones are written without the bytes of the input."""
_DROPS_LOGGED_EVERY: Final = 1_000
_HEARTBEATS_LOGGED_EVERY: Final = 1_000
"""Each heartbeat and tick may be refused for the same reason, some hundred in a second."""

_log = structlog.get_logger(__name__)


class _Letter(NamedTuple):
    """A letter that is not in the topic yet, and the place of the refused input."""

    coordinates: Coordinates
    record: OutgoingRecord


class DeadLetterWriter:
    """The dead letters of one writer. Not thread-safe."""

    def __init__(self, writer: EventWriter, written_by: str, metrics: ControllerMetrics) -> None:
        """Use a writer; ``written_by`` is the writer's name in every dead letter."""
        self._writer = writer
        self._written_by = written_by
        self._metrics = metrics
        self._waiting: deque[_Letter] = deque()
        self._in_flight = 0
        self._bytes = 0
        self._dropped = 0
        self._refused: Counter[tuple[str, str, int]] = Counter()
        self._gating: set[Coordinates] = set()
        self._answered: set[Coordinates] = set()
        self._positions: Mapping[str, int] = {}
        self._denied: str | None = None

    def write(self, refusals: Iterable[Refusal]) -> None:
        """Send a dead letter for each refusal; letters that Kafka does not accept now are sent again later.

        A membership record or an intent that is refused again, because no positions have passed it yet, gets no further
        letter.

        Raises:
            ConfigurationError: this controller has no right to write dead letters.
        """
        for refusal in refusals:
            coordinates = refusal.coordinates
            if coordinates in self._gating or coordinates in self._answered:
                continue
            self._metrics.dead_letters.labels(refusal.reason).inc()
            gates = coordinates.topic in DECIDED_TOPICS
            self._tell(refusal, every=1 if gates else _HEARTBEATS_LOGGED_EVERY)
            if not gates and self.unwritten >= _MOST_LETTERS:
                self._drop()
                continue
            letter = _Letter(coordinates, self._record(refusal))
            self._bytes += len(letter.record.value or b"")
            self._waiting.append(letter)
            if gates:
                self._gating.add(coordinates)
        self.listen()

    def listen(self) -> None:
        """Send letters that wait, and process the client's callbacks; without that, both accumulate.

        Raises:
            ConfigurationError: this controller has no right to write dead letters.
        """
        self._send_waiting()
        self._writer.poll(0)  # only polling removes delivered records from the client's queue
        if self._denied is not None:
            raise ConfigurationError(self._denied)

    @property
    def unwritten(self) -> int:
        """The number of letters that are not in the topic yet."""
        return self._in_flight + len(self._waiting)

    @property
    def unanswered(self) -> int:
        """The number of refused membership records and intents whose letters are not in the topic yet."""
        return len(self._gating)

    def gates(self, positions: Mapping[str, int]) -> dict[TopicPartition, int]:
        """For each partition the first offset that the positions of a decision must not pass.

        Args:
            positions: those of the last decision. What they have passed waits for nothing.
        """
        if positions is not self._positions:
            self._positions = positions
            self._gating = _not_passed(self._gating, positions)
            self._answered = _not_passed(self._answered, positions)
        found: dict[TopicPartition, int] = {}
        for topic, partition, offset, _ in self._gating:
            place = TopicPartition(topic, partition)
            found[place] = min(offset, found.get(place, offset))
        return found

    def flush(self, timeout_ms: int) -> None:
        """Wait until every letter is in the topic, but no longer than this; see :meth:`gates` for what is missing then.

        Raises:
            ConfigurationError: this controller has no right to write dead letters.
        """
        self.listen()
        if self.unwritten:
            self._writer.flush(timeout_ms)
            self.listen()

    def _record(self, refusal: Refusal) -> OutgoingRecord:
        coordinates = refusal.coordinates
        letter = DeadLetter(
            reason=refusal.reason,
            detail=refusal.detail,
            topic=coordinates.topic,
            partition=coordinates.partition,
            offset=coordinates.offset,
            append_time_ms=coordinates.append_time_ms,
            writer=self._written_by,
            raw=refusal.raw if self._bytes < _MOST_BYTES else b"",
            raw_length_bytes=refusal.raw_length_bytes,
        )
        return OutgoingRecord(DEAD_LETTERS, str(coordinates).encode(), encode_dead_letter(letter))

    def _tell(self, refusal: Refusal, every: int) -> None:
        """Log a refusal, of those with the same reason in one partition every so many."""
        coordinates = refusal.coordinates
        kind = refusal.reason, coordinates.topic, coordinates.partition
        if self._refused[kind] % every == 0:
            _log.info(
                "input refused",
                reason=refusal.reason,
                detail=refusal.detail,
                at=str(coordinates),
                refused=self._refused[kind] + 1,
            )
        self._refused[kind] += 1

    def _drop(self) -> None:
        self._metrics.dead_letters_dropped.inc()
        if self._dropped % _DROPS_LOGGED_EVERY == 0:
            _log.error(
                "refused heartbeats get no dead letter, because too many letters wait",
                topic=DEAD_LETTERS,
                waiting=self.unwritten,
                dropped=self._dropped + 1,
            )
        self._dropped += 1

    def _send_waiting(self) -> None:
        while self._waiting:
            letter = self._waiting[0]
            try:
                self._writer.send(letter.record, partial(self._on_delivery, letter))
            except LogUnavailableError:
                return
            self._waiting.popleft()
            self._in_flight += 1

    def _on_delivery(self, letter: _Letter, delivery: Delivery) -> None:
        self._in_flight -= 1
        if delivery.denied:
            self._denied = delivery.error
        if delivery.error is not None:
            self._waiting.append(letter)
            return
        self._bytes -= len(letter.record.value or b"")
        if letter.coordinates in self._gating:
            self._gating.discard(letter.coordinates)
            if len(self._answered) < _MOST_LETTERS:  # beyond that some get a second letter
                self._answered.add(letter.coordinates)


def _not_passed(refused: set[Coordinates], positions: Mapping[str, int]) -> set[Coordinates]:
    """The refused inputs that these positions have not passed."""
    return {
        each
        for each in refused
        if each.offset >= positions.get(position_key(TopicPartition(each.topic, each.partition)), 0)
    }
