"""How long a reader waits: progress is forgiven much, standing still little."""

import pytest
from structlog.testing import capture_logs

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
    deadline = ReadDeadline(clock, lambda: "the end", limit_ms=1_000, stall_limit_ms=100)
    for _ in range(19):
        clock.advance(50)
        deadline.check(progress=True)
    clock.advance(50)
    with pytest.raises(LogUnavailableError, match="the end was not reached in 1000 ms, the last progress was 0 ms ago"):
        deadline.check(progress=True)


def test_standing_still_ends_sooner() -> None:
    """Whoever is told can see since when."""
    clock = VirtualClock()
    deadline = ReadDeadline(clock, lambda: "the end", limit_ms=1_000, stall_limit_ms=100)
    clock.advance(30)
    deadline.check(progress=True)
    clock.advance(100)
    with pytest.raises(LogUnavailableError, match="in 130 ms, the last progress was 100 ms ago"):
        deadline.check(progress=False)


def test_a_long_wait_is_told_once() -> None:
    """Where standing still is allowed for longer, an operator has to learn what is waited for."""
    clock = VirtualClock()
    deadline = ReadDeadline(clock, lambda: "the end", limit_ms=None, stall_limit_ms=15_000)
    with capture_logs() as told:
        for _ in range(14):
            clock.advance(1_000)
            deadline.check(progress=False)
    assert [(entry["event"], entry["awaited"], entry["without_news_ms"]) for entry in told] == [
        ("waiting for Kafka", "the end", 10_000)
    ]
