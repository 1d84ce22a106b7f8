"""How long a wait for the log may take."""

from typing import Final

from controlplane.errors import LogUnavailableError
from controlplane.ports import Clock

READ_LIMIT_MS: Final = 60_000
STALL_LIMIT_MS: Final = 5_000
"""A contender that gets nothing from Kafka for this long stands in the way of one that would."""


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
