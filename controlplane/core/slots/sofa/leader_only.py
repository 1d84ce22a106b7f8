"""Moves slots of one replica (LeaderOnlyBalancer): repeatedly the lowest slot of the node that leads most."""

from controlplane.core.slots.sofa.balance_numbers import BalanceNumbers, ceiling_mean
from controlplane.core.slots.sofa.builder import SlotTableBuilder, least_leaders_first, most_leaders_first
from controlplane.core.slots.sofa.java_collections import copied_set
from controlplane.core.slots.sofa.table import SofaTable


def balance_leaders_only(builder: SlotTableBuilder, current: list[str], numbers: BalanceNumbers) -> SofaTable | None:
    """One tick's moves; None if nothing has to move. Only the minted leader epochs raise the table's epoch."""
    mean = ceiling_mean(builder.slot_count, len(current))
    most, nearly = numbers.high(mean), numbers.high(mean - 1)
    moved = 0
    while moved < numbers.max_leader_moves:
        high = builder.views_where(lambda view: len(view.leads) > most, most_leaders_first)
        if not high:
            break
        full = {view.name for view in builder.views_where(lambda view: len(view.leads) > nearly, most_leaders_first)}
        takers = [name for name in copied_set(current) if name not in full]
        if not takers:
            break
        taker = min(takers, key=lambda name: least_leaders_first(builder.view(name)))
        builder.replace_leader(min(high[0].leads), taker)
        moved += 1
    return builder.build() if moved else None
