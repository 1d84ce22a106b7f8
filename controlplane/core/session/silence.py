"""How much of a silence limit a node uses: for how long after an acknowledged heartbeat it may serve. Pure functions.

The *margin* is the time before the silence limit at which a node without contact to the log refuses requests. It grows
with the limit, because the error of a clock does.
"""

from typing import Final

LEAST_MARGIN_DIVISOR: Final = 9
"""A node stops at least this part of the silence limit before the limit is over.

By a clock that is a tenth slow, 8/9 of the limit takes 8/9 * 10/9 = 80/81 of it. The rest of an 81st covers brokers
whose clocks, by which the leader counts, are up to 1.25 % fast.
"""
_MOST_MARGIN_DIVISOR: Final = 2
"""A margin is at most this part of the limit: a node has to be able to serve, whatever margin it asks for."""


def valid_for_ms(silence_limit_ms: int, margin_ms: int) -> int:
    """The time for which an acknowledged heartbeat is valid, from its sending on.

    Args:
        silence_limit_ms: the cluster's.
        margin_ms: the margin that the node asks for.
    """
    margin_ms = max(margin_ms, -(-silence_limit_ms // LEAST_MARGIN_DIVISOR))
    return silence_limit_ms - min(margin_ms, silence_limit_ms // _MOST_MARGIN_DIVISOR)


def least_limit_ms(needed_ms: int, margin_ms: int) -> int:
    """The least silence limit with which an acknowledged heartbeat is valid for a time, see :func:`valid_for_ms`.

    Args:
        needed_ms: that time, at least 1 ms.
        margin_ms: the margin that the node asks for.
    """
    with_margin_ms = max(needed_ms + margin_ms, -(-needed_ms * LEAST_MARGIN_DIVISOR // (LEAST_MARGIN_DIVISOR - 1)))
    # Half of an odd limit is rounded down as a margin.
    return min(with_margin_ms, needed_ms * _MOST_MARGIN_DIVISOR - 1)
