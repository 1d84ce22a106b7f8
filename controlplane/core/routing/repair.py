"""Whether the topic of the table shows what was committed, and how often the table may be written again.

Anything that can write to the topic can overwrite a row. Repairs are paced, so that a flood of foreign records gives a
bounded number of epochs. While one repair follows another, the next one waits for 1 s, 2 s, 4 s and so on up to 64 s.
The first one after 64 s without damage does not wait. That is seven repairs in the first 64 s of a flood, and one in
64 s from then on.
"""

from collections.abc import Sequence
from enum import Enum
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


class OwnEpoch(Enum):
    """Where the last epoch of a leader is, in what it reads of the topic."""

    SHOWN = "shown"
    """Its marker was read; every row of it stands before that."""
    AWAITED = "awaited"
    """It was committed and not read yet, and the topic still moves, or did so lately."""
    OVERDUE = "overdue"
    """It does not come. The reader may be at fault, so the topic is to be read anew with another one."""
    MISSING = "missing"
    """It does not come, and the topic was read anew to its end."""


class OwnEpochWatch:
    """Whether a leader's epochs come back when it reads the topic. Times are monotonic."""

    def __init__(self, now_ms: int, stall_limit_ms: int) -> None:
        """Begin now.

        Args:
            now_ms: from when on the topic is read.
            stall_limit_ms: how long it may stand still before an epoch is overdue.
        """
        self._stall_limit_ms = stall_limit_ms
        self._moved_at_ms = now_ms
        self._was_read_anew = False

    def look(self, now_ms: int, *, is_shown: bool, has_moved: bool, is_at_end: bool) -> OwnEpoch:
        """Where the last epoch is; after ``OVERDUE`` the topic has to be read anew.

        Args:
            now_ms: when the topic was last read.
            is_shown: whether the last marker of the topic is that of the leader's last epoch.
            has_moved: whether a record was read.
            is_at_end: whether the topic was read to its end.
        """
        if has_moved or is_shown:
            # Once it is shown, what comes behind is not the leader's, however long the topic goes on.
            self._moved_at_ms = now_ms
        if is_shown:
            self._was_read_anew = False
            return OwnEpoch.SHOWN
        if now_ms - self._moved_at_ms < self._stall_limit_ms:
            return OwnEpoch.AWAITED
        if self._was_read_anew and is_at_end:
            return OwnEpoch.MISSING
        self._moved_at_ms, self._was_read_anew = now_ms, True
        return OwnEpoch.OVERDUE


class RepairPace:
    """How often the table may be repaired. Times are monotonic."""

    def __init__(self) -> None:
        """Nothing was damaged so far."""
        self._wait_ms = 0
        self._repaired_at_ms = 0
        self._damaged_at_ms: int | None = None

    def continues(self) -> None:
        """Note that the repair that was allowed last removes a part of the damage: the next one waits for 1 s."""
        self._wait_ms = _FIRST_WAIT_MS

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
