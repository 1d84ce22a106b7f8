"""The least cost of each slot's replicas at given prices: one part of the bound that proves a plan."""

from typing import Final

import numpy as np

from controlplane.core.cluster.policy import ZoneRule
from controlplane.core.slots.proof.rules import Matrix, Rules, Vector, cells, count_by_zone

FORBIDDEN: Final = 1 << 50
"""A cost greater than that of any table."""


def cheapest_rows(
    rules: Rules, before: Matrix, units: Vector, prices: Vector, violation: int, absence: Vector | None
) -> Vector:
    """The least cost of the replicas of each slot.

    A node costs its price, and one more if it did not hold the slot. Each replica above a soft zone's limit costs
    ``violation`` more; above a hard zone's limit it is impossible. Only cheap nodes and the slot's former holders have
    to be examined.

    Args:
        rules: the rules of the problem.
        before: the holders before.
        units: number of replicas of each slot.
        prices: the prices of the nodes.
        violation: the cost of a replica above a soft zone's limit.
        absence: for each slot, the cost of one replica less; None if no slot may have one less.
    """
    if absence is None and rules.eligible is None and not rules.pins and not prices.any():
        return _free_rows(rules, before, units, violation)
    pinned = _pinned(rules)
    columns, costs = _choices(rules, before, units, prices, pinned)
    zones = rules.zones[columns] if len(rules.zones) else columns
    if absence is not None:
        costs = np.concatenate([costs, absence[:, None]], axis=1)
        zones = np.concatenate([zones, np.zeros((len(zones), 1), np.int64)], axis=1)
    taken = np.zeros((len(costs), len(rules.zone_limits)), np.int64)
    paid = np.zeros(len(costs), np.int64)
    if pinned is not None:
        paid += np.where(pinned, prices + ~before, 0).sum(axis=1)
        taken += count_by_zone(pinned, rules.zones, taken.shape[1])
        units = units - pinned.sum(axis=1)
        if rules.problem.rules.zone_rule is ZoneRule.SOFT:
            paid += violation * np.maximum(taken - rules.zone_limits, 0).sum(axis=1)
    order = np.argsort(costs, axis=1, kind="stable")
    costs = np.take_along_axis(costs, order, axis=1)
    if len(rules.zone_limits) > 1:
        surcharge = FORBIDDEN if rules.problem.rules.zone_rule is ZoneRule.HARD else violation
        zones = np.take_along_axis(zones, order, axis=1)
        rows = np.arange(len(costs))
        for column in range(costs.shape[1]):
            zone = zones[:, column]
            full = taken[rows, zone] >= rules.zone_limits[zone]
            taken[rows, zone] += 1
            costs[:, column] += surcharge * full
        costs.sort(axis=1)
    wanted = np.arange(costs.shape[1]) < units[:, None]
    paid += np.where(wanted, costs, 0).sum(axis=1)
    return paid


def _free_rows(rules: Rules, before: Matrix, units: Vector, violation: int) -> Vector:
    """The same if every price is zero and every node may hold every slot: holders stay as far as zones allow."""
    held = count_by_zone(before, rules.zones, len(rules.zone_limits))
    kept = np.minimum(np.minimum(held, rules.zone_limits).sum(axis=1), units)
    if rules.problem.rules.zone_rule is ZoneRule.HARD:
        free: Vector = units - kept
        return free
    nodes = np.bincount(rules.zones, minlength=len(rules.zone_limits))
    crowd = np.maximum(units - int(np.minimum(nodes, rules.zone_limits).sum()), 0)
    kept_crowd = np.minimum(held.sum(axis=1) - kept, crowd)
    crowded: Vector = units - kept - kept_crowd + violation * crowd
    return crowded


def _pinned(rules: Rules) -> Matrix | None:
    if not rules.pins:
        return None
    pinned = np.zeros((len(rules.problem.previous), len(rules.nodes)), np.bool_)
    for row, slot in enumerate(rules.problem.previous):
        for name in rules.pins.get(slot.slot_id, (frozenset(), None))[0]:
            pinned[row, rules.places[name]] = True
    return pinned


def _choices(
    rules: Rules, before: Matrix, units: Vector, prices: Vector, pinned: Matrix | None
) -> tuple[Vector, Vector]:
    """For each slot, nodes that include a cheapest choice, and the cost of each."""
    count, width = before.shape
    rows, places = cells(before)
    sizes = np.bincount(rows, minlength=count)
    own = int(sizes.max(initial=0))
    barred = 0
    closed = np.zeros_like(before) if pinned is None else pinned
    if rules.eligible is not None:
        closed = closed | ~rules.eligible
    if rules.eligible is not None or pinned is not None:
        barred = int(closed.sum(axis=1).max(initial=0))
    enough = int(units.max(initial=0)) + own + barred
    cheap: list[int] = []
    for zone in range(len(rules.zone_limits)):
        members = np.flatnonzero(rules.zones == zone)
        cheap += members[np.argsort(prices[members], kind="stable")[:enough]].tolist()
    strangers = np.broadcast_to(np.array(cheap, np.int64), (count, len(cheap)))
    stranger_costs = np.where((before | closed)[:, cheap], FORBIDDEN, prices[cheap] + 1)
    holders = np.zeros((count, own), np.int64)
    holder_costs = np.full((count, own), FORBIDDEN, np.int64)
    seats = np.arange(len(rows)) - (np.cumsum(sizes) - sizes)[rows]
    holders[rows, seats] = places
    holder_costs[rows, seats] = np.where(closed[rows, places], FORBIDDEN, prices[places]) if width else 0
    return np.concatenate([holders, strangers], axis=1), np.concatenate([holder_costs, stranger_costs], axis=1)
