"""How long an acknowledged heartbeat is valid, and the silence limit that a time needs: one is the other's inverse."""

from hypothesis import given
from hypothesis import strategies as st

from controlplane.core.session.silence import least_limit_ms, valid_for_ms

TIMES = st.integers(1, 100_000)
MARGINS = st.integers(0, 20_000)


@given(needed_ms=TIMES, margin_ms=MARGINS)
def test_the_least_limit_is_long_enough_and_a_shorter_one_is_not(needed_ms: int, margin_ms: int) -> None:
    """Advice that is too short makes nodes refuse, and one that is too long lets a death be noticed later."""
    limit_ms = least_limit_ms(needed_ms, margin_ms)
    assert valid_for_ms(limit_ms, margin_ms) >= needed_ms
    assert valid_for_ms(limit_ms - 1, margin_ms) < needed_ms


@given(limit_ms=TIMES, margin_ms=MARGINS)
def test_the_margin_is_between_a_ninth_and_a_half_of_the_limit(limit_ms: int, margin_ms: int) -> None:
    """A ninth bears clocks that are a tenth slow; a node that may serve for less than half of the time is of no use."""
    margin_used_ms = limit_ms - valid_for_ms(limit_ms, margin_ms)
    assert margin_used_ms <= limit_ms / 2
    assert margin_used_ms >= min(limit_ms / 9, limit_ms // 2)
    assert margin_used_ms >= min(margin_ms, limit_ms // 2)
