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
from controlplane.core.log.state import State
from controlplane.core.values.identifiers import Coordinates, Seq, TopicPartition
from controlplane.core.values.inputs import InputRecord, Refusal
from controlplane.core.values.positions import place_of
from controlplane.errors import InvalidInputError, InvariantViolationError
from controlplane.ports import Clock, LogReader, RawRecord
from controlplane.service.look_back import LOOK_BACK_RECORDS, first_positions, partitions_of
from controlplane.service.metrics import ControllerMetrics
from controlplane.service.waiting_refusals import WaitingRefusals
from controlplane.topic_reading.deadlines import READ_LIMIT_MS, STALL_LIMIT_MS, ReadDeadline

_log = structlog.get_logger(__name__)

_MAX_RECORDS: Final = 2_000
_MOST_PENDING: Final = 20_000
"""Limit of inputs that no decision has taken up, such as the joins that nodes repeat while no controller leads."""


class InputReader:
    """The observations of one controller, kept up to date whether it leads or not; changed only by these methods.

    Attributes:
        refusals: refused inputs whose dead letters may not be written yet.
    """

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
        self.refusals = WaitingRefusals(clock)
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
            positions = first_positions(reader, state, times_ms)
            reader.assign(positions)
        except BaseException:
            reader.close()
            raise
        self._reader = reader
        self._heard_at_ms = self._clock.monotonic_ms()
        self._observations = Observations(positions=positions)
        self._ended_at = {}
        self._observed_from = dict(positions)

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
                place: max(starts.get(place, 0), ends.get(place, 0) - LOOK_BACK_RECORDS)
                for place in partitions_of(reader, HEARTBEATS)
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
        batch = self._reader.poll(_MAX_RECORDS, timeout_ms)
        self._ended_at |= {place: end.offset for place, end in batch.ended.items()}
        records = batch.records
        if records:
            decoded = [self._decode(record) for record in records]
            self._observations = observe(self._observations, decoded)
            self.refusals.bound()
            self._count(records)
            self._heard_at_ms = self._clock.monotonic_ms()
        return len(records)

    def offsets_read(self) -> dict[TopicPartition, int]:
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

        A standby drops the oldest refusals after it.
        """
        if (
            self._caught_up_with is not None
            and self._caught_up_with[0] == state.seq
            and self._caught_up_with[1] is self._observations
        ):
            return
        self._observations, refused = follow_up(state, self._observations)
        self._caught_up_with = (state.seq, self._observations)
        self.refusals.add(*refused)
        self.refusals.keep(each for each in self.refusals if not is_written(state, self._observations, each))

    def decided(self, result: DecideResult, gates: Mapping[TopicPartition, int]) -> None:
        """Keep the observations that deciding on them, up to these offsets, has left.

        The inputs that the decision takes up stay pending: :meth:`catch_up_with` drops them after the commit.
        """
        whole = self._observations
        if result.sealed is None:
            self._observations = with_rest(result.observations, whole, gates)
        else:
            self._observations = replace(result.observations, pending=whole.pending, positions=whole.positions)

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
            self.refusals.add(Refusal.of(coordinates, error.reason, error.detail, record.value or b""))
            return InputRecord(coordinates, None, b"")

    def _count(self, records: Sequence[RawRecord]) -> None:
        for topic, count in Counter(record.topic for record in records).items():
            self._metrics.inputs.labels(topic).inc(count)
