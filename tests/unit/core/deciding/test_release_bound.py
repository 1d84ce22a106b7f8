"""How long the leader waits for a node that says nothing of a release: worked out by hand, not by the rule itself."""

from fractions import Fraction

import pytest

from controlplane.core.deciding.consent import release_bound_ms

SLOW_CLOCK = Fraction(9, 10)
"""The slowest clock of a node: nine milliseconds of it while ten pass."""


@pytest.mark.parametrize(
    ("silence_limit_ms", "bound_ms"),
    [
        # A reading is valid for 1.5 s at least, of a slow clock 1,667 ms; the next broker is found within 10 s.
        (1_000, 11_667),
        # 2,500 - 278 = 2,222 ms of the node's clock.
        (2_500, 12_469),
        (10_000, 19_876),
        (30_000, 39_629),
    ],
)
def test_the_bound_is_a_readings_validity_by_a_slow_clock_and_the_search_for_a_broker(
    silence_limit_ms: int, bound_ms: int
) -> None:
    """The node stops before the leader gives away what it has not released."""
    assert release_bound_ms(silence_limit_ms) == bound_ms


@pytest.mark.parametrize("silence_limit_ms", [1_000, 1_001, 2_500, 9_999, 60_000])
def test_a_node_with_a_slow_clock_stops_within_the_bound(silence_limit_ms: int) -> None:
    """A ninth of the limit is the least margin, and 1.5 s are the least validity."""
    valid_ms = max(silence_limit_ms - -(-silence_limit_ms // 9), 1_500)
    assert valid_ms / SLOW_CLOCK + 10_000 <= release_bound_ms(silence_limit_ms)
