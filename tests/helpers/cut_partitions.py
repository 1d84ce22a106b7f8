"""Batches of load reports as a stream cuts them: by the offsets of each partition, whatever the clocks say."""

from collections.abc import Callable
from typing import Final

from hypothesis import strategies as st

from controlplane.core.bundles.load.reported_state import Position
from tests.helpers.placed_report import PlacedReport

_PARTITIONS: Final = 2
_BATCHES: Final = 4
_REPORTS: Final = 6


def cut_partitions(draw: st.DrawFn, report_at: Callable[[Position], PlacedReport]) -> list[list[PlacedReport]]:
    """Batches of two partitions, each cut anywhere; append times fall and rise within a partition.

    Args:
        draw: Hypothesis' function.
        report_at: draws the report at a position.
    """
    batches: list[list[PlacedReport]] = [[] for _ in range(_BATCHES)]
    for partition in range(_PARTITIONS):
        batch = 0
        for offset in range(draw(st.integers(0, _REPORTS))):
            batch = draw(st.integers(batch, _BATCHES - 1))
            batches[batch].append(report_at(Position(draw(st.integers(1_000, 1_004)), partition, offset)))
    return batches
