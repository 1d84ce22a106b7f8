"""How long reading a topic to its end may take: in all, and without anything new."""

from typing import Final

from controlplane.errors import LogUnavailableError
from controlplane.ports import Clock

READ_LIMIT_MS: Final = 60_000
STALL_LIMIT_MS: Final = 5_000
"""A contender that gets nothing from Kafka for this long stands in the way of one that would."""


class StallWatch:
    """Whether anything new still comes while something is read to an end."""

    def __init__(self, clock: Clock, limit_ms: int) -> None:
        """Begin now; nothing new for ``limit_ms`` is too long."""
        self._clock = clock
        self._limit_ms = limit_ms
        self._moved_at_ms = clock.monotonic_ms()

    @property
    def without_news_ms(self) -> int:
        """How long ago the last news came."""
        return self._clock.monotonic_ms() - self._moved_at_ms

    def is_stalled(self, *, progress: bool) -> bool:
        """Take note of whether there was progress; whether there was none for too long."""
        if progress:
            self._moved_at_ms = self._clock.monotonic_ms()
        return not progress and self.without_news_ms >= self._limit_ms


class ReadDeadline:
    """How long reading something to its end may take: in all, and without anything new.

    Attributes:
        what: is waited for; stands in the error.
    """

    def __init__(self, clock: Clock, what: str, limit_ms: int | None, stall_limit_ms: int) -> None:
        """Begin now; a ``limit_ms`` of None allows any time in all."""
        self.what = what
        self._clock = clock
        self._began_at_ms = clock.monotonic_ms()
        self._limit_ms = limit_ms
        self._watch = StallWatch(clock, stall_limit_ms)

    def check(self, *, progress: bool) -> None:
        """Take note of whether there was progress.

        Raises:
            LogUnavailableError: it has taken too long.
        """
        stalled = self._watch.is_stalled(progress=progress)
        taken_ms = self._clock.monotonic_ms() - self._began_at_ms
        if stalled or (self._limit_ms is not None and taken_ms >= self._limit_ms):
            last_news = f"the last news came {self._watch.without_news_ms} ms ago"
            raise LogUnavailableError(f"{self.what} was not reached in {taken_ms} ms, {last_news}")
