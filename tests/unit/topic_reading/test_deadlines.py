"""How long a reader waits: progress is forgiven much, standing still little."""

import pytest

from controlplane.errors import LogUnavailableError
from controlplane.testing import VirtualClock
from controlplane.topic_reading.deadlines import ReadDeadline, StallWatch


def test_only_what_brings_nothing_for_long_is_stalled() -> None:
    """News begins the count anew, even for somebody who waits for nothing at all."""
    clock = VirtualClock()
    watch = StallWatch(clock, 100)
    clock.advance(99)
    assert not watch.is_stalled(progress=False)
    clock.advance(1)
    assert watch.is_stalled(progress=False)
    assert not watch.is_stalled(progress=True)
    clock.advance(60)
    assert watch.without_news_ms == 60
    impatient = StallWatch(clock, 0)
    assert not impatient.is_stalled(progress=True)
    assert impatient.is_stalled(progress=False)


def test_steady_progress_may_not_last_for_ever() -> None:
    """A contender that reads for minutes stands in the way of one that is faster."""
    clock = VirtualClock()
    deadline = ReadDeadline(clock, "the end", limit_ms=1_000, stall_limit_ms=100)
    for _ in range(19):
        clock.advance(50)
        deadline.check(progress=True)
    clock.advance(50)
    with pytest.raises(LogUnavailableError, match="the end was not reached in 1000 ms, the last progress was 0 ms ago"):
        deadline.check(progress=True)


def test_standing_still_ends_sooner() -> None:
    """Whoever is told can see since when."""
    clock = VirtualClock()
    deadline = ReadDeadline(clock, "the end", limit_ms=1_000, stall_limit_ms=100)
    clock.advance(30)
    deadline.check(progress=True)
    clock.advance(100)
    with pytest.raises(LogUnavailableError, match="in 130 ms, the last progress was 100 ms ago"):
        deadline.check(progress=False)
