"""A clock that moves only when a test or a simulation advances it."""

import threading

from controlplane.errors import InvariantViolationError

_FIRST_WALL_MS = 1_700_000_000_000


class VirtualClock:
    """Implements :class:`controlplane.ports.Clock`. Thread-safe.

    Args:
        monotonic_ms: the first time of the monotonic clock.
        wall_ms: the first time of the wall clock, in ms since 1970. :meth:`step_wall` moves this clock alone, as an
            operator or a time daemon would.
    """

    def __init__(self, monotonic_ms: int = 0, wall_ms: int = _FIRST_WALL_MS) -> None:
        """Begin at the given times."""
        self._lock = threading.Lock()
        self._monotonic_ms = monotonic_ms
        self._wall_ms = wall_ms

    def monotonic_ms(self) -> int:
        """Milliseconds since an arbitrary start; never decreases."""
        return self._monotonic_ms

    def wall_ms(self) -> int:
        """Milliseconds since 1970; may have been stepped."""
        return self._wall_ms

    def advance(self, milliseconds: int) -> None:
        """Move both clocks forward.

        Raises:
            InvariantViolationError: the amount is negative; monotonic time never decreases.
        """
        if milliseconds < 0:
            raise InvariantViolationError(f"time cannot go back by {-milliseconds} ms: advance by zero or more")
        with self._lock:
            self._monotonic_ms += milliseconds
            self._wall_ms += milliseconds

    def step_wall(self, milliseconds: int) -> None:
        """Move the wall clock forward or back, like a corrected system clock; monotonic time does not change."""
        with self._lock:
            self._wall_ms += milliseconds
