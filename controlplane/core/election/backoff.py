"""For how long a controller backs off from the lease, and for how long it is not preferred as leader.

A failed take-over starts two periods. In the first, the back-off, the controller does not ask for the lease. It is at
most a few leases long, because there may be no other controller to lead. In the second, which doubles with every
failure, the controller asks for the lease without its priority: no contender leaves a free lease to it and no leader
hands over to it, because each hand-over would end a working leadership. Time and randomness are arguments.
"""

from dataclasses import dataclass
from enum import Enum
from typing import Final, NamedTuple

from controlplane.core.values.draws import drawn

PAUSE_MS: Final = 200
"""Time after which a controller repeats a request that Kafka did not answer."""
_UNFIT_DOUBLES_AT_MOST: Final = 10
"""Limit of the second period: 2^10 leases, about half an hour with the default duration."""
_DOUBLES_AT_MOST: Final = 3
"""Limit of the first period: a controller whose every take-over fails backs off for four to eight leases."""


class Failures(NamedTuple):
    """A controller's failed take-overs since it last opened a term.

    Attributes:
        in_a_row: their number.
        unfit_until_ms: monotonic time until which this controller is not preferred.
    """

    in_a_row: int = 0
    unfit_until_ms: int = 0

    def one_more(self, now_ms: int, lease_ms: int) -> "Failures":
        """With one more failure. Earlier ones count unless ``unfit_until_ms`` is longer ago than the longest period."""
        quiet_ms = 2**_UNFIT_DOUBLES_AT_MOST * lease_ms
        in_a_row = 1 if now_ms - self.unfit_until_ms > quiet_ms else self.in_a_row + 1
        return Failures(in_a_row, now_ms + 2 ** min(in_a_row, _UNFIT_DOUBLES_AT_MOST) * lease_ms)


class BackoffReason(Enum):
    """Why a controller backs off."""

    STEPPED_DOWN = "stepped down"
    """It stopped leading, or the lease store did not confirm its lease. Other controllers may be affected as well."""
    FAILED = "failed"
    """It held the lease, and its take-over failed."""
    CUT_OFF = "cut off"
    """It is cut off from Kafka, so that a take-over would fail now."""
    RESIGNED = "resigned"
    """An operator asked it to hand over."""


@dataclass(frozen=True, slots=True)
class BackOff:
    """An instruction to the driver: give the lease back if held, and do not ask for it before ``wait_ms`` have passed.

    Attributes:
        reason: why the controller backs off.
        wait_ms: length of the back-off, from now on.
        failures_in_a_row: number of failed take-overs since the last successful one, including this one.
    """

    reason: BackoffReason
    wait_ms: int
    failures_in_a_row: int = 0


def backoff_ms(reason: BackoffReason, lease_ms: int, failures_in_a_row: int, draw: float) -> int:
    """The length of a back-off in milliseconds.

    Args:
        reason: why the controller backs off.
        lease_ms: duration of a lease.
        failures_in_a_row: number of failed take-overs since the last successful one, including this one.
        draw: a random number from 0 up to but not including 1.
    """
    shortest_ms, longest_ms = _bounds_ms(reason, lease_ms, failures_in_a_row)
    return shortest_ms + drawn(draw, longest_ms - shortest_ms)


def _bounds_ms(reason: BackoffReason, lease_ms: int, failures_in_a_row: int) -> tuple[int, int]:
    match reason:
        case BackoffReason.STEPPED_DOWN:
            # Random, so that two controllers that stopped at the same time do not ask at the same time again.
            return lease_ms // 4, lease_ms
        case BackoffReason.FAILED:
            # At least a whole lease, in which every other controller asks several times. Longer with each failure.
            longest_ms = 2 ** min(failures_in_a_row, _DOUBLES_AT_MOST) * lease_ms
            return longest_ms // 2, longest_ms
        case BackoffReason.CUT_OFF:
            # Longer than the pause that follows: after the pause the machine decides again.
            return 2 * PAUSE_MS, 3 * PAUSE_MS
        case BackoffReason.RESIGNED:
            # A whole lease, in which every other controller asks several times.
            return lease_ms, lease_ms
