"""Follows the decision log: every decision is checked to continue the one before and folded into the state."""

from collections.abc import Callable
from typing import Final

from controlplane.codec.decisions import DecisionAssembler
from controlplane.config import DECISIONS
from controlplane.core.apply import follow
from controlplane.core.identifiers import TopicPartition
from controlplane.core.state import State
from controlplane.errors import LogContinuityError, LogUnavailableError, StopError
from controlplane.ports import Clock, LogReader

_LOG: Final = TopicPartition(DECISIONS, 0)
_MAX_RECORDS: Final = 500


class Patience:
    """How long reading something to its end may take: in all, and without anything new."""

    def __init__(self, clock: Clock, what: str, limit_ms: int, stall_limit_ms: int) -> None:
        """Begin now; ``what`` stands in the error."""
        self._clock = clock
        self._what = what
        self._began_at_ms = self._moved_at_ms = clock.monotonic_ms()
        self._limit_ms = limit_ms
        self._stall_limit_ms = stall_limit_ms

    def check(self, *, progress: bool) -> None:
        """Take note of whether there was progress.

        Raises:
            LogUnavailableError: it has taken too long.
        """
        now_ms = self._clock.monotonic_ms()
        if progress:
            self._moved_at_ms = now_ms
        if now_ms - self._moved_at_ms >= self._stall_limit_ms or now_ms - self._began_at_ms >= self._limit_ms:
            message = (
                f"{self._what} was not reached in {now_ms - self._began_at_ms} ms, "
                f"the last news came {now_ms - self._moved_at_ms} ms ago"
            )
            raise LogUnavailableError(message)


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
        self.state = State()
        self.next_offset = 0

    def poll(self, timeout_ms: int) -> bool:
        """Fold what there is; True if the end of the log was reached."""
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
        next_offset = self.next_offset
        while not self.poll(50):
            patience.check(progress=self.next_offset > next_offset)
            next_offset = self.next_offset

    def close(self) -> None:
        """Give the reader back; the state stays, and the next poll opens a new one where this one stood."""
        if self._reader is not None:
            self._reader.close()
            self._reader = None

    def _reopened(self) -> LogReader:
        reader = self._open_reader()
        first = reader.start_offsets(DECISIONS)[_LOG]
        if first > self.next_offset:
            message = (
                f"topic {DECISIONS} begins at offset {first}, needed is {self.next_offset}: decisions were deleted"
            )
            raise LogContinuityError(message)
        self._assembler = DecisionAssembler()
        reader.assign({_LOG: self.next_offset})
        return reader

    def _fold(self, offset: int, value: bytes | None) -> None:
        if value is None:
            message = f"{DECISIONS}[0]@{offset} has no value: nobody may delete decisions"
            raise LogContinuityError(message)
        try:
            decision = self._assembler.add(value)
            if decision is None:
                return  # more parts follow; reading again begins at the first of them
            self.state = follow(self.state, decision)
        except StopError as error:
            message = f"{DECISIONS}[0]@{offset}: {error}"
            raise type(error)(message) from error
        self.next_offset = offset + 1
