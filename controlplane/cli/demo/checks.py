"""The checks of the demo's steps, with deadlines."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from controlplane.errors import ControlPlaneError

T = TypeVar("T")
POLL_INTERVAL_S = 0.05


class StepFailedError(ControlPlaneError):
    """A step of the demo did not have the expected result."""


@dataclass(frozen=True, slots=True)
class Check:
    """One condition and its result.

    Attributes:
        sentence: the condition.
        passed: whether it held.
        seen: the measured value, in words.
        after_s: how long it took.
    """

    sentence: str
    passed: bool
    seen: str
    after_s: float


class Checklist:
    """The checks of one step.

    Args:
        on_change: called with the condition that is waited for, and after each check.
        watch: called at each poll; raises if something else went wrong, such as a process that ended.
    """

    def __init__(self, on_change: Callable[[str, "Check | None"], None], watch: Callable[[], None]) -> None:
        self.checks: list[Check] = []
        self._on_change = on_change
        self._watch = watch

    def expect(
        self, sentence: str, probe: Callable[[], T | None], deadline_s: float, seen: Callable[[T], str] = str
    ) -> T:
        """Wait until ``probe`` returns something else than None.

        Args:
            sentence: the condition.
            probe: evaluates the condition; None means "not yet".
            deadline_s: how long to wait.
            seen: the result in words.

        Raises:
            StepFailedError: the time is over.
        """
        self._on_change(sentence, None)
        began = time.monotonic()
        while True:
            found = probe()
            elapsed_s = time.monotonic() - began
            if found is not None:
                self._note(Check(sentence, passed=True, seen=seen(found), after_s=elapsed_s))
                return found
            if elapsed_s > deadline_s:
                self._note(Check(sentence, passed=False, seen=f"not within {deadline_s:g} s", after_s=elapsed_s))
                raise StepFailedError(f"{sentence}: not within {deadline_s:g} s")
            self._watch()
            time.sleep(POLL_INTERVAL_S)

    def require(self, sentence: str, *, holds: bool, seen: str) -> None:
        """Record that a condition holds now, or fail.

        Raises:
            StepFailedError: it does not hold.
        """
        self._note(Check(sentence, holds, seen, 0.0))
        if not holds:
            raise StepFailedError(f"{sentence}: {seen}")

    def _note(self, check: Check) -> None:
        self.checks.append(check)
        self._on_change(check.sentence, check)
