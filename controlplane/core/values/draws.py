"""Random picks of a pure rule: the caller draws a number, and this one function makes a choice of it."""

from controlplane.errors import InvariantViolationError


def drawn(draw: float, count: int) -> int:
    """Which of ``count`` equally good possibilities a random number picks: 0 to ``count - 1``, each as often.

    Args:
        draw: a uniformly distributed number, at least 0 and below 1.
        count: the number of possibilities, at least 1; 0 for a span of no length, of which only 0 can be picked.

    Raises:
        InvariantViolationError: the number is outside that range.
    """
    if not 0 <= draw < 1:
        message = f"a random pick needs a number from 0 to below 1, not {draw}"
        raise InvariantViolationError(message)
    # The greatest number below 1 times a count is below the count in floating-point numbers, too.
    return int(draw * count)
