"""Reads the input topics, decodes their records and folds them into observations; invalid records become refusals."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import Final

import structlog

from controlplane.codec.framing import Framing
from controlplane.codec.inputs import decode_input
from controlplane.config import HEARTBEATS
from controlplane.core.deciding.decide import DecideResult, follow_up, is_written
from controlplane.core.deciding.observations import Observations, observe, skip_to_recorded, with_rest
from controlplane.core.log.inputs import DECIDED_TOPICS, INPUT_TOPICS
from controlplane.core.log.state import State
from controlplane.core.values.identifiers import Coordinates, Seq, TopicPartition
from controlplane.core.values.inputs import InputRecord, Refusal
from controlplane.core.values.positions import place_of, position_key
from controlplane.errors import InvalidInputError, InvariantViolationError
from controlplane.ports import Clock, LogReader, RawRecord
from controlplane.service.metrics import ControllerMetrics
from controlplane.topic_reading.deadlines import READ_LIMIT_MS, STALL_LIMIT_MS, ReadDeadline

_log = structlog.get_logger(__name__)

_MAX_RECORDS: Final = 2_000
_LOOK_BACK_LIMITS: Final = 3
"""A cold start reads back this many silence limits: enough to measure every present silence, and less than a window.
The *term opened* event records the offsets, so that the audit begins at the same ones (decision 0011).
"""
_LOOK_BACK_RECORDS: Final = 100_000
"""Most records of one partition that are read back. Not a duration, because brokers' clocks may differ or be set."""
_SAME_CLOCK_MS: Final = 1_000
"""Partitions whose times differ by no more are asked together, for the earliest of these times."""
_REFUSALS_KEPT: Final = 10_000
"""By a standby, which may follow for days beside a foreign writer. A leader keeps all until it has written them."""
_DROPS_LOGGED_EVERY_MS: Final = 10_000
_REFUSED_BYTES_KEPT: Final = 64_000_000
"""Limit of all refusals together. A standby keeps them until a leader has written their dead letters, and a foreign
writer can put garbage into each. Beyond this limit the older ones are kept without their bytes."""
_MOST_PENDING: Final = 20_000
"""Limit of inputs that no decision has taken up, such as the joins that nodes repeat while no controller leads."""


class InputReader:
    """The observations of one controller, kept up to date whether it leads or not; changed only by these methods."""

    def __init__(
        self,
        open_reader: Callable[[], LogReader],
        clock: Clock,
        metrics: ControllerMetrics,
        framing: Framing | None = None,
        unanswered: Callable[[], int] = lambda: 0,
    ) -> None:
        """Set up without reading: :meth:`start` begins.

        Args:
            open_reader: makes a reader of the cluster's topics.
            clock: for deadlines.
            metrics: counts inputs.
            framing: None without a schema registry.
            unanswered: the number of refused inputs, without heartbeats, whose dead letters wait. They count among
                the inputs that wait. Letters of heartbeats do not: they may wait for as long as their topic is away.
        """
        self._open_reader = open_reader
        self._clock = clock
        self._metrics = metrics
        self._framing = framing
        self._unanswered = unanswered
        self._reader: LogReader | None = None
        self._holds_back = False
        self._ended_at: dict[TopicPartition, int] = {}
        self._catching_up_to: Mapping[TopicPartition, int] = {}
        self._observations = Observations()
        self._observed_from: Mapping[TopicPartition, int] = {}
        self._refusals: list[Refusal] = []
        self._dropped_refusals = 0
        self._drops_logged_at_ms: int | None = None
        self._caught_up_with: tuple[Seq, Observations] | None = None
        self._heard_at_ms = clock.monotonic_ms()

    @property
    def observations(self) -> Observations:
        """Everything observed so far."""
        return self._observations

    @property
    def observed_from(self) -> Mapping[TopicPartition, int]:
        """The first offset that was read, by partition."""
        return self._observed_from

    def start(self, state: State, times_ms: Mapping[TopicPartition, int]) -> None:
        """Begin at the state's positions; in ``heartbeats``, begin three silence limits before the present time.

        The present time of a partition is that of its broker, which is known from the append of a tick. A partition
        without it takes the earliest of the others. Of each partition at most the last 100,000 records are read back;
        silences count from there then. The time is not measured back from the last record: after an outage of all
        controllers and nodes that record is old, and what nodes reported of their slots before the outage would count
        as reported just now.

        A partition that does not answer is not waited for: it is read from the state's position once it is back.

        Args:
            state: after the decisions that were read.
            times_ms: for partitions of ``heartbeats`` the append time, in ms, of a record written just now; not empty.

        Raises:
            LogUnavailableError: Kafka did not answer in time.
        """
        reader = self._open_reader()
        try:
            positions = self._first_positions(reader, state, times_ms)
            reader.assign(positions)
        except BaseException:
            reader.close()
            raise
        self._reader = reader
        self._heard_at_ms = self._clock.monotonic_ms()
        self._observations = Observations(positions=positions)
        self._ended_at = {}
        self._observed_from = dict(positions)

    def _first_positions(
        self, reader: LogReader, state: State, times_ms: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, int]:
        firsts = _first_heartbeats(reader, _LOOK_BACK_LIMITS * state.cluster.silence_limit_ms, times_ms)
        for topic in DECIDED_TOPICS:
            firsts |= reader.start_offsets(topic, only_answering=True)
        positions = {}
        for place in _partitions(reader, *INPUT_TOPICS):
            wanted = state.positions.get(position_key(place), 0)
            first = firsts.get(place)
            if first is None:
                _log.warning("input partition does not answer", at=place, read_from=wanted)
                positions[place] = wanted
            elif place.topic == HEARTBEATS:
                positions[place] = first
            else:
                positions[place] = max(first, wanted)
                if first > wanted:
                    _log.error(
                        "inputs were deleted before any decision took them up", at=place, first=first, wanted=wanted
                    )
        return positions

    @property
    def known_partitions(self) -> int:
        """The number of partitions of ``heartbeats`` that are read."""
        return sum(place.topic == HEARTBEATS for place in self._observations.positions)

    def lacks_partitions(self) -> bool:
        """Ask Kafka whether ``heartbeats`` has partitions that are not read yet, or not as far as they were to be.

        Raises:
            LogUnavailableError: Kafka did not answer in time.
            InvariantViolationError: :meth:`start` was not called.
        """
        if self._reader is None:
            raise InvariantViolationError("an input reader that was not started has no log reader")
        is_behind = self._lacks(self._catching_up_to) > 0
        return is_behind or self._reader.partition_count(HEARTBEATS) > self.known_partitions

    def follow_partitions(self, state: State) -> None:
        """Also read the partitions of ``heartbeats`` that a leader has recorded; see :meth:`take_in_partitions`.

        Raises:
            LogUnavailableError: Kafka did not answer in time.
        """
        if sum(place_of(key).topic == HEARTBEATS for key in state.positions) > self.known_partitions:
            self.take_in_partitions()

    def take_in_partitions(self) -> None:
        """Also read the partitions of ``heartbeats`` that are not read yet.

        Nodes send to new partitions without notice, and appear silent in the partitions that they used before. This
        method therefore returns only after the records in the new partitions are read: all of them, or the last
        100,000 of each. Partitions that do not answer are not waited for.

        Raises:
            LogUnavailableError: Kafka did not answer in time; no node may be fenced on the basis of what was read, and
                :meth:`lacks_partitions` says so until a later call has succeeded.
        """
        # A new reader, because the present client could take minutes to refresh its metadata.
        reader = self._open_reader()
        try:
            starts = reader.start_offsets(HEARTBEATS, only_answering=True)
            ends = reader.end_offsets(HEARTBEATS, only_answering=True)
            known = self._observations.positions
            added = {
                place: max(starts.get(place, 0), ends.get(place, 0) - _LOOK_BACK_RECORDS)
                for place in _partitions(reader, HEARTBEATS)
                if place not in known
            }
            reader.assign({**known, **added})
        except BaseException:
            reader.close()
            raise
        self.close()
        self._reader = reader
        self._holds_back = False
        self._observations = replace(self._observations, positions={**known, **added})
        self._observed_from = {**self._observed_from, **added}
        if added:
            _log.info("partitions were added", topic=HEARTBEATS, read_from=added)
        self._catching_up_to = ends
        self.catch_up(ends)
        self._catching_up_to = {}

    def skip_to_recorded(self, state: State, answering: AbstractSet[TopicPartition]) -> None:
        """Restart at the state's positions in the partitions of ``heartbeats`` that do not answer and lag behind them.

        See :func:`controlplane.core.deciding.observations.skip_to_recorded`.
        """
        observations, behind = skip_to_recorded(self._observations, state.positions, answering)
        if not behind or self._reader is None:
            return
        self._observations = observations
        self._observed_from = {**self._observed_from, **behind}
        self._holds_back = False
        self._reader.assign(observations.positions)

    def catch_up(self, ends: Mapping[TopicPartition, int]) -> None:
        """Fold everything before the given offsets.

        Raises:
            LogUnavailableError: Kafka did not answer in time.
        """
        deadline = ReadDeadline(self._clock, lambda: f"the end of topic {HEARTBEATS}", READ_LIMIT_MS, STALL_LIMIT_MS)
        left = self._lacks(ends)
        while left:
            self.poll(50)
            # Records of other partitions arrive all the time and are no progress here.
            before, left = left, self._lacks(ends)
            deadline.check(progress=left < before)

    def _lacks(self, ends: Mapping[TopicPartition, int]) -> int:
        """The number of records before these offsets that are not read."""
        return sum(max(ends.get(place, 0) - offset, 0) for place, offset in self._observations.positions.items())

    def poll(self, timeout_ms: int) -> int:
        """Fold at most one batch; return the number of its records."""
        if self._reader is None:
            return 0
        self._hold_back(self._reader)
        records, ended = self._reader.poll(_MAX_RECORDS, timeout_ms)
        self._ended_at |= {place: end.offset for place, end in ended.items()}
        if records:
            decoded = [self._decode(record) for record in records]
            self._observations = observe(self._observations, decoded)
            self._refusals = _bounded(self._refusals)
            self._count(records)
            self._heard_at_ms = self._clock.monotonic_ms()
        return len(records)

    def read_to(self) -> dict[TopicPartition, int]:
        """For each partition that is read now the offset before which everything was read."""
        return {
            place: max(offset, self._ended_at.get(place, 0))
            for place, offset in self._observations.positions.items()
            if place.topic == HEARTBEATS or not self._holds_back
        }

    def since_last_read_ms(self) -> int:
        """Milliseconds since a record was last read; while any controller ticks, several records arrive per second."""
        return self._clock.monotonic_ms() - self._heard_at_ms

    def _hold_back(self, reader: LogReader) -> None:
        """Stop reading membership records and intents while too many wait for decisions or for their dead letters.

        Heartbeats are read on.
        Pending inputs are kept: an audit takes inputs up in the order of their offsets, and would notice a gap.
        """
        pending = len(self._observations.pending) + self._unanswered()
        holds_back = pending >= (_MOST_PENDING // 2 if self._holds_back else _MOST_PENDING)
        if holds_back == self._holds_back:
            return
        self._holds_back = holds_back
        positions = self._observations.positions
        read_on = {place: offset for place, offset in positions.items() if place.topic == HEARTBEATS or not holds_back}
        reader.assign(read_on)
        _log.warning("inputs wait for decisions", pending=pending, read_on=not holds_back)

    def catch_up_with(self, state: State) -> None:
        """Validate heartbeats, drop the inputs that decisions have taken up, and the refusals with a written letter.

        A standby calls :meth:`drop_oldest_refusals` after it.
        """
        if (
            self._caught_up_with is not None
            and self._caught_up_with[0] == state.seq
            and self._caught_up_with[1] is self._observations
        ):
            return
        self._observations, refused = follow_up(state, self._observations)
        self._caught_up_with = (state.seq, self._observations)
        self._refusals.extend(refused)
        waiting = [refusal for refusal in self._refusals if not is_written(state, self._observations, refusal)]
        self._refusals = _bounded(waiting)

    def drop_oldest_refusals(self) -> None:
        """Keep the newest 10,000 refusals. Only for a standby: no dead letter will be written of the others.

        If it then leads, its positions pass those inputs; the leader that refused them as well may have written theirs.
        """
        dropped = len(self._refusals) - _REFUSALS_KEPT
        if dropped <= 0:
            return
        del self._refusals[:dropped]
        self._dropped_refusals += dropped
        now_ms = self._clock.monotonic_ms()
        if self._drops_logged_at_ms is None or now_ms - self._drops_logged_at_ms >= _DROPS_LOGGED_EVERY_MS:
            self._drops_logged_at_ms = now_ms
            _log.warning(
                "refused inputs wait for a leader to write their dead letters, the oldest are dropped",
                dropped=self._dropped_refusals,
                kept=_REFUSALS_KEPT,
            )

    def decided(self, result: DecideResult, gates: Mapping[TopicPartition, int]) -> None:
        """Keep the observations that deciding on them, up to these offsets, has left.

        The inputs that the decision takes up stay pending: :meth:`catch_up_with` drops them after the commit.
        """
        whole = self._observations
        if result.sealed is None:
            self._observations = with_rest(result.observations, whole, gates)
        else:
            self._observations = replace(result.observations, pending=whole.pending, positions=whole.positions)

    def take_refusals(self) -> list[Refusal]:
        """Remove and return the refusals whose dead letters may not be written yet; the leader writes them."""
        refusals, self._refusals = self._refusals, []
        return refusals

    def close(self) -> None:
        """Close the log reader."""
        if self._reader is not None:
            self._reader.close()
            self._reader = None

    def _decode(self, record: RawRecord) -> InputRecord:
        try:
            return decode_input(record.topic, record, self._framing)
        except InvalidInputError as error:
            coordinates = Coordinates(record.topic, record.partition, record.offset, record.append_time_ms)
            self._refusals.append(Refusal.of(coordinates, error.reason, error.detail, record.value or b""))
            return InputRecord(coordinates, None, b"")

    def _count(self, records: Sequence[RawRecord]) -> None:
        for topic, count in Counter(record.topic for record in records).items():
            self._metrics.inputs.labels(topic).inc(count)


def _partitions(reader: LogReader, *topics: str) -> list[TopicPartition]:
    return [TopicPartition(topic, number) for topic in topics for number in range(reader.partition_count(topic))]


def _first_heartbeats(
    reader: LogReader, look_back_ms: int, times_ms: Mapping[TopicPartition, int]
) -> dict[TopicPartition, int]:
    """For each partition of ``heartbeats`` that answers the offset to begin at: by its own clock, and not too far back.

    Partitions are asked for one time together where their clocks agree, since each request asks all of them.
    """
    ends = reader.end_offsets(HEARTBEATS, only_answering=True)
    earliest_ms = min(times_ms.values())
    waiting = {place: times_ms.get(place, earliest_ms) for place in ends}
    firsts: dict[TopicPartition, int] = {}
    while waiting:
        asked_ms = min(waiting.values())
        together = [place for place, time_ms in waiting.items() if time_ms - asked_ms <= _SAME_CLOCK_MS]
        found = reader.offsets_at_time(HEARTBEATS, asked_ms - look_back_ms, only_answering=True)
        for place in together:
            del waiting[place]
            if place not in found:
                continue
            firsts[place] = max(found[place], ends[place] - _LOOK_BACK_RECORDS)
            if firsts[place] > found[place]:
                _log.warning(
                    "too many heartbeats to read back, silences count from a later one",
                    at=place,
                    left_out=firsts[place] - found[place],
                    read_from=firsts[place],
                )
    return firsts


def _bounded(refusals: list[Refusal]) -> list[Refusal]:
    """The refusals, the oldest of them without their bytes where all bytes together are too many."""
    left_bytes = _REFUSED_BYTES_KEPT
    for number in reversed(range(len(refusals))):
        left_bytes -= len(refusals[number].raw)
        if left_bytes < 0:
            return [each._replace(raw=b"") for each in refusals[: number + 1]] + refusals[number + 1 :]
    return refusals
