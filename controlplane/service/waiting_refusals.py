"""Refused inputs that wait for their dead letters, bounded in number and in bytes."""

from collections.abc import Iterable, Iterator
from typing import Final

import structlog

from controlplane.core.values.inputs import Refusal
from controlplane.ports import Clock

_REFUSALS_KEPT: Final = 10_000
"""By a standby, which may follow for days beside a foreign writer. A leader keeps all until it has written them."""
_DROPS_LOGGED_EVERY_MS: Final = 10_000
_REFUSED_BYTES_KEPT: Final = 64_000_000
"""Limit of all refusals together. A standby keeps them until a leader has written their dead letters, and a foreign
writer can put garbage into each. Beyond this limit the older ones are kept without their bytes."""

_log = structlog.get_logger(__name__)


class WaitingRefusals:
    """The refusals of one controller, oldest first. Not thread-safe."""

    def __init__(self, clock: Clock) -> None:
        """Begin without one.

        Args:
            clock: for the interval of log lines.
        """
        self._clock = clock
        self._waiting: list[Refusal] = []
        self._dropped = 0
        self._drops_logged_at_ms: int | None = None

    def __iter__(self) -> Iterator[Refusal]:
        """Those that wait."""
        return iter(self._waiting)

    def add(self, *refusals: Refusal) -> None:
        """Keep more of them."""
        self._waiting += refusals

    def keep(self, waiting: Iterable[Refusal]) -> None:
        """Keep these alone: the letters of the others are written."""
        self._waiting = _bounded(list(waiting))

    def bound(self) -> None:
        """Keep the oldest without their bytes where all bytes together are too many."""
        self._waiting = _bounded(self._waiting)

    def drop_oldest(self) -> None:
        """Keep the newest 10,000 refusals. Only for a standby: no dead letter will be written of the others.

        If it then leads, its positions pass those inputs; the leader that refused them as well may have written theirs.
        """
        dropped = len(self._waiting) - _REFUSALS_KEPT
        if dropped <= 0:
            return
        del self._waiting[:dropped]
        self._dropped += dropped
        now_ms = self._clock.monotonic_ms()
        if self._drops_logged_at_ms is None or now_ms - self._drops_logged_at_ms >= _DROPS_LOGGED_EVERY_MS:
            self._drops_logged_at_ms = now_ms
            _log.warning(
                "refused inputs wait for a leader to write their dead letters, the oldest are dropped",
                dropped=self._dropped,
                kept=_REFUSALS_KEPT,
            )

    def take(self) -> list[Refusal]:
        """Remove and return the refusals whose dead letters may not be written yet; the leader writes them."""
        refusals, self._waiting = self._waiting, []
        return refusals


def _bounded(refusals: list[Refusal]) -> list[Refusal]:
    """The refusals, the oldest of them without their bytes where all bytes together are too many."""
    left_bytes = _REFUSED_BYTES_KEPT
    for number in reversed(range(len(refusals))):
        left_bytes -= len(refusals[number].raw)
        if left_bytes < 0:
            return [each._replace(raw=b"") for each in refusals[: number + 1]] + refusals[number + 1 :]
    return refusals
