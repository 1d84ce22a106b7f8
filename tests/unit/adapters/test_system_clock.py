"""Time that has passed, by clocks of which one may have stood still."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.adapters.system_clock import ElapsedTime, SystemClock

MS = 1_000_000


class Reading:
    """A clock that a test sets."""

    def __init__(self, ms: int) -> None:
        """Begin at any time."""
        self.ms = ms

    def __call__(self) -> int:
        """The reading in nanoseconds."""
        return self.ms * MS


def test_a_suspended_machine_has_let_time_pass() -> None:
    """CLOCK_MONOTONIC stands still in a suspend, CLOCK_BOOTTIME counts on; they began at different times."""
    monotonic, boot_time = Reading(9_000), Reading(50)
    elapsed = ElapsedTime([monotonic, boot_time])
    monotonic.ms += 100
    boot_time.ms += 100
    assert elapsed.ms == 100
    boot_time.ms += 6_000
    assert elapsed.ms == 6_100
    monotonic.ms += 1
    boot_time.ms += 1
    assert elapsed.ms == 6_101


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50)), max_size=20))
def test_time_never_goes_back_and_is_that_of_the_clock_that_counted_most(steps: list[tuple[int, int]]) -> None:
    """Whichever of two clocks stands still, and however often."""
    clocks = Reading(7), Reading(3)
    elapsed, before = ElapsedTime(clocks), 0
    for step in steps:
        for clock, milliseconds in zip(clocks, step, strict=True):
            clock.ms += milliseconds
        assert elapsed.ms == max(clocks[0].ms - 7, clocks[1].ms - 3) >= before
        before = elapsed.ms


def test_a_stepped_wall_clock_moves_no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """An operator or a time daemon sets it by an hour in either direction, and no deadline comes nearer."""
    clock = SystemClock()
    readings = []
    for step_s in (0, 3_600, -3_600):
        now_ns = time.time_ns() + step_s * 1_000 * MS
        monkeypatch.setattr(time, "time_ns", lambda now_ns=now_ns: now_ns)
        assert clock.wall_ms() == now_ns // MS
        readings.append(clock.monotonic_ms())
        monkeypatch.undo()
    assert readings[2] - readings[0] < 3_600_000
    assert readings == sorted(readings)
