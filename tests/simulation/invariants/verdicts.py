"""How often each invariant was looked at, and the first one that did not hold."""

from collections import Counter


class BrokenInvariantError(AssertionError):
    """A run has shown something that must never be.

    Args:
        invariant: which one, in words.
        detail: what was seen.
    """

    def __init__(self, invariant: str, detail: str) -> None:
        """Keep the two apart: reports count by the invariant."""
        super().__init__(f"{invariant}: {detail}")
        self.invariant = invariant
        self.detail = detail


class Verdicts:
    """Collects the results of checks. :meth:`require` is for the run, outside all simulated threads.

    Attributes:
        checked: how often each invariant was looked at.
    """

    def __init__(self) -> None:
        """Nothing was looked at."""
        self.checked: Counter[str] = Counter()
        self._broken: BrokenInvariantError | None = None

    def judge(self, invariant: str, holds: bool, detail: object) -> None:
        """Look at an invariant; ``detail`` is made into text only where it does not hold."""
        self.checked[invariant] += 1
        if not holds and self._broken is None:
            self._broken = BrokenInvariantError(invariant, str(detail() if callable(detail) else detail))

    def require(self) -> None:
        """Stop if anything did not hold.

        Raises:
            BrokenInvariantError: the first.
        """
        if self._broken is not None:
            raise self._broken
