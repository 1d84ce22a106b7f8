"""How long a controller backs off from the lease when it does not lead, and is not to be preferred.

A failed take-over starts two periods. In the first, the back-off, the controller does not ask for the lease. It is at
most a few leases long, because there may be no other controller to lead. In the second, which doubles with every
failure, the controller asks without claiming to be preferred: other controllers leave no free lease to it and no leader
hands over to it, because each time would end a leadership that works. Time and randomness are arguments.
"""

from dataclasses import dataclass
from enum import Enum
from typing import Final, NamedTuple

PAUSE_MS: Final = 200
"""How long a controller waits before it repeats a request that Kafka did not answer."""
_UNFIT_DOUBLES_AT_MOST: Final = 10
"""A leader hands over to such a controller once in a thousand leases, half an hour with the default duration."""
_DOUBLES_AT_MOST: Final = 3
"""A controller whose every take-over fails backs off for four to eight leases: there may be no other one to lead."""


class Failures(NamedTuple):
    """Take-overs of a controller that failed, since it last opened a term.

    Attributes:
        in_a_row: how many.
        unfit_until_ms: until when, on the monotonic clock, this controller is not to be preferred.
    """

    in_a_row: int = 0
    unfit_until_ms: int = 0

    def one_more(self, now_ms: int, lease_ms: int) -> "Failures":
        """With another failure; those before count unless the longest such period has passed since the last one."""
        quiet_ms = 2**_UNFIT_DOUBLES_AT_MOST * lease_ms
        in_a_row = 1 if now_ms - self.unfit_until_ms > quiet_ms else self.in_a_row + 1
        return Failures(in_a_row, now_ms + 2 ** min(in_a_row, _UNFIT_DOUBLES_AT_MOST) * lease_ms)


class BackoffReason(Enum):
    """Why a controller backs off."""

    FALLEN = "fallen"
    """It led, or the lease store did not confirm its lease: the same may have happened to other controllers."""
    FAILED = "failed"
    """It held the lease, and its take-over failed."""
    CUT_OFF = "cut off"
    """Kafka has not answered it for so long that it could not take over now."""
    RESIGNED = "resigned"
    """An operator asked it to hand over."""


@dataclass(frozen=True, slots=True)
class BackOff:
    """What the driver has to do: give the lease back if it is ours, and not ask for it before ``wait_ms`` have passed.

    Attributes:
        reason: why.
        wait_ms: for how long, from now on.
        failures_in_a_row: how many take-overs have failed since the last one that succeeded, this one among them.
    """

    reason: BackoffReason
    wait_ms: int
    failures_in_a_row: int = 0


def backoff_ms(reason: BackoffReason, lease_ms: int, failures_in_a_row: int, draw: float) -> int:
    """How long to back off.

    Args:
        reason: why.
        lease_ms: how long a lease lasts.
        failures_in_a_row: how many take-overs have failed since the last one that succeeded, this one among them.
        draw: a random number from 0 up to but not including 1.
    """
    shortest_ms, longest_ms = _bounds_ms(reason, lease_ms, failures_in_a_row)
    return shortest_ms + int(draw * (longest_ms - shortest_ms))


def _bounds_ms(reason: BackoffReason, lease_ms: int, failures_in_a_row: int) -> tuple[int, int]:
    match reason:
        case BackoffReason.FALLEN:
            # Random, so that two controllers that fell together do not ask at the same time again.
            return lease_ms // 4, lease_ms
        case BackoffReason.FAILED:
            # At least a whole lease, in which every other controller asks several times; longer with each failure.
            longest_ms = 2 ** min(failures_in_a_row, _DOUBLES_AT_MOST) * lease_ms
            return longest_ms // 2, longest_ms
        case BackoffReason.CUT_OFF:
            # Longer than the pause that follows, after which the machine decides anew.
            return 2 * PAUSE_MS, 3 * PAUSE_MS
        case BackoffReason.RESIGNED:
            # A whole lease, in which every other controller asks several times.
            return lease_ms, lease_ms
