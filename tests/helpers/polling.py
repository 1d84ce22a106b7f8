"""Waiting for a condition with a deadline, which tests do instead of sleeping."""

import time
from collections.abc import Callable


def poll_until(condition: Callable[[], object], deadline_s: float = 20.0) -> None:
    """Wait for a condition, and fail when it does not come true in time; OSError counts as not yet."""
    deadline = time.monotonic() + deadline_s
    while not _holds(condition):
        assert time.monotonic() < deadline, f"the condition did not come true within {deadline_s} s"
        time.sleep(0.02)


def _holds(condition: Callable[[], object]) -> bool:
    try:
        return bool(condition())
    except OSError:
        return False
