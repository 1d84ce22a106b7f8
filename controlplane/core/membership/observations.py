"""What the raw inputs say: soft state, rebuilt from the topics by whoever needs it, never part of the log of decisions.

Time is in the log. Controllers append ticks to every partition of ``heartbeats``; between two ticks of a partition
at most 200 ms count. A node's *silence* is the log time of the ticks after its latest heartbeat, in that heartbeat's
partition. So an outage of the broker, a paused leader or a stepped clock makes nobody silent: without ticks no time
passes, and one late tick counts 200 ms at most.

``observe`` is a fold that commutes across partitions. What it answers depends on the last ``WINDOW_MS`` of each
partition's log time and on nothing before: a reader that began so long ago observes exactly like one that has run for
weeks, and whoever takes a decision again later need not know when its leader was started. A reader that began later
than that knows less, which is why a leader says in the log where it began.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

from controlplane.config import HEARTBEATS, MAX_TICK_GAP_MS
from controlplane.core.membership.inputs import Heartbeat, Tick
from controlplane.core.slots.reports import SlotReport
from controlplane.core.values.identifiers import ControllerId, Incarnation, NodeId, Seq, TopicPartition
from controlplane.core.values.inputs import InputRecord
from controlplane.core.values.partitioning import partition_of

_FIRST_HEARTBEAT_PARTITION: Final = TopicPartition(HEARTBEATS, 0)

MEMORY_MS: Final = 25_000
"""Log time after which what was heard is forgotten, and beyond which no silence is counted: more than any limit."""
WINDOW_MS: Final = 26_000
"""Log time that a reader has to have seen for all of :data:`MEMORY_MS` to be the same to every reader."""
TICKING_MS: Final = 5_000
"""Log time without its ticks after which a controller counts as gone."""
UNDATED_OFFSET: Final = -1
"""Stands for an offset of partition 0 where a leader had not read so far as to know it."""
FRESH_MS: Final = 1_000
"""Partition 0 counts as read so far while its last tick is no older than this beside the newest of all."""
MARK_SPACING_MS: Final = 100
"""Ticks are remembered to date an admission: the first in each 100 ms of the broker's time, wherever a reader began."""


class Heard(NamedTuple):
    """The latest heartbeat of one incarnation in one partition, and the partition's clock when it came."""

    clock_ms: int
    append_time_ms: int
    heartbeat: Heartbeat


class TickMark(NamedTuple):
    """A tick's place and time, and the partition's clock after it."""

    offset: int
    append_time_ms: int
    clock_ms: int


@dataclass(frozen=True, slots=True)
class PartitionView:
    """One partition of ``heartbeats``.

    Attributes:
        clock_ms: log time that has passed since this reader began; only differences mean something.
        last_tick_ms: append time of the last tick; None before the first. Less than the one before if the broker's
            clock was set back: that gap counts nothing, and the next one counts again.
        heard: latest heartbeat by node and incarnation.
        unjudged: heartbeats that ``decide`` has not looked at yet.
        marks: recent ticks, oldest first: those of the last :data:`WINDOW_MS`, and one before.
        ticked: the clock at each controller's last tick.
    """

    clock_ms: int = 0
    last_tick_ms: int | None = None
    heard: Mapping[tuple[NodeId, Incarnation], Heard] = field(default_factory=dict)
    unjudged: tuple[InputRecord, ...] = ()
    marks: tuple[TickMark, ...] = ()
    ticked: Mapping[ControllerId, int] = field(default_factory=dict)

    def clock_at_offset(self, offset: int) -> int:
        """The clock at the first mark from that offset on: what was appended there came no later.

        So time is counted a little late rather than early. It is the present clock if there is no mark yet, and that
        of the first mark if the offset is before all of them.
        """
        return self._clock_at(bisect_left(self.marks, offset, key=lambda mark: mark.offset))

    def clock_at_time(self, time_ms: int) -> int:
        """The clock at the first mark of that time or later, with the same exceptions as :meth:`clock_at_offset`."""
        later = (index for index, mark in enumerate(self.marks) if mark.append_time_ms >= time_ms)
        return self._clock_at(next(later, len(self.marks)))

    def latest_clock_at_time(self, time_ms: int) -> int:
        """The clock at the mark after the last that is no later: another one if the broker's clock was set back."""
        indices = range(len(self.marks), 0, -1)
        return self._clock_at(next((index for index in indices if self.marks[index - 1].append_time_ms <= time_ms), 0))

    def time_at_offset(self, offset: int) -> int | None:
        """The time of the first mark from that offset on; None if there is none yet."""
        index = bisect_left(self.marks, offset, key=lambda mark: mark.offset)
        return self.marks[index].append_time_ms if index < len(self.marks) else None

    def _clock_at(self, index: int) -> int:
        return self.marks[index].clock_ms if index < len(self.marks) else self.clock_ms


_NOTHING_READ: Final = PartitionView()


class SlotsAsked(NamedTuple):
    """A note that asking the slot policy again would give no other answer, whatever nodes report.

    It saves work and decides nothing: whoever has no such note asks, and gets the same answer.

    Attributes:
        seq: of the last decision before: the state that the policy left as it is.
        refusal: why the policy cannot make a table, in a sentence; empty if it wants none.
    """

    seq: Seq
    refusal: str


@dataclass(frozen=True, slots=True)
class Observations:
    """Everything observed so far.

    Attributes:
        partitions: the view of each ``heartbeats`` partition.
        pending: membership records and intents that no decision has taken up yet, in order per topic.
        strangers: heartbeats of nodes that are not members, waiting one silence limit for the join.
        positions: next offset per input partition.
        slots_asked: see :class:`SlotsAsked`.
    """

    partitions: Mapping[int, PartitionView] = field(default_factory=dict)
    pending: tuple[InputRecord, ...] = ()
    strangers: tuple[InputRecord, ...] = ()
    positions: Mapping[TopicPartition, int] = field(default_factory=dict)
    slots_asked: SlotsAsked | None = None

    @property
    def now_ms(self) -> int | None:
        """Log time: the append time of the last tick, the greatest over all partitions; None before the first tick.

        It goes back when the broker's clock does; the log time of decisions does not.
        """
        ticks = [view.last_tick_ms for view in self.partitions.values() if view.last_tick_ms is not None]
        return max(ticks, default=None)

    @property
    def dating_offset(self) -> int:
        """Next offset of ``heartbeats`` partition 0, from where on the time after a decision of now counts.

        :data:`UNDATED_OFFSET` while that partition is not read, or has no ticks: time that has passed before would
        be counted when it is read on.
        """
        first, now_ms = self.partitions.get(0, _NOTHING_READ), self.now_ms
        if now_ms is None or first.last_tick_ms is None or now_ms - first.last_tick_ms > FRESH_MS:
            return UNDATED_OFFSET
        return self.positions[_FIRST_HEARTBEAT_PARTITION]

    def heard_within(self, limit_ms: int) -> set[tuple[NodeId, Incarnation]]:
        """The incarnations whose silence is at most the limit; the cost is one look at each that was ever heard."""
        return {
            member
            for view in self.partitions.values()
            for member, heard in view.heard.items()
            if view.clock_ms - heard.clock_ms <= limit_ms
        }

    def silence_ms(self, node_id: NodeId, incarnation: Incarnation) -> int:
        """How much log time an incarnation has been silent, the least over the partitions, at most the memory."""
        return min(
            (
                min(view.clock_ms - view.heard[node_id, incarnation].clock_ms, MEMORY_MS)
                for view in self.partitions.values()
                if (node_id, incarnation) in view.heard
            ),
            default=MEMORY_MS,
        )

    def passed_ms(self, since_offset: int) -> int:
        """Log time of partition 0 since an offset, or since this reader began if that was later; at most the memory."""
        first = self.partitions.get(0)
        return 0 if first is None else min(first.clock_ms - first.clock_at_offset(since_offset), MEMORY_MS)

    def membership_ms(
        self, node_id: NodeId, incarnation: Incarnation, admitted_at_offset: int, changed_at_ms: int
    ) -> int:
        """How much log time a member has had to send a heartbeat, at most the memory: it is silent for no longer.

        It counts from the admission, or from where this reader began if that was later, and only what has passed both
        in partition 0 and where the heartbeats would stand: that may be read late, or be without ticks. A member that
        was heard sends them to the partition where it was; of any other they may be in every partition.

        What has passed in the member's own partition since its status changed, which it did not before its admission,
        counts in any case: partition 0 may be the one without ticks. Nothing else counts for an admission that is
        undated. A broker's clock that was set back may make it less than it is, never more.

        What its key chooses may be another partition than the one where it was heard: when partitions were added, it
        goes there without a word. Nothing counts while no tick was read of that one, and no more than has passed there
        since the member was heard.
        """
        known = [place.partition for place in self.positions if place.topic == HEARTBEATS]
        home = self.partitions.get(partition_of(node_id.encode(), max(len(known), 1)), _NOTHING_READ)
        if home.last_tick_ms is None:
            return 0
        member = node_id, incarnation
        heard_in = [view for view in self.partitions.values() if member in view.heard]
        places = heard_in or [self.partitions.get(partition, _NOTHING_READ) for partition in known]
        passed_ms = self._since_admission_ms(places, admitted_at_offset)
        if heard_in or admitted_at_offset == UNDATED_OFFSET:
            since_change_ms = min(view.clock_ms - view.latest_clock_at_time(changed_at_ms) for view in places)
            passed_ms = max(passed_ms, since_change_ms)
        if heard_in:
            last_heard_in = max(heard_in, key=lambda view: view.heard[member].append_time_ms)
            if last_heard_in is not home:
                since_ms = home.clock_ms - home.clock_at_time(last_heard_in.heard[member].append_time_ms)
                passed_ms = min(passed_ms, since_ms)
        return min(passed_ms, MEMORY_MS)

    def _since_admission_ms(self, places: list[PartitionView], admitted_at_offset: int) -> int:
        """What has passed since then in partition 0 and, by the time of that, in all of these places."""
        admitted_at_ms = self.partitions.get(0, _NOTHING_READ).time_at_offset(admitted_at_offset)
        if admitted_at_offset == UNDATED_OFFSET or admitted_at_ms is None:
            return 0
        since_ms = min((view.clock_ms - view.clock_at_time(admitted_at_ms) for view in places), default=0)
        return min(self.passed_ms(admitted_at_offset), since_ms)

    @property
    def ticking(self) -> frozenset[ControllerId]:
        """The controllers that have ticked within :data:`TICKING_MS`."""
        return frozenset(
            controller_id
            for view in self.partitions.values()
            for controller_id, clock_ms in view.ticked.items()
            if view.clock_ms - clock_ms < TICKING_MS
        )

    def window_is_whole(self, began_at: Mapping[TopicPartition, int]) -> bool:
        """Whether a reader that began at these offsets of ``heartbeats`` observes like one that began long before."""
        return all(
            (view := self.partitions.get(place.partition)) is not None
            and view.clock_ms - view.clock_at_offset(offset) >= WINDOW_MS
            for place, offset in began_at.items()
            if place.topic == HEARTBEATS
        )

    def slot_reports(self, members: Iterable[tuple[NodeId, Incarnation]]) -> dict[NodeId, SlotReport]:
        """What each of these last said of its slots; those that were not heard within the memory are missing."""
        reports = {}
        for node_id, incarnation in members:
            heard = self._latest_heard(node_id, incarnation)
            if heard is not None:
                view, (clock_ms, _, beat) = heard
                age_ms = view.clock_ms - clock_ms
                reports[node_id] = SlotReport(beat.slot_statuses, beat.table_epoch, beat.sent_at_ms, age_ms)
        return reports

    def _latest_heard(self, node_id: NodeId, incarnation: Incarnation) -> tuple[PartitionView, Heard] | None:
        """The newest heartbeat of the incarnation over all partitions, and the view of its partition."""
        heard = [
            (view, view.heard[node_id, incarnation])
            for view in self.partitions.values()
            if (node_id, incarnation) in view.heard
            and view.clock_ms - view.heard[node_id, incarnation].clock_ms < MEMORY_MS
        ]
        return max(heard, key=lambda each: each[1].append_time_ms, default=None)


def observe(observations: Observations, records: Iterable[InputRecord]) -> Observations:
    """Fold a batch of inputs, in order per partition; records already seen are passed over.

    Its cost is that of the batch plus one copy of each touched partition's map of nodes.
    """
    positions = dict(observations.positions)
    by_partition: dict[int, list[InputRecord]] = {}
    pending = []
    for record in records:
        topic, partition, offset, _ = record.coordinates
        place = TopicPartition(topic, partition)
        if offset < positions.get(place, 0):
            continue
        positions[place] = offset + 1
        if record.payload is None:
            continue
        if topic == HEARTBEATS:
            by_partition.setdefault(partition, []).append(record)
        else:
            pending.append(record)
    partitions = dict(observations.partitions)
    for partition, batch in by_partition.items():
        partitions[partition] = _observe_partition(partitions.get(partition, PartitionView()), batch)
    return replace(
        observations,
        partitions=partitions,
        pending=(*observations.pending, *pending) if pending else observations.pending,
        positions=positions,
    )


def _gap_ms(last_tick_ms: int | None, append_time_ms: int) -> int:
    """How much of the time since the last tick counts."""
    return 0 if last_tick_ms is None else min(max(append_time_ms - last_tick_ms, 0), MAX_TICK_GAP_MS)


def _observe_partition(view: PartitionView, batch: list[InputRecord]) -> PartitionView:
    clock_ms = view.clock_ms
    last_tick_ms = view.last_tick_ms
    heard = dict(view.heard)
    heartbeats = []
    marks: list[TickMark] = []
    ticked = dict(view.ticked)
    for record in batch:
        payload = record.payload
        append_time_ms = record.coordinates.append_time_ms
        if isinstance(payload, Heartbeat):
            # Not as of the tick before: the node would be taken for silent that much too early.
            heard_at_ms = clock_ms + _gap_ms(last_tick_ms, append_time_ms)
            heard[payload.node_id, payload.incarnation] = Heard(heard_at_ms, append_time_ms, payload)
            heartbeats.append(record)
        elif isinstance(payload, Tick):
            clock_ms += _gap_ms(last_tick_ms, append_time_ms)
            if last_tick_ms is None or append_time_ms // MARK_SPACING_MS != last_tick_ms // MARK_SPACING_MS:
                marks.append(TickMark(record.coordinates.offset, append_time_ms, clock_ms))
            last_tick_ms = append_time_ms
            ticked[payload.controller_id] = clock_ms
    return PartitionView(
        clock_ms,
        last_tick_ms,
        heard,
        (*view.unjudged, *heartbeats) if heartbeats else view.unjudged,
        _recent((*view.marks, *marks), clock_ms) if marks else view.marks,
        {each: at_ms for each, at_ms in ticked.items() if clock_ms - at_ms < TICKING_MS},
    )


def _recent(marks: tuple[TickMark, ...], clock_ms: int) -> tuple[TickMark, ...]:
    """The marks of the window, and the last before it: from there on all that is counted is the same."""
    first = bisect_right(marks, clock_ms - WINDOW_MS, key=lambda mark: mark.clock_ms) - 1
    return marks[first:] if first > 0 else marks
