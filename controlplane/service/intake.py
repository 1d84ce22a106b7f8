"""Reads the input topics, decodes them, and folds them into observations; bad records become refusals."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import Final

import structlog

from controlplane.codec.framing import Framing
from controlplane.codec.inputs import decode_input
from controlplane.config import HEARTBEATS, INTENTS, MEMBERSHIP
from controlplane.core.deciding.decide import settle
from controlplane.core.deciding.observations import Observations, observe
from controlplane.core.log.state import State
from controlplane.core.values.identifiers import Coordinates, Seq, TopicPartition
from controlplane.core.values.inputs import InputRecord, Refusal
from controlplane.core.values.positions import place_of, position_key
from controlplane.errors import InvalidInputError, InvariantViolationError
from controlplane.log_reading.deadlines import READ_LIMIT_MS, STALL_LIMIT_MS, Patience
from controlplane.ports import Clock, LogReader, RawRecord
from controlplane.service.metrics import ControllerMetrics

_log = structlog.get_logger(__name__)

_MAX_RECORDS: Final = 2_000
_LOOK_BACK_LIMITS: Final = 3
"""A cold start looks back this many silence limits: enough to judge every present silence, and less than a window.

What it therefore does not know, its *term opened* tells: the audit begins where it did (decision 0011).
"""
_LOOK_BACK_RECORDS: Final = 100_000
"""More than a window of one partition; not by time, because brokers' clocks may differ, or step, when it is added."""
_REFUSALS_KEPT: Final = 10_000
_MOST_PENDING: Final = 20_000
"""Inputs that no decision has taken up: joins that nodes repeat while nobody leads. More of them stay in the log."""


class Intake:
    """The observations of one controller, kept warm whether it leads or not.

    ``refusals`` are those that no leader is sure to have written: a new leader writes them, at least once.
    ``observed_from`` are the first offsets that it read.
    """

    def __init__(
        self,
        open_reader: Callable[[], LogReader],
        clock: Clock,
        metrics: ControllerMetrics,
        framing: Framing | None = None,
    ) -> None:
        """Read nothing before :meth:`start`; ``framing`` None knows no registry's schema ids."""
        self._open_reader = open_reader
        self._clock = clock
        self._metrics = metrics
        self._framing = framing
        self._reader: LogReader | None = None
        self._holds_back = False
        self.observations = Observations()
        self.observed_from: Mapping[TopicPartition, int] = {}
        self.refusals: list[Refusal] = []
        self._settled: tuple[Seq, Observations] | None = None
        self._heard_at_ms = clock.monotonic_ms()

    def start(self, state: State) -> None:
        """Begin where the state's positions say, and look back in ``heartbeats`` over some silence limits.

        Nobody waits for a partition that nobody answers for: it is read on from the state's position, when it is back.
        A clock that is ahead of the brokers' makes this begin later, and silences count from there: one limit at most.
        The time of the last record would not do instead: after an outage of everything it is old, and what nodes said
        of their slots before it would count as said just now.
        """
        reader = self._open_reader()
        since_ms = self._clock.wall_ms() - _LOOK_BACK_LIMITS * state.cluster.silence_limit_ms
        firsts = reader.offsets_at_time(HEARTBEATS, since_ms, only_answering=True)
        for topic in (MEMBERSHIP, INTENTS):
            firsts |= reader.start_offsets(topic, only_answering=True)
        positions = {}
        for place in _partitions(reader, HEARTBEATS, MEMBERSHIP, INTENTS):
            wanted = state.positions.get(position_key(place), 0)
            first = firsts.get(place)
            if first is None:
                _log.warning("nobody answers for an input partition", at=place, read_from=wanted)
                positions[place] = wanted
            elif place.topic == HEARTBEATS:
                positions[place] = first
            else:
                positions[place] = max(first, wanted)
                if first > wanted:
                    _log.error(
                        "inputs were deleted before any decision took them up", at=place, first=first, wanted=wanted
                    )
        reader.assign(positions)
        self._reader = reader
        self._heard_at_ms = self._clock.monotonic_ms()
        self.observations = Observations(positions=positions)
        self.observed_from = dict(positions)

    @property
    def known_partitions(self) -> int:
        """How many partitions of ``heartbeats`` are read."""
        return sum(place.topic == HEARTBEATS for place in self.observations.positions)

    def lacks_partitions(self) -> bool:
        """Ask whether ``heartbeats`` has partitions that are not read.

        Raises:
            LogUnavailableError: Kafka did not answer in time.
            InvariantViolationError: nothing is read yet.
        """
        if self._reader is None:
            raise InvariantViolationError("an intake that reads nothing has nobody to ask")
        return self._reader.partition_count(HEARTBEATS) > self.known_partitions

    def follow_partitions(self, state: State) -> None:
        """Read the partitions of ``heartbeats`` that a leader has found, too; see :meth:`take_in_partitions`.

        Raises:
            LogUnavailableError: Kafka did not answer in time.
        """
        if sum(place_of(key).topic == HEARTBEATS for key in state.positions) > self.known_partitions:
            self.take_in_partitions()

    def take_in_partitions(self) -> None:
        """Read the partitions of ``heartbeats`` that are not read yet, too.

        Nodes go to new partitions without a word, and look silent where they were heard before. So this does not return
        before what they have sent there is read, as far as anybody answers; of very many records, the last.

        Raises:
            LogUnavailableError: Kafka did not answer in time; nobody may be fenced by what was read so far.
        """
        # A new reader: the client of the present one could take minutes to hear of the partitions.
        reader = self._open_reader()
        try:
            starts = reader.start_offsets(HEARTBEATS, only_answering=True)
            ends = reader.end_offsets(HEARTBEATS, only_answering=True)
            known = self.observations.positions
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
        self.observations = replace(self.observations, positions={**known, **added})
        self.observed_from = {**self.observed_from, **added}
        _log.info("partitions were added", topic=HEARTBEATS, read_from=added)
        self.catch_up(ends)

    def skip_to_recorded(self, state: State, answering: AbstractSet[TopicPartition]) -> None:
        """Begin anew at the state's positions in partitions of ``heartbeats`` that are not read so far nor answer.

        What was read of them before is forgotten. A leader that knew less than its log says that it does could not be
        audited; one that began later can be.
        """
        positions, recorded = self.observations.positions, state.positions
        behind = {
            place: recorded[key]
            for place, offset in positions.items()
            if place.topic == HEARTBEATS
            and place not in answering
            and offset < recorded.get(key := position_key(place), 0)
        }
        if not behind or self._reader is None:
            return
        views = self.observations.partitions
        left = {number: view for number, view in views.items() if TopicPartition(HEARTBEATS, number) not in behind}
        self.observations = replace(self.observations, partitions=left, positions={**positions, **behind})
        self.observed_from = {**self.observed_from, **behind}
        self._holds_back = False
        self._reader.assign(self.observations.positions)

    def catch_up(self, ends: Mapping[TopicPartition, int]) -> None:
        """Fold everything before these offsets.

        Raises:
            LogUnavailableError: Kafka did not answer in time.
        """
        patience = Patience(self._clock, f"the end of topic {HEARTBEATS}", READ_LIMIT_MS, STALL_LIMIT_MS)
        left = self._lacks(ends)
        while left:
            self.poll(50)
            # Other partitions tick all the time: that is no progress here.
            before, left = left, self._lacks(ends)
            patience.check(progress=left < before)

    def _lacks(self, ends: Mapping[TopicPartition, int]) -> int:
        """How many records before these offsets are not read."""
        return sum(max(ends.get(place, 0) - offset, 0) for place, offset in self.observations.positions.items())

    def poll(self, timeout_ms: int) -> int:
        """Fold at most one batch; returns the number of records."""
        if self._reader is None:
            return 0
        self._hold_back(self._reader)
        records = self._reader.poll(_MAX_RECORDS, timeout_ms).records
        if records:
            decoded = [self._decode(record) for record in records]
            self.observations = observe(self.observations, decoded)
            self._count(records)
            self._heard_at_ms = self._clock.monotonic_ms()
        return len(records)

    def deaf_for_ms(self) -> int:
        """How long ago a record was last read; where controllers tick, one comes several times a second."""
        return self._clock.monotonic_ms() - self._heard_at_ms

    def _hold_back(self, reader: LogReader) -> None:
        """Leave inputs that wait for decisions where they are while very many do; the others are read on.

        None of those that were read may be left out for a later one: whoever decides again would see it.
        """
        pending = len(self.observations.pending)
        holds_back = pending >= (_MOST_PENDING // 2 if self._holds_back else _MOST_PENDING)
        if holds_back == self._holds_back:
            return
        self._holds_back = holds_back
        positions = self.observations.positions
        read_on = {place: offset for place, offset in positions.items() if place.topic == HEARTBEATS or not holds_back}
        reader.assign(read_on)
        _log.warning("inputs wait for decisions", pending=pending, read_on=not holds_back)

    def settle(self, state: State) -> None:
        """Judge heartbeats, drop what decisions have taken up, keep the refusals that no leader may have seen."""
        if self._settled is not None and self._settled[0] == state.seq and self._settled[1] is self.observations:
            return
        self.observations, refused = settle(state, self.observations)
        self._settled = (state.seq, self.observations)
        self.refusals.extend(refused)
        self.refusals = [refusal for refusal in self.refusals if not _is_settled(state, refusal)][-_REFUSALS_KEPT:]

    def take_refusals(self) -> list[Refusal]:
        """The refusals, for the leader to write."""
        refusals, self.refusals = self.refusals, []
        return refusals

    def close(self) -> None:
        """Give the reader back."""
        if self._reader is not None:
            self._reader.close()
            self._reader = None

    def _decode(self, record: RawRecord) -> InputRecord:
        try:
            return decode_input(record.topic, record, self._framing)
        except InvalidInputError as error:
            coordinates = Coordinates(record.topic, record.partition, record.offset, record.append_time_ms)
            self.refusals.append(Refusal(coordinates, error.reason, error.detail, record.value or b""))
            return InputRecord(coordinates, None, b"")

    def _count(self, records: Sequence[RawRecord]) -> None:
        for topic, count in Counter(record.topic for record in records).items():
            self._metrics.inputs.labels(topic).inc(count)


def _partitions(reader: LogReader, *topics: str) -> list[TopicPartition]:
    return [TopicPartition(topic, number) for topic in topics for number in range(reader.partition_count(topic))]


def _is_settled(state: State, refusal: Refusal) -> bool:
    """Whether a leader is sure to have written the dead letter.

    Its positions have passed the input, and by then a heartbeat had waited for its join as long as heartbeats do.
    """
    topic, partition, offset, append_time_ms = refusal.coordinates
    passed = offset < state.positions.get(position_key(TopicPartition(topic, partition)), 0)
    return passed and state.decided_at_ms - append_time_ms > state.cluster.silence_limit_ms
