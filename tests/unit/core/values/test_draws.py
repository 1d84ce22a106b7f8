"""The pick that a drawn number makes."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.core.values.draws import drawn
from controlplane.errors import InvariantViolationError

GREATEST = math.nextafter(1.0, 0.0)


def test_every_possibility_has_an_equal_part_of_the_numbers() -> None:
    """A boundary belongs to the possibility that begins there."""
    assert [drawn(number / 12, 4) for number in range(12)] == [0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3]
    assert drawn(0.9, 0) == 0


@given(st.integers(1, 2**53))
def test_the_greatest_number_picks_the_last_possibility(count: int) -> None:
    """It is never rounded to the one behind it."""
    assert drawn(GREATEST, count) == count - 1
    assert drawn(0.0, count) == 0


@pytest.mark.parametrize("draw", [1.0, -math.ulp(0.0), math.nan, math.inf])
def test_a_number_outside_the_range_is_refused(draw: float) -> None:
    """It would pick nothing, or the last possibility from behind."""
    with pytest.raises(InvariantViolationError, match="from 0 to below 1"):
        drawn(draw, 3)
