"""Follows the decision log: every decision is checked to continue the one before and folded into the state.

It begins behind a snapshot, if there is a good one, and reads only what follows.
"""

from collections.abc import Callable
from typing import Final

from controlplane.codec.decisions import DecisionAssembler
from controlplane.config import DECISIONS
from controlplane.core.log.apply import follow
from controlplane.core.log.snapshots.log_point import LogPoint, asks_for_snapshot
from controlplane.core.log.state import State
from controlplane.core.values.identifiers import TopicPartition
from controlplane.errors import LogContinuityError, StopError
from controlplane.log_reading.deadlines import Patience
from controlplane.log_reading.recovery import recover, require_kept
from controlplane.ports import Clock, LogReader

_LOG: Final = TopicPartition(DECISIONS, 0)
_MAX_RECORDS: Final = 500


class LogFollower:
    """The state as of the last decision read; survives leaderships, because leaders decide on a copy."""

    def __init__(self, open_reader: Callable[[], LogReader], clock: Clock) -> None:
        """Start before the first decision.

        Args:
            open_reader: makes a new reader; a take-over needs one that began after the fencing.
            clock: for deadlines.
        """
        self._open_reader = open_reader
        self._clock = clock
        self._reader: LogReader | None = None
        self._assembler = DecisionAssembler()
        self._recovered = False
        self._decision_offset = 0
        self._decision_bytes = 0
        self.point = LogPoint(State())

    @property
    def state(self) -> State:
        """After the last decision read."""
        return self.point.state

    def poll(self, timeout_ms: int) -> bool:
        """Fold what there is; True if the end of the log was reached.

        Raises:
            LogUnavailableError: Kafka did not answer in time.
            StopError: the log, or what the snapshots say of it, is not what was read before.
        """
        if self._reader is None:
            self._reader = self._reopened()
        batch = self._reader.poll(_MAX_RECORDS, timeout_ms)
        for record in batch.records:
            self._fold(record.offset, record.value)
        return _LOG in batch.ended

    def read_to_end(self, limit_ms: int, stall_limit_ms: int) -> None:
        """Read with a reader that begins now until it reports the end: nothing that was committed before is missed.

        Raises:
            LogUnavailableError: it took longer than ``limit_ms`` in all, or ``stall_limit_ms`` without a new decision.
        """
        self.close()
        patience = Patience(self._clock, f"the end of topic {DECISIONS}", limit_ms, stall_limit_ms)
        next_offset = self.point.next_offset
        while not self.poll(50):
            patience.check(progress=self.point.next_offset > next_offset)
            next_offset = self.point.next_offset

    def close(self) -> None:
        """Give the reader back; the state stays, and the next poll opens a new one where this one stood."""
        if self._reader is not None:
            self._reader.close()
            self._reader = None

    def _reopened(self) -> LogReader:
        reader = self._open_reader()
        try:
            if not self._recovered:
                self.point = recover(reader, self._clock)
                self._recovered = True
            require_kept(reader, self.point.next_offset)
        except BaseException:
            reader.close()
            raise
        self._assembler = DecisionAssembler()
        reader.assign({_LOG: self.point.next_offset})
        return reader

    def _fold(self, offset: int, value: bytes | None) -> None:
        if value is None:
            message = f"{DECISIONS}[0]@{offset} has no value: nobody may delete decisions"
            raise LogContinuityError(message)
        if not self._assembler.within_decision:
            self._decision_offset = offset
            self._decision_bytes = 0
        self._decision_bytes += len(value)
        try:
            decision = self._assembler.add(value)
            if decision is None:
                return  # more parts follow; reading again begins at the first of them
            state = follow(self.state, decision)
        except StopError as error:
            message = f"{DECISIONS}[0]@{offset}: {error}"
            raise type(error)(message) from error
        self.point = LogPoint(
            state,
            last_decision_offset=self._decision_offset,
            next_offset=offset + 1,
            read_bytes=self.point.read_bytes + self._decision_bytes,
            asked_for=decision.seq if asks_for_snapshot(decision) else self.point.asked_for,
        )
