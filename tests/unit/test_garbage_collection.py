"""How often controllers, nodes and executors of the pipeline search for unreachable objects."""

import gc
from collections.abc import Iterator

import pytest

from controlplane.core.slots.table import Slot, empty_table
from controlplane.garbage_collection import collect_seldom


@pytest.fixture(autouse=True)
def thresholds() -> Iterator[None]:
    """Those of the test run are put back; a test that ran before may have switched the collector off."""
    before, was_enabled = gc.get_threshold(), gc.isenabled()
    gc.enable()
    yield
    gc.set_threshold(*before)
    if not was_enabled:
        gc.disable()


def searches_while_a_table_is_made() -> tuple[int, tuple[Slot, ...]]:
    """The table is returned, so that its rows live on, as those of a controller do."""
    gc.collect()
    before = sum(generation["collections"] for generation in gc.get_stats())
    table = empty_table(65_536)
    return sum(generation["collections"] for generation in gc.get_stats()) - before, table


def test_a_large_table_is_made_without_a_search() -> None:
    """By default there are dozens, and some go through everything that the process holds."""
    gc.set_threshold(700, 10, 10)
    assert searches_while_a_table_is_made()[0] > 50
    collect_seldom()
    assert searches_while_a_table_is_made()[0] == 0


def test_cycles_are_still_found() -> None:
    """A process that ran for months without a search would keep the cycles of its exceptions."""
    collect_seldom()
    before = gc.get_stats()[0]["collections"]
    kept = [[number] for number in range(250_000)]
    assert gc.get_stats()[0]["collections"] > before
    assert len(kept) == 250_000
