"""Follows the decision log: checks that each decision continues the one before it, and folds it into the state.

Reading begins after the newest usable snapshot, or at the start of the log if there is none.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from typing import Final

from controlplane.config import DECISIONS
from controlplane.core.log.apply import apply_decision
from controlplane.core.log.log_mark import LogMark
from controlplane.core.log.snapshots.log_point import LogPoint, asks_for_snapshot
from controlplane.core.log.state import State
from controlplane.core.values.identifiers import Seq, TopicPartition
from controlplane.core.values.positions import DECISIONS_PARTITION
from controlplane.errors import RESTORE_OR_BEGIN_ANEW, LogContinuityError, StopError
from controlplane.ports import Clock, LogReader, PartitionEnd, RawRecord
from controlplane.topic_reading.deadlines import ReadDeadline
from controlplane.topic_reading.decision_stream import DecisionStream
from controlplane.topic_reading.foreign_records import ForeignRecords
from controlplane.topic_reading.start_point import find_start_point, read_catalog, require_kept, require_stands
from controlplane.topic_reading.unread import NO_BARRIER, Unread

_MAX_RECORDS: Final = 500
_CONFIRM_INTERVAL_MS: Final = 10_000
"""Least time between two checks for a recreated topic: a flood of another log's decisions must not cause one each."""


class LogFollower:
    """The state as of the last decision read. It outlives leaderships, because leaders decide on a copy."""

    def __init__(
        self, open_reader: Callable[[], LogReader], clock: Clock, on_foreign: Callable[[], None] = lambda: None
    ) -> None:
        """Begin before the first decision.

        Args:
            open_reader: makes a new reader; a take-over needs one that was opened after the fencing.
            clock: for deadlines.
            on_foreign: called once for each record that does not belong to this log.
        """
        self._open_reader = open_reader
        self._clock = clock
        self._reader: LogReader | None = None
        self._unread = Unread({}, {})
        self._barrier = NO_BARRIER
        self._foreign = ForeignRecords(DECISIONS, on_foreign)
        self._stream = DecisionStream(foreign=self._foreign)
        self._confirmed_at_ms: int | None = None
        self._read_offset = 0
        self._recovered = False
        self._decision_offset = 0
        self._decision_bytes = 0
        self._snapshots: Sequence[LogMark] = ()
        self.point = LogPoint(State())

    @property
    def newest_snapshot(self) -> LogMark | None:
        """The last decision that a snapshot of this log knew when this process first read the log; None for none."""
        marks = [mark for mark in self._snapshots if mark.log_id == self.state.log_id]
        return max(marks, key=lambda mark: mark.seq, default=None)

    @property
    def state(self) -> State:
        """The state after the last decision read."""
        return self.point.state

    @property
    def is_open(self) -> bool:
        """Whether the next poll reads on with the present reader, and does not have to open one first."""
        return self._reader is not None

    def poll(self, timeout_ms: int) -> bool:
        """Fold the records that are available.

        Returns:
            Whether everything up to the end that the log had when the present reader was opened has been read.

        Raises:
            LogUnavailableError: Kafka did not answer in time.
            StopError: the log, or the snapshots' account of it, contradicts what was read before.
        """
        if self._reader is None:
            self._reader = self._reopened()
        batch = self._reader.poll(_MAX_RECORDS, timeout_ms)
        for record in batch.records:
            self._fold(record)
            self._read_offset = record.offset + 1
        # First: the records are folded, also if Kafka does not answer whether the log still stands.
        self._unread.take(batch)
        if self._stream.met_another_log:
            self._confirm_log()
        return not self._unread.places

    def read_to_end(
        self, limit_ms: int, stall_limit_ms: int, barrier: Mapping[TopicPartition, int] = NO_BARRIER
    ) -> None:
        """Open a new reader and read up to the end that the log has at that moment.

        With a barrier that was written to the log, everything is read that was committed before the barrier was
        written. Without one, it is what the answering broker knows, which may be less, even less than was read before:
        only a barrier shows whether that broker lags or the log has lost its end. Records that a foreign writer keeps
        appending do not delay it.

        Raises:
            LogUnavailableError: it took longer than ``limit_ms`` in all, or ``stall_limit_ms`` without a new decision.
            LogContinuityError: the barrier lies before what was read, or the last decision that was read is no longer
                before it: the log has lost its end.
        """
        self.close()
        place, known = DECISIONS_PARTITION, self.point
        if barrier.get(place, self.point.next_offset) < self.point.next_offset:
            message = (
                f"a record was appended to topic {DECISIONS} at offset {barrier[place]}, but decision {self.state.seq} "
                f"was read before offset {self.point.next_offset}: decisions were lost, or the topic was recreated, "
                f"or the brokers were restored from an older copy; {RESTORE_OR_BEGIN_ANEW}"
            )
            raise LogContinuityError(message)
        self._barrier = barrier
        deadline = ReadDeadline(
            self._clock, lambda: f"the end of topic {DECISIONS}{self._unread.shortfall}", limit_ms, stall_limit_ms
        )
        read_offset = self._read_offset
        while not self.poll(50):
            if self._unread.beyond and not barrier:
                return
            deadline.check(progress=self._read_offset > read_offset)
            read_offset = self._read_offset
        if barrier and known.state.seq:
            self._require_stands(known, barrier[place])

    def _require_stands(self, known: LogPoint, barrier: int | None = None) -> None:
        """Check that the last decision that was read before is still in the log, and not only in this memory.

        With a barrier by what stands before it, otherwise by what the answering broker knows. A log that has lost its
        end grows by each barrier. It soon reaches past the offsets that it had, and what was read before seems to lie
        within it. A decision that was committed then would follow one that is not there.
        """
        with closing(self._open_reader()) as reader:
            require_stands(reader, self._clock, known, barrier)

    def read_to(self, seq: Seq, limit_ms: int, stall_limit_ms: int) -> PartitionEnd | None:
        """Open a new reader and read on until a decision, or until the answering broker reports the end of the log.

        Returns:
            The end that was reported before the decision was read; None if the decision was read.

        Raises:
            LogUnavailableError: it took longer than ``limit_ms`` in all, or ``stall_limit_ms`` without a record.
        """
        self.close()
        self._barrier = NO_BARRIER
        deadline = ReadDeadline(self._clock, lambda: f"decision {seq} in topic {DECISIONS}", limit_ms, stall_limit_ms)
        read_offset = self._read_offset
        while True:
            self.poll(50)
            if self.state.seq >= seq:
                return None
            end = self._unread.last_ends.get(DECISIONS_PARTITION)
            if end is not None:
                return end
            deadline.check(progress=self._read_offset > read_offset)
            read_offset = self._read_offset

    def close(self) -> None:
        """Close the reader and keep the state; the next poll opens a new reader at the same place."""
        if self._reader is not None:
            self._reader.close()
            self._reader = None

    def _reopened(self) -> LogReader:
        reader = self._open_reader()
        try:
            if not self._recovered:
                catalog = read_catalog(reader, self._clock)
                self.point = find_start_point(reader, self._clock, catalog=catalog)
                self._snapshots = catalog.marks()
                self._recovered = True
            require_kept(reader, self.point.next_offset)
            begin = {DECISIONS_PARTITION: self.point.next_offset}
            self._unread = Unread(begin, reader.end_offsets(DECISIONS), self._barrier)
        except BaseException:
            reader.close()
            raise
        self._stream = DecisionStream(self.state.log_id, Seq(self.state.seq + 1), self._foreign)
        self._read_offset = self.point.next_offset
        reader.assign(begin)
        return reader

    def _confirm_log(self) -> None:
        """Check that the log still holds the last decision read, after decisions of another log were found in it.

        Those decisions are foreign, unless the topic was deleted and created again for the other log.

        Raises:
            LogUnavailableError: Kafka did not answer in time; the next poll checks again.
            LogContinuityError: the last decision that was read is no longer in the topic.
        """
        now_ms = self._clock.monotonic_ms()
        if self._confirmed_at_ms is None or now_ms - self._confirmed_at_ms >= _CONFIRM_INTERVAL_MS:
            self._require_stands(self.point)
            self._confirmed_at_ms = now_ms
            self._stream.met_another_log = False

    def _fold(self, record: RawRecord) -> None:
        begins = not self._stream.within_decision
        decision = self._stream.take(record)
        if decision is None and not self._stream.within_decision:
            # Foreign: a new reader need not begin before it.
            self.point = replace(self.point, next_offset=record.offset + 1)
            return
        if begins:
            self._decision_offset = record.offset
            self._decision_bytes = 0
        self._decision_bytes += len(record.value or b"")
        if decision is None:
            return  # more parts follow; a new reader begins at the first part
        try:
            state = apply_decision(self.state, decision)
        except StopError as error:
            message = f"{DECISIONS}[0]@{record.offset}: {error}"
            raise type(error)(message) from error
        self.point = LogPoint(
            state,
            last_decision_offset=self._decision_offset,
            next_offset=record.offset + 1,
            read_bytes=self.point.read_bytes + self._decision_bytes,
            asked_for=decision.seq if asks_for_snapshot(decision) else self.point.asked_for,
        )
