"""The system's clock."""

import time
from collections.abc import Callable, Sequence
from typing import Final

_NANOSECONDS_PER_MS: Final = 1_000_000


class ElapsedTime:
    """The time since the start of the process by the clock that has counted most.

    Each of the clocks counts steadily and may stand still at times when it should not: Linux's CLOCK_MONOTONIC does
    while the machine is suspended, and CLOCK_BOOTTIME does not. A deadline is over as soon as one of them says so.

    Args:
        readings: functions that read the clocks, in nanoseconds since an arbitrary start each; none of them decreases.
    """

    def __init__(self, readings: Sequence[Callable[[], int]]) -> None:
        self._began = [(read, read()) for read in readings]

    @property
    def ms(self) -> int:
        """Milliseconds since the start; never decreases."""
        return max([read() - began_ns for read, began_ns in self._began]) // _NANOSECONDS_PER_MS


def _system_readings() -> list[Callable[[], int]]:
    readings: list[Callable[[], int]] = [time.monotonic_ns]
    boot_time = getattr(time, "CLOCK_BOOTTIME", None)  # Linux has it
    if boot_time is not None:
        readings.append(lambda: time.clock_gettime_ns(boot_time))
    return readings


_ELAPSED: Final = ElapsedTime(_system_readings())
"""One for the process, so that the times of all its clocks can be compared."""


class SystemClock:
    """Implements :class:`controlplane.ports.Clock` with the operating system's clocks."""

    def monotonic_ms(self) -> int:
        """Milliseconds since an arbitrary start; never decreases, and counts while the machine is suspended."""
        return _ELAPSED.ms

    def wall_ms(self) -> int:
        """Milliseconds since 1970 by the system's clock; for display, never for decisions that need it to be right."""
        return time.time_ns() // _NANOSECONDS_PER_MS
