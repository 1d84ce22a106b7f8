"""Gives slots that lack a leader or followers to nodes (DefaultSlotAssigner), without limits, zones or weights."""

from collections.abc import Collection
from sys import maxsize

from controlplane.core.slots.sofa.balance_numbers import BalanceNumbers, ceiling_mean
from controlplane.core.slots.sofa.builder import SlotTableBuilder, least_followers_first, least_leaders_first
from controlplane.core.slots.sofa.java_collections import JavaMap, java_set, tree_set
from controlplane.core.slots.sofa.refusals import NothingToArrangeError
from controlplane.core.slots.sofa.table import SofaTable


def assign(builder: SlotTableBuilder, nodes: Collection[str], numbers: BalanceNumbers) -> SofaTable:
    """Assign missing leaders, then missing followers.

    Raises:
        NothingToArrangeError: nothing is missing, or there are no nodes.
    """
    leaderless = java_set([slot.slot_id for slot in builder.slots if not slot.leader])
    lacking: JavaMap[int, int] = JavaMap()
    for slot in builder.slots:
        if slot.missing > 0:
            lacking.put(slot.slot_id, slot.missing)
    if not nodes or not (len(leaderless) or len(lacking)):
        raise NothingToArrangeError("no slot lacks anything, or there are no nodes to assign slots to")
    current = tree_set(nodes)
    if len(leaderless):
        _assign_leaders(builder, list(leaderless), lacking, current, numbers)
        builder.mint_epoch()
    if _assign_followers(builder, lacking, current):
        builder.mint_epoch()
    return builder.build()


def _assign_leaders(
    builder: SlotTableBuilder,
    leaderless: list[int],
    lacking: JavaMap[int, int],
    current: list[str],
    numbers: BalanceNumbers,
) -> None:
    most = numbers.high(ceiling_mean(builder.slot_count, len(current)))
    for slot_id in sorted(leaderless, key=lambda slot_id: len(builder.slots[slot_id].followers) or maxsize):
        slot = builder.slots[slot_id]
        heirs = [builder.view(node) for node in current if slot.follows(node)]
        chosen = min(heirs, key=least_leaders_first, default=None)
        if chosen is None or len(chosen.leads) >= most:
            chosen = min((builder.view(node) for node in current), key=least_leaders_first)
        was_follower = slot.follows(chosen.name)
        builder.replace_leader(slot_id, chosen.name)
        if was_follower:
            lacking.put(slot_id, lacking.get(slot_id, 0) + 1)


def _assign_followers(builder: SlotTableBuilder, lacking: JavaMap[int, int], current: list[str]) -> bool:
    """Assign missing followers; return whether any was placed."""
    placed = False
    for slot_id in sorted(lacking, key=lambda slot_id: -lacking[slot_id]):
        slot = builder.slots[slot_id]
        for _ in range(lacking[slot_id]):
            free = (builder.view(node) for node in current if node != slot.leader and not slot.follows(node))
            chosen = min(free, key=least_followers_first, default=None)
            if chosen is not None:
                builder.add_follower(slot_id, chosen.name)
                placed = True
    return placed
