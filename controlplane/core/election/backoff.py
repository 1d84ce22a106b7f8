"""How long a controller that could have led, and does not, stays away from the lease, and is not to be preferred.

Two times begin when a take-over fails. For the first it does not ask for the lease: at most for some leases, because
there may be nobody else to lead. For the second, which goes on growing with every failure, it asks like somebody whom
nobody prefers: no free lease is left to it, and no leader hands over to it, because each time would end a leadership
that works. Time is an argument, and so is randomness, ``draw``: from 0 up to but not including 1.
"""

from enum import Enum
from typing import Final, NamedTuple

PAUSE_MS: Final = 200
"""How long a controller waits before it tries again what Kafka did not answer."""
_UNFIT_DOUBLES_AT_MOST: Final = 10
"""A leader hands over to such a one once in a thousand leases, which is half an hour with the usual ones."""
_DOUBLES_AT_MOST: Final = 3
"""Whoever fails at every take-over does not ask for four to eight leases: there may be nobody else to lead."""


class Failures(NamedTuple):
    """Take-overs of a controller that failed, since it last opened a term.

    Attributes:
        in_a_row: how many.
        unfit_until_ms: up to when, on the monotonic clock, nobody is to prefer it.
    """

    in_a_row: int = 0
    unfit_until_ms: int = 0

    def one_more(self, now_ms: int, lease_ms: int) -> "Failures":
        """Another one; those before count unless it is long ago that they mattered."""
        quiet_ms = 2**_UNFIT_DOUBLES_AT_MOST * lease_ms
        in_a_row = 1 if now_ms - self.unfit_until_ms > quiet_ms else self.in_a_row + 1
        return Failures(in_a_row, now_ms + 2 ** min(in_a_row, _UNFIT_DOUBLES_AT_MOST) * lease_ms)


class Absence(Enum):
    """Why a controller stays away from the lease."""

    FALLEN = "fallen"
    """It led, or nobody could tell it whether the lease is its own: others may have had the same mishap."""
    FAILED = "failed"
    """It held the lease and no take-over came of it."""
    CUT_OFF = "cut off"
    """It could not take over now."""
    RESIGNED = "resigned"
    """It was asked to hand over."""


def absence_ms(absence: Absence, lease_ms: int, failures_in_a_row: int, draw: float) -> int:
    """For how long not to ask for the lease.

    Args:
        absence: why.
        lease_ms: how long a lease lasts.
        failures_in_a_row: how many take-overs have failed since the last one that succeeded, this one among them.
        draw: chance.
    """
    shortest_ms, longest_ms = _bounds_ms(absence, lease_ms, failures_in_a_row)
    return shortest_ms + int(draw * (longest_ms - shortest_ms))


def _bounds_ms(absence: Absence, lease_ms: int, failures_in_a_row: int) -> tuple[int, int]:
    match absence:
        case Absence.FALLEN:
            # Different for each controller, so that two that failed together do not meet again.
            return lease_ms // 4, lease_ms
        case Absence.FAILED:
            # At least a whole lease, in which each of the others asks several times, and more if they fail as well.
            longest_ms = 2 ** min(failures_in_a_row, _DOUBLES_AT_MOST) * lease_ms
            return longest_ms // 2, longest_ms
        case Absence.CUT_OFF:
            # For longer than the pause that follows, after which this is done again or over.
            return 2 * PAUSE_MS, 3 * PAUSE_MS
        case Absence.RESIGNED:
            # A whole lease, in which each of the others asks several times.
            return lease_ms, lease_ms
