"""The order of places as columns: that of one place and another."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from controlplane.core.bundles.load.position_columns import PositionColumns, are_behind
from controlplane.core.bundles.load.reported_state import Position

POSITIONS = st.builds(Position, st.integers(0, 2), st.integers(0, 2), st.integers(0, 2))


def columns(positions: list[Position]) -> PositionColumns:
    """A row for each place."""
    return PositionColumns(*np.array(positions, np.int64).reshape(-1, 3).T)


@given(st.lists(st.tuples(POSITIONS, POSITIONS), max_size=20))
def test_columns_have_the_order_of_places(pairs: list[tuple[Position, Position]]) -> None:
    """Within a partition offsets tell it, and times between partitions."""
    found = are_behind(columns([first for first, _ in pairs]), columns([second for _, second in pairs]))
    assert found.tolist() == [first.is_behind(second) for first, second in pairs]
