"""Recorded answers of SOFARegistry's own classes, compared with ``controlplane.core.slots.sofa``.

What is compared: the action, errors by their class, slot leaders, follower sets, the ranks of the epochs that were
minted, the table's among them, whether the table is valid, and how its epoch stands to the former one. Lists of
followers are compared as sets, and counts of moves not at all.
"""

import itertools
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from controlplane.core.cluster.policy import HashFunction
from controlplane.core.routing.hashing import slot_of
from controlplane.core.slots.sofa.arranger import ArrangeSettings, Tick, TickAction, arrange
from controlplane.core.slots.sofa.assigner import assign
from controlplane.core.slots.sofa.balance_numbers import BalanceNumbers
from controlplane.core.slots.sofa.balancer import balance
from controlplane.core.slots.sofa.builder import SlotTableBuilder
from controlplane.core.slots.sofa.refusals import (
    InvalidSlotTableError,
    NothingToArrangeError,
    TooManyFollowersError,
    UnassignedSlotError,
)
from controlplane.core.slots.sofa.table import INITIAL_TABLE, EpochSource, SofaSlot, SofaTable

Document: TypeAlias = dict[str, Any]

ERRORS: Final = {
    InvalidSlotTableError: "SofaRegistrySlotTableException",
    TooManyFollowersError: "IllegalArgumentException",
    NothingToArrangeError: "SofaRegistryRuntimeException",
    UnassignedSlotError: "SofaRegistryRuntimeException",
}
MOST_ROUNDS: Final = 5_000


def mismatch(case: Mapping[str, Any]) -> str | None:
    """How our answer differs from the recorded one; None if it does not."""
    operation = OPERATIONS.get(case["op"])
    if operation is None:
        return "unknown operation"
    expected = _comparable(case["output"], case["input"])
    try:
        answered = operation(case["input"])
    except tuple(ERRORS) as error:
        answered = {"error": ERRORS[type(error)]}
    for name in sorted({*expected, *answered}):
        if expected.get(name) != answered.get(name):
            return f"{name}: expected {_short(expected.get(name))}, got {_short(answered.get(name))}"
    return None


def _short(value: object) -> str:
    return f"{value!s:.200}"


def _slot_of(given: Document) -> Document:
    return {"slot": slot_of(given["key"], given["slotNum"], HashFunction(given["fn"]))}


def _assign(given: Document) -> Document:
    before, settings, mint = _setting(given)
    nodes = given["dataServers"]
    builder = SlotTableBuilder(before, settings.slot_count, settings.replicas, nodes, mint)
    return _shown(assign(builder, nodes, settings.numbers), before)


def _balance_once(before: SofaTable, given: Document, settings: ArrangeSettings, mint: EpochSource) -> SofaTable | None:
    nodes = given["dataServers"]
    builder = SlotTableBuilder(before, settings.slot_count, settings.replicas, nodes, mint)
    return balance(builder, nodes, settings.numbers)


def _balance(given: Document) -> Document:
    before, settings, mint = _setting(given)
    after = _balance_once(before, given, settings, mint)
    return {"table": None} if after is None else _shown(after, before)


def _balance_until_stable(given: Document) -> Document:
    before, settings, mint = _setting(given)
    rounds, after = 0, _balance_once(before, given, settings, mint)
    last: SofaTable | None = None
    while after is not None and rounds < MOST_ROUNDS:
        rounds, last = rounds + 1, after
        after = _balance_once(last, given, settings, mint)
    shown = {"table": None} if last is None else _shown(last, before)
    return {**shown, "rounds": rounds, "converged": after is None}


def ask(given: Document) -> Tick:
    """One tick of the arranger."""
    before, settings, mint = _setting(given)
    return arrange(before, given["dataServers"], settings, mint, stable=given.get("stable", True))


def _arrange(given: Document) -> Document:
    before, tick = _table(given["table"]), ask(given)
    return {**_shown(tick.table, before), "modified": tick.published, "action": tick.action.value}


def _arrange_until_stable(given: Document) -> Document:
    before, settings, mint = _setting(given)
    actions: list[TickAction] = []
    table, converged = before, False
    while not converged and len(actions) < MOST_ROUNDS:
        tick = arrange(table, given["dataServers"], settings, mint, stable=given.get("stable", True))
        converged = not tick.published
        if tick.published:
            table = tick.table
            actions.append(tick.action)
    runs = [[action.value, len(list(run))] for action, run in itertools.groupby(actions)]
    return {**_shown(table, before), "rounds": len(actions), "converged": converged, "actions": runs}


OPERATIONS: Final[dict[str, Callable[[Document], Document]]] = {
    "slot_of": _slot_of,
    "assign": _assign,
    "balance": _balance,
    "balance_until_stable": _balance_until_stable,
    "arrange": _arrange,
    "arrange_until_stable": _arrange_until_stable,
}


def _setting(given: Document) -> tuple[SofaTable, ArrangeSettings, EpochSource]:
    """The table to begin with, the cluster's settings, and a source of epochs above every one in the table."""
    before = _table(given["table"])
    usual = BalanceNumbers()
    numbers = BalanceNumbers(
        given.get("thresholdPercent", usual.threshold_percent),
        given.get("maxLeaderMoves", usual.max_leader_moves),
        given.get("maxFollowerMoves", usual.max_follower_moves),
    )
    settings = ArrangeSettings(given["slotNum"], given["replicas"], given.get("protectionNum", 0), numbers)
    return before, settings, itertools.count(_greatest_epoch(before) + 1).__next__


def _table(document: Document | None) -> SofaTable:
    if document is None:
        return INITIAL_TABLE
    slots = [
        SofaSlot(slot["id"], slot["leader"], slot["leaderEpoch"], tuple(slot["followers"]))
        for slot in document["slots"]
    ]
    return SofaTable(document["epoch"], {slot.slot_id: slot for slot in slots})


def _greatest_epoch(table: SofaTable) -> int:
    return max([0, table.epoch, *(slot.leader_epoch for slot in table.slots.values())])


def _comparable(output: Document, given: Document) -> Document:
    """The recorded answer, as far as it is compared."""
    if "error" in output:
        return {"error": output["error"]["type"]}
    plain: Document = {
        name: output[name]
        for name in ("slot", "modified", "action", "rounds", "converged", "actions")
        if name in output
    }
    if "table" not in output:
        return plain
    if output["table"] is None:
        return {**plain, "table": None}
    shown = _shown(_table(output["table"]), _table(given["table"]))
    return {**plain, **shown, "valid": output["valid"]}


def _shown(table: SofaTable, before: SofaTable) -> Document:
    """A table with ranks in place of the epochs that were minted since ``before``."""
    base = _greatest_epoch(before)
    epochs = {table.epoch, *(slot.leader_epoch for slot in table.slots.values())}
    minted = sorted(epoch for epoch in epochs if epoch > base)
    ranks = {epoch: base + rank for rank, epoch in enumerate(minted, start=1)}
    return {
        "table": [
            (slot.slot_id, slot.leader, sorted(slot.followers), ranks.get(slot.leader_epoch, slot.leader_epoch))
            for slot in table.slots.values()
        ],
        "epoch": ranks.get(table.epoch, table.epoch),
        "valid": _is_valid(table),
        "epochVsInput": (table.epoch > before.epoch) - (table.epoch < before.epoch),
    }


def _is_valid(table: SofaTable) -> bool:
    try:
        table.check()
    except InvalidSlotTableError:
        return False
    return True
