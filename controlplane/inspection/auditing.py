"""Auditing a cluster's log: the recorded inputs are read again, up to the positions of each decision.

Memory is bounded by the records that are read ahead. If the inputs of a decision are no longer kept, or the log does
not record from where its leader observed, the decision is only followed.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

from controlplane.codec.inputs import decode_input
from controlplane.config import HEARTBEATS
from controlplane.core.audit.log_audit import Difference, LogAudit
from controlplane.core.cluster.events import TermOpened
from controlplane.core.deciding.decide import follow_up
from controlplane.core.deciding.observations import Observations, observe
from controlplane.core.log.decision import Decision
from controlplane.core.log.inputs import INPUT_TOPICS
from controlplane.core.values.identifiers import Coordinates, Seq, TopicPartition
from controlplane.core.values.inputs import InputRecord
from controlplane.core.values.positions import place_of, position_key
from controlplane.errors import InvalidInputError, LogContinuityError, LogUnavailableError, UnsupportedFeatureLevelError
from controlplane.inspection import readers
from controlplane.inspection.source import LogSource
from controlplane.ports import PartitionEnd, RawRecord
from controlplane.topic_reading.deadlines import StallWatch

_BATCH: Final = 2_000
_POLL_MS: Final = 200
_MOST_READ_AHEAD: Final = 200_000
"""The most records that are kept because their partition was read faster than others; further ones are read again."""


@dataclass(frozen=True, slots=True)
class Audited:
    """The result of the audit for one decision.

    Attributes:
        seq: of the recorded decision.
        followed_because: why it was not retaken; empty if it was.
        differences: between the recorded decision and the retaken one.
    """

    seq: Seq
    followed_because: str
    differences: tuple[Difference, ...]


class InputTape:
    """The recorded inputs, read up to given positions."""

    def __init__(self, source: LogSource) -> None:
        """The tape owns ``source``."""
        self._source = source
        self._next: dict[TopicPartition, int] = {}
        self._ahead: dict[TopicPartition, deque[RawRecord]] = {}
        self._ends: dict[TopicPartition, PartitionEnd] = {}
        self._present: dict[TopicPartition, int] = {}
        self._short: dict[TopicPartition, int] = {}

    def first_kept(self) -> dict[TopicPartition, int]:
        """The first offset that is still kept, for each input partition."""
        return {
            place: offset
            for topic in INPUT_TOPICS
            for place, offset in self._source.reader.start_offsets(topic).items()
        }

    def seek(self, positions: Mapping[TopicPartition, int]) -> None:
        """Continue from these offsets, with these partitions only."""
        self._next = dict(positions)
        self._ahead = {place: deque() for place in positions}
        self._ends = {}
        self._source.reader.assign(positions)

    def read_to(self, wanted: Mapping[TopicPartition, int]) -> Iterator[list[InputRecord]]:
        """The records before the wanted offsets, in order per partition; fewer if a topic ends before.

        A reported end before a wanted offset is not yet the end: the broker that answers may lag, or a transaction be
        open. It counts if nothing has come for the time limit, and Kafka, asked for the end, confirms it. Once waited
        for, an end is not waited for again.

        Records of other partitions are no progress, and neither are those that were appended after the reading began:
        ticks come all the time while a cluster lives, and no decision of before can have taken them up.

        Raises:
            LogUnavailableError: the log did not answer.
            LogContinuityError: some are no longer kept.
        """
        for topic in {place.topic for place, upto in wanted.items() if upto > self._present.get(place, 0)}:
            self._present |= self._source.reader.end_offsets(topic)
        watch = StallWatch(self._source.clock, self._source.timeout_ms)
        while True:
            batch = [record for place in self._next for record in self._take(place, wanted.get(place, 0))]
            if batch:
                yield batch
            missing = [place for place, upto in wanted.items() if self._lacks(place, upto)]
            if not missing:
                return
            brought = self._poll()
            if watch.is_stalled(progress=not brought.isdisjoint(missing)) and not self._end_before(wanted, missing):
                places = ", ".join(f"{position_key(place)}{self._end_of(place)}" for place in missing)
                raise LogUnavailableError(f"{places} could not be read on within {self._source.timeout_ms} ms")

    def _poll(self) -> set[TopicPartition]:
        """Read ahead. Returns the partitions that brought records of before the reading began."""
        if sum(map(len, self._ahead.values())) > _MOST_READ_AHEAD:
            self.seek(self._next)
        batch = self._source.reader.poll(_BATCH, _POLL_MS)
        brought = set()
        for record in batch.records:
            place = TopicPartition(record.topic, record.partition)
            self._ahead[place].append(record)
            if record.offset < self._present.get(place, 0):
                brought.add(place)
        self._ends |= batch.ended
        return brought

    def _lacks(self, place: TopicPartition, upto: int) -> bool:
        """Whether records before ``upto`` may still come. Records that are read ahead come after it."""
        if place not in self._next or self._ahead[place]:
            return False
        end = self._ends.get(place)
        last = min(upto, self._present.get(place, 0)) if upto <= self._short.get(place, -1) else upto
        return max(self._next[place], 0 if end is None else end.offset) < last

    def _end_before(self, wanted: Mapping[TopicPartition, int], missing: Iterable[TopicPartition]) -> bool:
        """Whether each of the missing partitions was read to its end, and Kafka says now that it ends there.

        From then on they no longer count as missing. While readers wait for the end of a transaction, its records may
        be the missing ones.
        """
        now: dict[TopicPartition, int] = {}
        for topic in {place.topic for place in missing}:
            now |= self._source.reader.end_offsets(topic)
        confirmed = {
            place: wanted[place]
            for place in missing
            if (end := self._ends.get(place)) is not None
            and not end.awaits_marker
            and self._present.get(place, 0) <= end.offset
            and now.get(place, 0) < wanted[place]
        }
        self._short |= confirmed
        return confirmed.keys() == set(missing)

    def _end_of(self, place: TopicPartition) -> str:
        end = self._ends.get(place)
        if end is None:
            return ""
        return f" (which ends at offset {end.offset}{', where a transaction is open' if end.awaits_marker else ''})"

    def _take(self, place: TopicPartition, upto: int) -> Iterator[InputRecord]:
        ahead = self._ahead[place]
        while ahead and ahead[0].offset < upto:
            record = ahead.popleft()
            self._next[place] = record.offset + 1
            yield self._decoded(record)

    def _decoded(self, record: RawRecord) -> InputRecord:
        try:
            return decode_input(record.topic, record, self._source.framing)
        except InvalidInputError:
            coordinates = Coordinates(record.topic, record.partition, record.offset, record.append_time_ms)
            return InputRecord(coordinates, None, b"")  # the leader wrote a dead letter for it


class Auditor:
    """Audits a log from its first decision to its present end."""

    def __init__(self, audit: LogAudit, decisions: LogSource, inputs: LogSource) -> None:
        """Prepare.

        Args:
            audit: retakes the decisions; nothing was audited with it yet.
            decisions: source of the decision log.
            inputs: source of the inputs, with a reader of its own.
        """
        self._audit = audit
        self._decisions = decisions
        self._tape = InputTape(inputs)
        self._kept: Mapping[TopicPartition, int] = {}
        self._observations = self._observed_before = Observations()
        self._began: Mapping[TopicPartition, int] = {}
        self._leader_began: Mapping[TopicPartition, int] = {}
        self._observes_alike = False

    def run(self) -> Iterator[Audited]:
        """The result for each decision of the log, in order; ends early if the log is broken.

        Raises:
            LogUnavailableError: the log did not answer.
        """
        self._begin(self._tape.first_kept())
        try:
            for logged in readers.read_decisions(self._decisions):
                yield self._audited(logged.decision)
                if self._audit.broken:
                    return
        except (LogContinuityError, UnsupportedFeatureLevelError) as error:
            damage = self._audit.break_off(error)
            yield Audited(damage.seq, "it cannot be read", (damage,))

    def _audited(self, decision: Decision) -> Audited:
        self._observed_before = self._observations
        try:
            reason = self._observe(decision)
        except LogContinuityError:
            self._begin(self._tape.first_kept())
            reason = "its inputs were deleted while the audit ran"
        found = self._audit.follow(decision) if reason else self._audit.retake_next(decision, self._observations)
        if found:
            # Its positions may be wrong: observations beyond the right ones would falsify the next comparisons.
            self._observations = self._observed_before
            self._tape.seek(self._observations.positions)
        self._observations, _ = follow_up(self._audit.state, self._observations)
        return Audited(decision.seq, reason, tuple(found))

    def _observe(self, decision: Decision) -> str:
        """Observe up to the decision's positions. Returns why its leader observed otherwise, or an empty text."""
        self._take_in_partitions(decision)
        wanted = self._places(decision.positions)
        self._fold(wanted)
        opened = next((event for event in decision.events if isinstance(event, TermOpened)), None)
        if opened is not None:
            self._leader_began = self._places(opened.observed_from)
            self._observes_alike = False
        if not self._audit.knows_slot_policy:
            return f"slot policy {self._audit.state.cluster.policy.slot_policy!r} is not known here"
        if not self._leader_began:
            return f"the log does not say from where the leader of term {decision.term} observed (feature level 1)"
        if not self._observes_alike:
            self._observes_alike = self._stands_like_the_leader(wanted)
        if not self._observes_alike:
            return "the heartbeats that its leader had observed are no longer kept"
        lost = [place for place in wanted if place.topic != HEARTBEATS and self._is_lost(place)]
        return f"records of {lost[0].topic} that it may have taken up are no longer kept" if lost else ""

    def _take_in_partitions(self, decision: Decision) -> None:
        """Observe partitions of heartbeats that no decision named before: the leader found them while it led.

        The leader began to read there early enough for everything that can have been sent to the partition recently.
        """
        known = self._observations.positions
        added = [
            place for key in decision.positions if (place := place_of(key)).topic == HEARTBEATS and place not in known
        ]
        if not added or not known:
            return
        if any(place not in self._kept for place in added):
            self._kept = self._tape.first_kept()
        begins = {place: self._kept[place] for place in added if place in self._kept}
        self._began = {**self._began, **begins}
        self._leader_began = {**self._leader_began, **begins}
        self._observations = replace(self._observations, positions={**known, **begins})
        self._tape.seek(self._observations.positions)

    def _places(self, offsets: Mapping[str, int]) -> dict[TopicPartition, int]:
        """The existing partitions among the named ones."""
        return {place: offsets[key] for place in self._kept if (key := position_key(place)) in offsets}

    def _stands_like_the_leader(self, wanted: Mapping[TopicPartition, int]) -> bool:
        """Whether these observations equal the leader's. If that is possible, they are built again."""
        heartbeats = {place: offset for place, offset in self._leader_began.items() if place.topic == HEARTBEATS}
        if self._observations.positions.keys() == self._leader_began.keys():
            if all(self._began.get(place) == offset for place, offset in heartbeats.items()):
                return True
            if self._observations.window_is_whole(heartbeats) and self._knows_the_time():
                return True
        if any(offset < self._kept.get(place, 0) for place, offset in heartbeats.items()):
            return False
        positions = self._audit.state.positions
        others = {place: positions.get(position_key(place), self._leader_began[place]) for place in self._leader_began}
        self._begin({**others, **heartbeats})
        self._fold(wanted)
        return True

    def _knows_the_time(self) -> bool:
        """Whether all ticks since the last decision were read, whose gaps are the log time that has passed since."""
        state = self._audit.state
        recorded = [
            (began, state.positions.get(position_key(place), 0))
            for place, began in self._began.items()
            if place.topic == HEARTBEATS
        ]
        return not state.cluster.has_several_brokers_rules or all(began <= position for began, position in recorded)

    def _is_lost(self, place: TopicPartition) -> bool:
        """Whether records behind those that were taken up are not kept: then observations begin behind them."""
        return self._audit.state.positions.get(position_key(place), 0) < self._kept.get(place, 0)

    def _begin(self, positions: Mapping[TopicPartition, int]) -> None:
        self._kept = self._tape.first_kept()
        self._began = {place: max(offset, self._kept.get(place, 0)) for place, offset in positions.items()}
        self._observations = self._observed_before = Observations(positions=self._began)
        self._tape.seek(self._began)

    def _fold(self, wanted: Mapping[TopicPartition, int]) -> None:
        for batch in self._tape.read_to(wanted):
            self._observations = observe(self._observations, batch)
            self._observations, _ = follow_up(self._audit.state, self._observations)
