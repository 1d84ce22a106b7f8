"""The log's time: how much of it has passed in each partition of ``heartbeats``, and who was heard when.

Controllers append ticks to every partition of ``heartbeats``. The clock of a partition advances with its ticks, by at
most 200 ms from one tick to the next. A node's *silence* is what the clock of its heartbeat's partition has advanced
since its latest heartbeat. An outage of the broker, a paused leader or a stepped clock therefore makes no node silent:
without ticks no time passes, and a late tick counts 200 ms at most.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from controlplane.config import MAX_TICK_GAP_MS
from controlplane.core.membership.inputs import Heartbeat, Tick
from controlplane.core.values.identifiers import ControllerId, Incarnation, NodeId
from controlplane.core.values.inputs import InputRecord

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
        unvalidated: heartbeats that ``decide`` has not looked at yet.
        marks: recent ticks, oldest first: those of the last :data:`WINDOW_MS`, and one before.
        ticked: the clock at each controller's last tick.
    """

    clock_ms: int = 0
    last_tick_ms: int | None = None
    heard: Mapping[tuple[NodeId, Incarnation], Heard] = field(default_factory=dict)
    unvalidated: tuple[InputRecord, ...] = ()
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


NOTHING_READ: Final = PartitionView()
"""The view of a partition of which nothing was read."""


def _gap_ms(last_tick_ms: int | None, append_time_ms: int) -> int:
    """How much of the time since the last tick counts."""
    return 0 if last_tick_ms is None else min(max(append_time_ms - last_tick_ms, 0), MAX_TICK_GAP_MS)


def observe_partition(view: PartitionView, batch: Iterable[InputRecord]) -> PartitionView:
    """Fold heartbeats and ticks of one partition, in the order of their offsets; none of them was folded before."""
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
            # Not as of the tick before: the node would count as silent that much too early.
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
        (*view.unvalidated, *heartbeats) if heartbeats else view.unvalidated,
        _recent((*view.marks, *marks), clock_ms) if marks else view.marks,
        {each: at_ms for each, at_ms in ticked.items() if clock_ms - at_ms < TICKING_MS},
    )


def _recent(marks: tuple[TickMark, ...], clock_ms: int) -> tuple[TickMark, ...]:
    """The marks of the window, and the last before it: from there on all that is counted is the same."""
    first = bisect_right(marks, clock_ms - WINDOW_MS, key=lambda mark: mark.clock_ms) - 1
    return marks[first:] if first > 0 else marks
