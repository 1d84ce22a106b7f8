"""A leader reads its own decisions back: is the log still the one that it leads, and does it lead it still?"""

from typing import Final

import structlog

from controlplane.config import DECISIONS
from controlplane.core.log.state import State
from controlplane.errors import FencedError, LogContinuityError
from controlplane.log_reading.deadlines import READ_LIMIT_MS, STALL_LIMIT_MS, StallWatch
from controlplane.ports import Clock
from controlplane.service.follower import LogFollower

_INTERVAL_MS: Final = 1_000

_log = structlog.get_logger(__name__)


class ReadBack:
    """What a leader has committed has to come back. One for each leadership; one thread only."""

    def __init__(self, follower: LogFollower, clock: Clock) -> None:
        """Begin now; ``follower`` knows the log as far as the leader did when it took over."""
        self._follower = follower
        self._clock = clock
        self._looked_at_ms = clock.monotonic_ms()
        self._watch = StallWatch(clock, STALL_LIMIT_MS)

    def look(self, led: State) -> bool:
        """Read on if it is time to, and compare with the leader's state; whether it was time.

        Raises:
            FencedError: somebody has opened a later term, which a leader with nothing to commit would not be told.
            LogUnavailableError: committed decisions do not come, and Kafka does not answer in time.
            StopError: the log is not the one that was led: it was deleted, made again, or has lost decisions.
        """
        now_ms = self._clock.monotonic_ms()
        if now_ms - self._looked_at_ms < _INTERVAL_MS:
            return False
        self._looked_at_ms = now_ms
        known_seq = self._follower.state.seq
        self._follower.poll(0)
        self._refuse_later_term(led)
        is_level = self._follower.state.seq >= led.seq
        if self._watch.is_stalled(progress=is_level or self._follower.state.seq > known_seq):
            self._read_anew(led)
        return True

    def _read_anew(self, led: State) -> None:
        """Ask as somebody who knows nothing of the topic.

        Where a topic was deleted and made again, its leader epochs begin anew. A client that knew the former ones takes
        what it is told for old news, and waits without an error. A producer does not look at them and writes on.
        """
        _log.warning("own decisions do not come back, reading anew", read=self._follower.state.seq, committed=led.seq)
        self._follower.read_to_end(READ_LIMIT_MS, STALL_LIMIT_MS)
        self._watch = StallWatch(self._clock, STALL_LIMIT_MS)
        self._refuse_later_term(led)
        if self._follower.state.seq < led.seq:
            message = (
                f"decision {led.seq} was committed, and topic {DECISIONS} ends with {self._follower.state.seq}: "
                "decisions were lost, or the topic was recreated"
            )
            raise LogContinuityError(message)

    def _refuse_later_term(self, led: State) -> None:
        read = self._follower.state
        if read.term > led.term:
            message = (
                f"{read.leader!r} has opened term {read.term}, so term {led.term} is over: has it another lease store "
                "or lease profile?"
            )
            raise FencedError(message)
