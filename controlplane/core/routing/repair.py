"""What is wrong with the topic of the table, and how often the table may be written again.

Anything that can write to the topic can overwrite a row. Repairs are paced, so that a flood of foreign records gives a
bounded number of epochs. While one repair follows another, the next one waits for 1 s, 2 s, 4 s and so on up to 64 s.
The first one after 64 s without damage does not wait. That is seven repairs in the first 64 s of a flood, and one in
64 s from then on.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

from controlplane.core.routing.topic_image import TopicImage

_FIRST_WAIT_MS: Final = 1_000
_LONGEST_WAIT_MS: Final = 64_000
_MOST_NAMED: Final = 3
_SHOWN: Final = 80


class TableDamage(NamedTuple):
    """What is wrong with the topic.

    Attributes:
        keys: those that do not hold what was committed, sorted.
        image: what the topic holds.
    """

    keys: Sequence[str]
    image: TopicImage

    @property
    def evidence(self) -> str:
        """A sentence for the decision that repairs it."""
        overwritten = ["the epoch marker was written over"] if self.image.marker_is_overwritten else []
        named = ", ".join(f"{key!r:.{_SHOWN}}" for key in self.keys[:_MOST_NAMED])
        beyond = f" and {len(self.keys) - _MOST_NAMED} more" if len(self.keys) > _MOST_NAMED else ""
        rows = [f"{len(self.keys)} keys hold what no leader wrote: {named}{beyond}"] if self.keys else []
        return "; ".join(overwritten + rows) or "the marker of the last epoch does not stand in the topic"


class RepairPace:
    """How often the table may be repaired. Times are monotonic."""

    def __init__(self) -> None:
        """Nothing was damaged so far."""
        self._wait_ms = 0
        self._repaired_at_ms = 0
        self._damaged_at_ms: int | None = None

    def allows(self, now_ms: int) -> bool:
        """Whether to repair the table now, which is damaged; if so, this counts as a repair."""
        known_since_ms = self._damaged_at_ms
        self._damaged_at_ms = now_ms
        if known_since_ms is None or now_ms - known_since_ms >= _LONGEST_WAIT_MS:
            self._wait_ms = 0
        if now_ms - self._repaired_at_ms < self._wait_ms:
            return False
        self._wait_ms = min(2 * self._wait_ms, _LONGEST_WAIT_MS) or _FIRST_WAIT_MS
        self._repaired_at_ms = now_ms
        return True
