"""The leader's check that ``routing-table`` holds what it committed, and the rate limit of repairs.

Every client that may write to the topic can overwrite a row. Repairs are rate-limited, so that a flood of foreign
records leads to a bounded number of epochs. While one repair follows another, the next one waits for 1 s, 2 s, 4 s and
so on up to 64 s. The first repair after 64 s without damage does not wait. A flood thus causes seven repairs in its
first 64 s, and one per 64 s from then on.
"""

from collections.abc import Sequence
from enum import Enum
from typing import Final, NamedTuple

from controlplane.core.routing.topic_image import TopicImage
from controlplane.core.values.identifiers import Epoch

_FIRST_WAIT_MS: Final = 1_000
_LONGEST_WAIT_MS: Final = 64_000
_MOST_NAMED: Final = 3
_SHOWN: Final = 80


class TableDamage(NamedTuple):
    """The difference between the topic and the committed table.

    Attributes:
        keys: the keys that do not hold the committed row, sorted.
        image: the contents of the topic.
    """

    keys: Sequence[str]
    image: TopicImage

    @property
    def evidence(self) -> str:
        """A description of the damage for the decision that repairs it."""
        overwritten = ["the epoch marker was written over"] if self.image.marker_is_overwritten else []
        named = ", ".join(f"{key!r:.{_SHOWN}}" for key in self.keys[:_MOST_NAMED])
        beyond = f" and {len(self.keys) - _MOST_NAMED} more" if len(self.keys) > _MOST_NAMED else ""
        rows = [f"{len(self.keys)} keys hold what no leader wrote: {named}{beyond}"] if self.keys else []
        return "; ".join(overwritten + rows) or "the marker of the last epoch does not stand in the topic"


class OwnEpoch(Enum):
    """The state of a leader's last epoch in the topic, as far as the leader has read it."""

    SHOWN = "shown"
    """Its marker was read. All its rows precede the marker."""
    AWAITED = "awaited"
    """It was committed but not read yet, and the topic is still being read to its end or was recently."""
    OVERDUE = "overdue"
    """It did not arrive in time. The reader may be the cause, so the topic has to be read again with a new one."""
    MISSING = "missing"
    """It did not arrive although the topic was read again to its end."""


class OwnEpochWatch:
    """Watches whether a leader reads its own epochs back from the topic. Times are monotonic."""

    def __init__(self, now_ms: int, stall_limit_ms: int) -> None:
        """Begin to watch.

        Args:
            now_ms: time at which reading the topic begins.
            stall_limit_ms: time without a new record after which an epoch is overdue.
        """
        self._stall_limit_ms = stall_limit_ms
        self._moved_at_ms = now_ms
        self._read_anew_for: Epoch | None = None

    def look(self, now_ms: int, epoch: Epoch, *, is_shown: bool, has_moved: bool, is_at_end: bool) -> OwnEpoch:
        """The state of the last epoch. After ``OVERDUE`` the topic has to be read again from its start.

        Args:
            now_ms: time of the last reading.
            epoch: the leader's last epoch.
            is_shown: whether the last marker of the topic is that of the leader's last epoch.
            has_moved: whether the last reading returned a record.
            is_at_end: whether the topic was read to the end that it had when reading from its start began.
        """
        if is_shown or (has_moved and not is_at_end):
            # While the last epoch is shown, the time limit for the next one does not run. Records behind the end that
            # was asked for do not count as progress: a foreign writer can go on for ever.
            self._moved_at_ms = now_ms
        if is_shown:
            self._read_anew_for = None
            return OwnEpoch.SHOWN
        if now_ms - self._moved_at_ms < self._stall_limit_ms:
            return OwnEpoch.AWAITED
        # The end was asked for after this epoch's commit. A later epoch may still stand behind that end.
        if self._read_anew_for == epoch and is_at_end:
            return OwnEpoch.MISSING
        self._moved_at_ms, self._read_anew_for = now_ms, epoch
        return OwnEpoch.OVERDUE


class RepairPace:
    """The rate limit of repairs. Times are monotonic."""

    def __init__(self) -> None:
        """Create a rate limit that allows the first repair immediately."""
        self._wait_ms = 0
        self._repaired_at_ms = 0
        self._damaged_at_ms: int | None = None
        self._fewest_foreign_keys: int | None = None

    def continues(self, foreign_keys: int) -> None:
        """Note that the repair just allowed removes only some of the foreign keys: the next one waits for 1 s.

        This holds only while repairs get the better of the damage, so that a flood cannot avoid the longer waits.

        Args:
            foreign_keys: number of foreign keys before this repair. The next repair waits for the usual time unless
                there were never so few since the damage began.
        """
        if self._fewest_foreign_keys is None or foreign_keys < self._fewest_foreign_keys:
            self._fewest_foreign_keys = foreign_keys
            self._wait_ms = _FIRST_WAIT_MS

    def allows(self, now_ms: int) -> bool:
        """Whether the damaged table may be repaired now. If so, the call counts as a repair."""
        known_since_ms = self._damaged_at_ms
        self._damaged_at_ms = now_ms
        if known_since_ms is None or now_ms - known_since_ms >= _LONGEST_WAIT_MS:
            self._wait_ms = 0
            self._fewest_foreign_keys = None
        if now_ms - self._repaired_at_ms < self._wait_ms:
            return False
        self._wait_ms = min(2 * self._wait_ms, _LONGEST_WAIT_MS) or _FIRST_WAIT_MS
        self._repaired_at_ms = now_ms
        return True
