"""Lets a leader read its own decisions back, to notice that the log was replaced or that another controller leads."""

from typing import Final

import structlog

from controlplane.core.log.identity import check_committed, check_term
from controlplane.core.log.state import State
from controlplane.ports import Clock
from controlplane.service.follower import LogFollower
from controlplane.topic_reading.deadlines import READ_LIMIT_MS, STALL_LIMIT_MS, StallWatch

_INTERVAL_MS: Final = 1_000

_log = structlog.get_logger(__name__)


class ReadBack:
    """Checks that what a leader has committed can be read. One for each leadership. Not thread-safe."""

    def __init__(self, follower: LogFollower, clock: Clock) -> None:
        """Begin now; ``follower`` has read the log as far as the leader had when it took over."""
        self._follower = follower
        self._clock = clock
        self._looked_at_ms = clock.monotonic_ms()
        self._watch = StallWatch(clock, STALL_LIMIT_MS)

    def look(self, led: State) -> bool:
        """Read on if the interval has passed, and compare with the leader's state; return whether it had passed.

        Raises:
            FencedError: a later term is open, which a leader with nothing to commit would not notice otherwise.
            LogUnavailableError: committed decisions do not arrive, and Kafka does not answer in time.
            StopError: the log is not the one that was led: it was deleted, recreated, or has lost decisions.
        """
        now_ms = self._clock.monotonic_ms()
        if now_ms - self._looked_at_ms < _INTERVAL_MS:
            return False
        self._looked_at_ms = now_ms
        known_seq = self._follower.state.seq
        self._follower.poll(0)
        check_term(self._follower.state, led)
        is_level = self._follower.state.seq >= led.seq
        if self._watch.is_stalled(progress=is_level or self._follower.state.seq > known_seq):
            self._read_anew(led)
        return True

    def _read_anew(self, led: State) -> None:
        """Read with a new client, which has no cached metadata.

        When a topic is deleted and recreated, its leader epochs start again. A consumer that knows the former epochs
        ignores the new metadata as outdated, and waits without an error. A producer ignores the epochs and writes on.
        """
        _log.warning("own decisions cannot be read, reopening", read=self._follower.state.seq, committed=led.seq)
        self._follower.read_to_end(READ_LIMIT_MS, STALL_LIMIT_MS)
        self._watch = StallWatch(self._clock, STALL_LIMIT_MS)
        check_term(self._follower.state, led)
        check_committed(self._follower.state, led)
