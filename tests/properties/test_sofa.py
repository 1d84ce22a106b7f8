"""What always holds for the policy ``sofa``, whatever joins and dies."""

import itertools
from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from controlplane.core.slots.sofa.arranger import ArrangeSettings, TickAction, arrange
from controlplane.core.slots.sofa.balance_numbers import ceiling_mean
from controlplane.core.slots.sofa.table import INITIAL_TABLE, SofaTable

MOST_TICKS = 3_000

names = st.builds("10.0.{}.{}".format, st.integers(0, 3), st.integers(1, 40))
fleets = st.lists(names, unique=True, min_size=1, max_size=12)


def settled(table: SofaTable, nodes: list[str], setting: ArrangeSettings, mint: "itertools.count[int]") -> SofaTable:
    """The table after as many ticks as change anything."""
    for _ in range(MOST_TICKS):
        tick = arrange(table, nodes, setting, mint.__next__, stable=True)
        assert tick.published == (tick.table is not table)
        if not tick.published:
            return table
        assert tick.table.epoch > table.epoch
        table = tick.table
    raise AssertionError(f"still moving after {MOST_TICKS} ticks")


@given(st.lists(fleets, min_size=1, max_size=4), st.sampled_from([1, 5, 16, 64]), st.integers(1, 4))
@settings(max_examples=settings().max_examples // 2)
def test_fleets_come_and_go(history: list[list[str]], slot_count: int, replicas: int) -> None:
    """Every slot has its replicas on distinct living nodes, and nobody leads more than the upper mark."""
    setting = ArrangeSettings(slot_count, replicas)
    mint = itertools.count(1)
    table = INITIAL_TABLE
    for nodes in history:
        table = settled(table, nodes, setting, mint)
        for slot in table.slots.values():
            assert slot.leader in nodes
            if len(nodes) >= replicas:
                assert len({slot.leader, *slot.followers}) == replicas
                assert table.nodes <= set(nodes)
        if len(nodes) >= replicas:
            leaderships = Counter(slot.leader for slot in table.slots.values())
            assert max(leaderships.values()) <= setting.numbers.high(ceiling_mean(slot_count, len(nodes)))


def test_nothing_happens_without_nodes_or_under_protection() -> None:
    """An empty list of nodes is rather a failure of whoever made the list: the table stays."""
    setting = ArrangeSettings(8, 2, protected_nodes=1)
    mint = itertools.count(1)
    table = settled(INITIAL_TABLE, ["a", "b"], setting, mint)
    for nodes, action in (([], TickAction.EMPTY), (["a"], TickAction.PROTECT)):
        tick = arrange(table, nodes, setting, mint.__next__, stable=True)
        assert (tick.action, tick.published, tick.table) == (action, False, table)


def test_instability_holds_balancing_up_and_assigning_not() -> None:
    """A dead node's slots never wait for the others to be done."""
    setting = ArrangeSettings(32, 2)
    mint = itertools.count(1)
    table = settled(INITIAL_TABLE, ["a", "b", "c"], setting, mint)
    joined = arrange(table, ["a", "b", "c", "d"], setting, mint.__next__, stable=False)
    assert (joined.action, joined.published) == (TickAction.NONE, False)
    left = arrange(table, ["a", "b"], setting, mint.__next__, stable=False)
    assert (left.action, left.published) == (TickAction.ASSIGN, True)
