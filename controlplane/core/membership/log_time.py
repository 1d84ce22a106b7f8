"""Log time: a clock for each partition of ``heartbeats``, and each node's latest heartbeat by that clock.

Controllers append ticks to every partition of ``heartbeats``. The clock of a partition advances with its ticks, by at
most 200 ms from one tick to the next. A node's *silence* is the time by which the clock of its heartbeats' partition
has advanced since its latest heartbeat. An outage of the broker, a paused leader or a stepped clock therefore makes no
node silent: without ticks no log time passes, and a late tick counts 200 ms at most.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import Final, NamedTuple, TypeVar

from controlplane.config import MAX_TICK_GAP_MS
from controlplane.core.membership.inputs import Heartbeat, Tick
from controlplane.core.membership.node import are_two_processes
from controlplane.core.values.identifiers import ControllerId, Epoch, Incarnation, NodeId, ProcessId, Seq
from controlplane.core.values.inputs import InputRecord

SILENCE_MEMORY_MS: Final = 25_000
"""Log time after which a heartbeat is dropped, and upper bound of silence. It is longer than any silence limit."""
WINDOW_MS: Final = 31_000
"""Log time after which a reader's observations no longer depend on where it began.

More than :data:`SILENCE_MEMORY_MS`, and than the time for which a release may have to be waited for
(:func:`controlplane.core.deciding.consent.release_bound_ms`).
"""
TICK_VALIDITY_MS: Final = 5_000
"""Log time without a tick of a controller after which it no longer counts as ticking."""
UNDATED_OFFSET: Final = -1
"""Stands for an offset of partition 0 that a leader could not name because it had not read the partition so far."""
FRESH_PARTITION_MS: Final = 1_000
"""Partition 0 counts as read so far while its last tick is at most this much older than that of any partition."""
MARK_SPACING_MS: Final = 100
"""Spacing of marks: the first tick in each 100 ms of append time is kept, regardless of where a reader began."""
_MOST_PROCESSES: Final = 4
"""Processes of one incarnation that are told apart, beside the last one that was heard."""
_NO_SEQ: Final = Seq(0)
_NO_EPOCH: Final = Epoch(0)


class Heard(NamedTuple):
    """The latest heartbeat of an incarnation in a partition, and the partition's clock at its append.

    ``seq`` is the greatest one that the ticks before its offset name. ``others`` are the latest ones of other processes
    that use the same incarnation: which of them was admitted is known to the state only.
    """

    clock_ms: int
    append_time_ms: int
    heartbeat: Heartbeat
    seq: Seq = Seq(0)
    offset: int = 0
    others: tuple["Heard", ...] = ()

    def of_process(self, process_id: ProcessId) -> "Heard | None":
        """The latest one that may be of a process; None if all are of other ones."""
        each = (self._replace(others=()), *self.others)
        return next((one for one in each if not are_two_processes(one.heartbeat.process_id, process_id)), None)


class TickMark(NamedTuple):
    """A tick's offset and append time, and the partition's clock after it. Marks date admissions."""

    offset: int
    append_time_ms: int
    clock_ms: int


class ReadTick(NamedTuple):
    """A tick's offset, the partition's clock after it, and what its sender had read of the log: seq and table epoch."""

    offset: int
    clock_ms: int
    seq: Seq
    table_epoch: Epoch


@dataclass(frozen=True, slots=True)
class PartitionView:
    """The observations of one partition of ``heartbeats``.

    Attributes:
        clock_ms: log time since this reader began; only differences are meaningful.
        last_tick_ms: append time of the last tick; None before the first. It may be less than that of the tick before,
            if the broker's clock was set back: such a gap counts 0.
        heard: latest heartbeat by node and incarnation.
        unvalidated: heartbeats that are not validated yet.
        marks: recent marks, oldest first: those of the last :data:`WINDOW_MS` and one before.
        ticked: the clock at the last tick of each controller that ticks.
        ticks: the ticks of the last :data:`WINDOW_MS` and one before, oldest first. From feature level 3 on they date
            what marks date below it.
        named_seq: the greatest seq that these ticks name.
    """

    clock_ms: int = 0
    last_tick_ms: int | None = None
    heard: Mapping[tuple[NodeId, Incarnation], Heard] = field(default_factory=dict)
    unvalidated: tuple[InputRecord, ...] = ()
    marks: tuple[TickMark, ...] = ()
    ticked: Mapping[ControllerId, int] = field(default_factory=dict)
    ticks: tuple[ReadTick, ...] = ()
    named_seq: Seq = _NO_SEQ

    def without_names_before(self, offset: int, seq: Seq, new_epoch: Epoch) -> "PartitionView":
        """The view in which no tick before a decision's position names that decision, its table, or later ones.

        All that stands before the position was appended before the decision was committed, so that no sender of it has
        read the decision. Such a tick was forged or damaged, or names a decision that the log has lost and that was
        made anew. It marks time, and dates nothing.

        Args:
            offset: the decision's position in this partition.
            seq: that of the decision.
            new_epoch: the least table epoch that is known only from this decision on.
        """
        ticks = tuple(
            tick._replace(seq=_NO_SEQ, table_epoch=_NO_EPOCH)
            if tick.offset < offset and (tick.seq >= seq or tick.table_epoch >= new_epoch)
            else tick
            for tick in self.ticks
        )
        return self if ticks == self.ticks else self._dated_by(ticks, seq)

    def _dated_by(self, ticks: tuple["ReadTick", ...], doubted: Seq) -> "PartitionView":
        """The view with these ticks. Heartbeats behind a tick that named ``doubted`` or a later one are dated again."""
        offsets = [tick.offset for tick in ticks]
        named_seqs = list(accumulate((tick.seq for tick in ticks), max, initial=_NO_SEQ))

        def dated(heard: Heard) -> Heard:
            others = tuple(map(dated, heard.others))
            seq = heard.seq if heard.seq < doubted else named_seqs[bisect_left(offsets, heard.offset)]
            return heard._replace(seq=seq, others=others)

        return replace(
            self,
            ticks=ticks,
            heard={
                member: dated(heard) if heard.seq >= doubted or heard.others else heard
                for member, heard in self.heard.items()
            },
            named_seq=named_seqs[-1],
        )

    def since_seq_ms(self, seq: Seq) -> int:
        """The log time since the first tick that names this decision or a later one; 0 before there is one.

        Of ticks that were read, or are remembered: if that tick was before them, it counts from the first of them.
        """
        return self.clock_ms - next((tick.clock_ms for tick in self.ticks if tick.seq >= seq), self.clock_ms)

    def since_epoch_ms(self, epoch: Epoch) -> int:
        """The log time since the first tick that names this table epoch or a later one; 0 before there is one."""
        return self.clock_ms - next((tick.clock_ms for tick in self.ticks if tick.table_epoch >= epoch), self.clock_ms)

    def clock_before(self, offset: int) -> int:
        """The clock after the last tick before an offset; that of the first tick that is remembered, if it is later."""
        index = bisect_left(self.ticks, offset, key=lambda tick: tick.offset)
        return self.ticks[max(index - 1, 0)].clock_ms if self.ticks else self.clock_ms

    def seq_before(self, offset: int, at_most: Seq) -> Seq:
        """The greatest seq up to ``at_most`` that the remembered ticks before an offset name; 0 without one."""
        index = bisect_left(self.ticks, offset, key=lambda tick: tick.offset)
        return max((tick.seq for tick in self.ticks[:index] if tick.seq <= at_most), default=Seq(0))

    def clock_at_offset(self, offset: int) -> int:
        """The clock at the first mark at or after an offset.

        It is at or after the clock at the offset itself, so that the time since then is counted too short rather than
        too long. Without such a mark it is the present clock. For an offset before all marks it is that of the first.
        """
        return self._clock_at(bisect_left(self.marks, offset, key=lambda mark: mark.offset))

    def clock_at_time(self, time_ms: int) -> int:
        """The clock at the first mark of an append time or later; exceptions as in :meth:`clock_at_offset`."""
        later = (index for index, mark in enumerate(self.marks) if mark.append_time_ms >= time_ms)
        return self._clock_at(next(later, len(self.marks)))

    def latest_clock_at_time(self, time_ms: int) -> int:
        """The clock at the mark after the last mark of at most an append time.

        Append times repeat if the broker's clock was set back. :meth:`clock_at_time` then takes the earliest place, and
        this method the latest.
        """
        indices = range(len(self.marks), 0, -1)
        return self._clock_at(next((index for index in indices if self.marks[index - 1].append_time_ms <= time_ms), 0))

    def time_at_offset(self, offset: int) -> int | None:
        """The append time of the first mark at or after an offset; None without one."""
        index = bisect_left(self.marks, offset, key=lambda mark: mark.offset)
        return self.marks[index].append_time_ms if index < len(self.marks) else None

    def _clock_at(self, index: int) -> int:
        return self.marks[index].clock_ms if index < len(self.marks) else self.clock_ms


NOTHING_READ: Final = PartitionView()
"""The view of a partition from which nothing was read."""


def _gap_ms(last_tick_ms: int | None, append_time_ms: int) -> int:
    """The log time from the last tick to a record."""
    return 0 if last_tick_ms is None else min(max(append_time_ms - last_tick_ms, 0), MAX_TICK_GAP_MS)


def observe_partition(view: PartitionView, batch: Iterable[InputRecord]) -> PartitionView:
    """The view after more heartbeats and ticks of the partition, which have to be in the order of their offsets."""
    clock_ms = view.clock_ms
    last_tick_ms = view.last_tick_ms
    heard = dict(view.heard)
    heartbeats = []
    marks: list[TickMark] = []
    ticks: list[ReadTick] = []
    seq = view.named_seq
    ticked = dict(view.ticked)
    for record in batch:
        payload = record.payload
        append_time_ms = record.coordinates.append_time_ms
        if isinstance(payload, Heartbeat):
            # Not the clock at the last tick: the node's silence would begin too early.
            heard_at_ms = clock_ms + _gap_ms(last_tick_ms, append_time_ms)
            member = payload.node_id, payload.incarnation
            offset, others = record.coordinates.offset, _other_processes(heard.get(member), payload.process_id)
            heard[member] = Heard(heard_at_ms, append_time_ms, payload, seq, offset, others)
            heartbeats.append(record)
        elif isinstance(payload, Tick):
            clock_ms += _gap_ms(last_tick_ms, append_time_ms)
            if last_tick_ms is None or append_time_ms // MARK_SPACING_MS != last_tick_ms // MARK_SPACING_MS:
                marks.append(TickMark(record.coordinates.offset, append_time_ms, clock_ms))
            ticks.append(ReadTick(record.coordinates.offset, clock_ms, payload.seq, payload.table_epoch))
            seq = max(seq, payload.seq)
            last_tick_ms = append_time_ms
            ticked[payload.controller_id] = clock_ms
    remembered = _recent((*view.ticks, *ticks), clock_ms) if ticks else view.ticks
    if remembered and remembered[-1].seq != seq:
        # A tick that named more, because it was forged or its sender was ahead, is forgotten with its time.
        seq = max(tick.seq for tick in remembered)
    return PartitionView(
        clock_ms,
        last_tick_ms,
        heard,
        (*view.unvalidated, *heartbeats) if heartbeats else view.unvalidated,
        _recent((*view.marks, *marks), clock_ms) if marks else view.marks,
        {each: at_ms for each, at_ms in ticked.items() if clock_ms - at_ms < TICK_VALIDITY_MS},
        remembered,
        seq,
    )


def _other_processes(before: Heard | None, process_id: ProcessId) -> tuple[Heard, ...]:
    if before is None or not (before.others or are_two_processes(before.heartbeat.process_id, process_id)):
        return ()
    each = (before._replace(others=()), *before.others)
    return tuple(one for one in each if are_two_processes(one.heartbeat.process_id, process_id))[:_MOST_PROCESSES]


_Timed = TypeVar("_Timed", TickMark, ReadTick)


def _recent(timed: tuple[_Timed, ...], clock_ms: int) -> tuple[_Timed, ...]:
    """The marks or ticks of the window, and the last one before it."""
    first = bisect_right(timed, clock_ms - WINDOW_MS, key=lambda each: each.clock_ms) - 1
    return timed[first:] if first > 0 else timed
