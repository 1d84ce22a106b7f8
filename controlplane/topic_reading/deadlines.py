"""Limits for reading a topic to its end: of the total time, and of the time without progress."""

from collections.abc import Callable
from typing import Final

import structlog

from controlplane.errors import LogUnavailableError
from controlplane.ports import Clock

READ_LIMIT_MS: Final = 60_000
STALL_LIMIT_MS: Final = 5_000
"""Limit of the time without progress. A contender beyond it would block others that may have a working connection."""
_TELL_AFTER_MS: Final = 10_000
"""Time without progress after which a reading that may go on for longer says in the log what it waits for."""

_log = structlog.get_logger(__name__)


class StallWatch:
    """Notices that something that is read to an end no longer makes progress."""

    def __init__(self, clock: Clock, limit_ms: int) -> None:
        """Begin now; without progress for ``limit_ms`` the reading is stalled."""
        self._clock = clock
        self._limit_ms = limit_ms
        self._moved_at_ms = clock.monotonic_ms()

    @property
    def without_news_ms(self) -> int:
        """Milliseconds since the last progress."""
        return self._clock.monotonic_ms() - self._moved_at_ms

    def is_stalled(self, *, progress: bool) -> bool:
        """Note whether there was progress; return whether there has been none for the limit."""
        if progress:
            self._moved_at_ms = self._clock.monotonic_ms()
        return not progress and self.without_news_ms >= self._limit_ms


class ReadDeadline:
    """The limits of one reading to an end: of its total time, and of its time without progress."""

    def __init__(self, clock: Clock, what: Callable[[], str], limit_ms: int | None, stall_limit_ms: int) -> None:
        """Begin now.

        Args:
            clock: monotonic time.
            what: says which end is to be reached, and by now perhaps what is missing; asked for the error alone.
            limit_ms: limit of the total time; None for no limit.
            stall_limit_ms: limit of the time without progress.
        """
        self._what = what
        self._clock = clock
        self._began_at_ms = clock.monotonic_ms()
        self._limit_ms = limit_ms
        self._watch = StallWatch(clock, stall_limit_ms)
        self._has_told = False

    def check(self, *, progress: bool) -> None:
        """Note whether there was progress.

        Raises:
            LogUnavailableError: a limit was exceeded.
        """
        stalled = self._watch.is_stalled(progress=progress)
        taken_ms = self._clock.monotonic_ms() - self._began_at_ms
        if stalled or (self._limit_ms is not None and taken_ms >= self._limit_ms):
            last_news = f"the last progress was {self._watch.without_news_ms} ms ago"
            raise LogUnavailableError(f"{self._what()} was not reached in {taken_ms} ms, {last_news}")
        if not self._has_told and self._watch.without_news_ms >= _TELL_AFTER_MS:
            self._has_told = True
            _log.warning("waiting for Kafka", awaited=self._what(), without_news_ms=self._watch.without_news_ms)
