"""Lets a leader read its own decisions back, to notice that the log was replaced or that another controller leads."""

from collections.abc import Callable, Mapping
from typing import Final

import structlog

from controlplane.config import DECISIONS
from controlplane.core.log.identity import check_committed, check_term
from controlplane.core.log.state import State
from controlplane.core.values.identifiers import TopicPartition
from controlplane.errors import LogUnavailableError
from controlplane.ports import Clock
from controlplane.service.follower import LogFollower
from controlplane.topic_reading.deadlines import READ_LIMIT_MS, STALL_LIMIT_MS, StallWatch

_INTERVAL_MS: Final = 1_000

_log = structlog.get_logger(__name__)


class ReadBack:
    """Checks that what a leader has committed can be read. One for each leadership. Not thread-safe."""

    def __init__(
        self,
        follower: LogFollower,
        write_barrier: Callable[[], Mapping[TopicPartition, int]],
        clock: Clock,
        stall_limit_ms: int,
    ) -> None:
        """Begin now.

        Args:
            follower: has read the log as far as the leader had when it took over.
            write_barrier: appends a barrier to the log, through the leader's own writer.
            clock: for the interval and for deadlines.
            stall_limit_ms: how long to wait for the barrier.
        """
        self._follower = follower
        self._write_barrier = write_barrier
        self._stall_limit_ms = stall_limit_ms
        self._clock = clock
        self._looked_at_ms = clock.monotonic_ms()
        self._is_put_off = False
        self._seq_at_look = follower.state.seq
        self._watch = StallWatch(clock, STALL_LIMIT_MS)

    def look(self, led: State, is_acknowledged: Callable[[], bool]) -> bool:
        """Read on; if the interval has passed, compare with the leader's state. Return whether it had passed.

        A leader that decides often would otherwise fold the decisions of a whole interval at once, and whatever its
        nodes report meanwhile would wait for that.

        Args:
            led: the leader's state.
            is_acknowledged: whether Kafka acknowledges the leader's ticks now. While it does not, decisions that do not
                come and readings that fail prove nothing, and would end a leadership that no other one could replace.

        Raises:
            FencedError: a later term is open, which a leader with nothing to commit would not notice otherwise.
            LogUnavailableError: committed decisions do not arrive, and Kafka, which acknowledges ticks, does not answer
                in time, or only a broker that lags; or the leader's writer is of no use any more.
            StopError: the log is not the one that was led: it was deleted, recreated, or has lost decisions.
        """
        now_ms = self._clock.monotonic_ms()
        is_due = now_ms - self._looked_at_ms >= _INTERVAL_MS
        reads_on = self._follower.is_open and not self._is_put_off and self._follower.state.seq < led.seq
        if not is_due and not reads_on:
            return False
        self._is_put_off = False
        try:
            self._read_on(led)
            if not is_due:
                return False
            self._looked_at_ms = now_ms
            if not self._needs_barrier(led, is_acknowledged):
                return True
        except LogUnavailableError as error:
            self._looked_at_ms = now_ms
            self._put_off(error, is_acknowledged)
            return True
        # Outside: a barrier that fails leaves a writer that cannot commit any more.
        barrier = self._write_barrier()
        try:
            self._follower.read_to_end(READ_LIMIT_MS, self._stall_limit_ms, barrier)
        except LogUnavailableError as error:
            self._put_off(error, is_acknowledged)
            return True
        check_term(self._follower.state, led)
        check_committed(self._follower.state, led)
        return True

    def _put_off(self, error: LogUnavailableError, is_acknowledged: Callable[[], bool]) -> None:
        """Read on later, if Kafka is away; otherwise raise the error of the reading."""
        if is_acknowledged():
            raise error
        _log.warning("own decisions are read back when Kafka is there again", error=str(error))
        self._is_put_off = True
        self._watch = StallWatch(self._clock, STALL_LIMIT_MS)

    def _read_on(self, led: State) -> None:
        self._follower.poll(0)
        check_term(self._follower.state, led)

    def _needs_barrier(self, led: State, is_acknowledged: Callable[[], bool]) -> bool:
        """Whether only a barrier can show if decisions are lost that have not come since the last look.

        When a topic is deleted and recreated, its leader epochs start again. A consumer that knows the former epochs
        ignores the new metadata as outdated, and waits without an error. A producer ignores the epochs and writes on.
        So decisions that do not come are read with a new client, which has no cached metadata.

        They may still be late: the end of a transaction is acknowledged before its marker is written, and until then no
        reader gets further. They count as lost only if they are not before a barrier that is written now. A broker that
        lags ends the log before that barrier.
        """
        known_seq, self._seq_at_look = self._seq_at_look, self._follower.state.seq
        has_read_on = self._follower.state.seq >= led.seq or self._follower.state.seq > known_seq
        if not self._watch.is_stalled(progress=has_read_on or not is_acknowledged()):
            return False
        _log.warning("own decisions cannot be read, reopening", read=self._follower.state.seq, committed=led.seq)
        end = self._follower.read_to(led.seq, READ_LIMIT_MS, STALL_LIMIT_MS)
        self._watch = StallWatch(self._clock, STALL_LIMIT_MS)
        check_term(self._follower.state, led)
        if end is not None and end.awaits_marker:
            _log.warning("a transaction's end is not marked yet, waiting", topic=DECISIONS, offset=end.offset)
            return False
        return end is not None
