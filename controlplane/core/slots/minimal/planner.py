"""The planner of the default slot policy: balance with certified least movement.

The first two stages are exact minimums. The first finds replica sets with the fewest violations of soft zones and then
the fewest new replicas. Given those, the second finds slot leaders with the fewest changes. A slot that lost its leader
and has a holder with the data does not get an empty leader, unless balance leaves no choice. If load is known and is to
be spread, a third stage spreads it within the bounds of the first two. ``docs/explanation/placement.md`` has the
formulation.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from operator import attrgetter, ge

import numpy as np

from controlplane.core.slots.certificate import Certificate, LoadStage, ReadyHeirs
from controlplane.core.slots.minimal.bands import Band
from controlplane.core.slots.minimal.contract import LoadGoal, PlacementProblem, Plan
from controlplane.core.slots.minimal.exchange import balance, fits, prices
from controlplane.core.slots.minimal.indexed import IndexedProblem, index_problem
from controlplane.core.slots.minimal.leaders import NOBODY, SlotLeaders
from controlplane.core.slots.minimal.limits import TableLimits, leader_bands, leader_shares, table_limits
from controlplane.core.slots.minimal.load import LoadSpreader
from controlplane.core.slots.minimal.matrices import Numbers, Truths, cells
from controlplane.core.slots.minimal.replicas import ReplicaSets
from controlplane.core.slots.table import Slot
from controlplane.core.values.identifiers import SlotId
from controlplane.errors import InvariantViolationError, PlacementRefusedError

POLICY_NAME = "minimal"


def plan(problem: PlacementProblem) -> Plan:
    """The slot table for these nodes that moves least, and the proof.

    Every slot gets the number of replicas asked for, or as many as possible. Every node holds the floor or the ceiling
    of its fair share of them and leads the floor or the ceiling of its share of the slots, or what the tolerance
    allows.

    Returns:
        The changed rows, by slot id, with the certificate. The order of nodes, pins and exclusions has no influence.

    Raises:
        PlacementRefusedError: there are so many slots and nodes that costs would exceed 64 bits.
        InvariantViolationError: there is no slot, two nodes have one name, rows are not in the order of their ids, or a
            weight, capacity, count, pin or exclusion is out of range.
    """
    _refuse_nonsense(problem)
    if not fits(len(problem.previous), len(problem.nodes)):
        raise PlacementRefusedError(
            f"the costs of {len(problem.previous):,} slots on {len(problem.nodes):,} nodes are beyond 64 bits: "
            "run fewer nodes, or a cluster with fewer slots"
        )
    asked = index_problem(problem)
    limits = table_limits(asked)
    replicas = _place_replicas(asked, limits)
    leaders = _choose_leaders(asked, limits, replicas)
    changed = list(_changed_rows(asked, replicas.holders, leaders.of_slots))
    leader_changes = sum(before.leader != after.leader for before, after in changed)
    zero = {node.node_id: 0 for node in sorted(problem.nodes, key=lambda node: node.node_id)}
    names = [node.node_id for node in asked.nodes]
    certificate = Certificate(
        policy=POLICY_NAME,
        moved=replicas.moved,
        least_moved=replicas.moved,
        leader_changes=leader_changes,
        least_leader_changes=leader_changes,
        node_prices=zero | dict(zip(names, replicas.prices, strict=False)),
        leader_prices=zero | dict(zip(names, leaders.prices, strict=True)),
        lost_slots=_lost_slots(asked),
        ready_heirs=tuple(_ready_heirs(asked, replicas)),
        node_shares={name: str(share) for name, share in zip(names, limits.shares, strict=True)},
        leader_shares={name: str(share) for name, share in zip(names, leaders.shares, strict=False)},
        absence_price=replicas.prices[len(names)] if limits.unserved else 0,
        zone_violations=replicas.violations,
        shortfalls=limits.shortfalls,
    )
    planned = Plan(tuple(after for _, after in changed), certificate)
    if problem.load is None or not asked.nodes:
        return planned
    return _spread_load(asked, limits, replicas, leaders, planned, problem.load)


@dataclass(frozen=True, slots=True)
class _Replicas:
    """The result of the first stage, by index of slot and of node. Prices end with that of absence, if there is one."""

    holders: Truths
    counts: list[int]
    moved: int
    violations: int
    prices: list[int]


@dataclass(frozen=True, slots=True)
class _Leaders:
    """The result of the second stage, by index of slot and of node. Shares are empty if they follow from replicas."""

    of_slots: Numbers
    prices: list[int]
    shares: tuple[Fraction, ...]
    bands: list[Band]


def _refuse_nonsense(problem: PlacementProblem) -> None:
    previous, nodes, rules = problem.previous, problem.nodes, problem.rules
    if not previous or rules.replica_count < 1:
        raise InvariantViolationError(
            f"placement: {len(previous)} slots with {rules.replica_count} replicas each; both have to be at least 1"
        )
    if rules.replicas_per_zone < 1 or rules.tolerance_percent < 0:
        raise InvariantViolationError(
            f"placement: {rules.replicas_per_zone} replicas in a zone, a tolerance of {rules.tolerance_percent} %"
        )
    slot_ids = list(map(attrgetter("slot_id"), previous))
    if any(map(ge, slot_ids, slot_ids[1:])):
        raise InvariantViolationError("placement: the previous table's rows are not in the order of distinct slot ids")
    if len({node.node_id for node in nodes}) < len(nodes):
        raise InvariantViolationError(f"placement: a node is named twice in {sorted(node.node_id for node in nodes)}")
    for node in nodes:
        if node.weight < 0 or node.capacity < 0:
            raise InvariantViolationError(
                f"placement: node {node.node_id!r} has weight {node.weight} and capacity {node.capacity}; "
                "neither may be negative"
            )
    ordered = {pin.slot_id for pin in problem.pins} | {exclusion.slot_id for exclusion in problem.exclusions}
    unknown = ordered.difference(slot_ids) if ordered else ordered
    if unknown:
        raise InvariantViolationError(f"placement: pins or exclusions of slots {sorted(unknown)}, which do not exist")


def _place_replicas(asked: IndexedProblem, limits: TableLimits) -> _Replicas:
    """First stage: the replica sets with the fewest violations and new replicas, and the prices that prove it."""
    before = asked.before
    if limits.unserved:
        before = np.concatenate([before, np.zeros((len(before), 1), np.bool_)], axis=1)
    sets = ReplicaSets(before, asked.leaders, limits.slots)
    sets.fill([*(node.node_id for node in asked.nodes), *[""] * bool(limits.unserved)], limits.bands)
    # Without an exchange each slot paid only for what it lacked, and prices of zero prove that.
    node_prices = prices(sets, limits.bands) if balance(sets, limits.bands) else [0] * len(limits.bands)
    holders = sets.now[:, : len(asked.nodes)]
    counts = sets.counts[: len(asked.nodes)].tolist()
    return _Replicas(holders, counts, sets.moved() - limits.unserved, sets.violations(), node_prices)


def _choose_leaders(asked: IndexedProblem, limits: TableLimits, replicas: _Replicas) -> _Leaders:
    """Second stage: the slot leaders with the fewest changes, and the prices that prove it."""
    holders = replicas.holders
    shares = leader_shares(asked, limits, holders, replicas.counts)
    bands = leader_bands(asked, limits, replicas.counts, shares)
    leaders = SlotLeaders(holders, asked.leaders, asked.before, asked.ready, asked.pinned_leaders)
    leaders.choose_cheapest(bands)
    balance(leaders, bands)
    leaders.drop_preferences()
    leader_prices = [0] * len(bands) if leaders.all_cheapest() else prices(leaders, bands)
    return _Leaders(leaders.leaders, leader_prices, shares, bands)


def _spread_load(
    asked: IndexedProblem, limits: TableLimits, replicas: _Replicas, leaders: _Leaders, planned: Plan, goal: LoadGoal
) -> Plan:
    """Third stage: the plan of the first two, changed to spread load, and the record of these changes."""
    bands = limits.bands[: len(asked.nodes)], leaders.bands
    spreader = LoadSpreader(asked, limits.slots, replicas.holders, leaders.of_slots, bands, goal)
    report = spreader.run()
    other = (spreader.holders != replicas.holders).any(axis=1) | (spreader.leaders != leaders.of_slots)
    rows = {slot.slot_id: slot for slot in planned.slots}
    touched = [asked.problem.previous[row] for row in np.flatnonzero(other).tolist()]
    stage = LoadStage(
        before=str(report.before),
        after=str(report.after),
        moved=report.moved,
        leader_changes=report.leader_changes,
        least_leader_changes=report.least_leader_changes,
    )
    before = tuple(rows.get(slot.slot_id, slot) for slot in touched)
    final = tuple(after for _, after in _changed_rows(asked, spreader.holders, spreader.leaders))
    return Plan(final, replace(planned.certificate, load=stage, rows_before_load=before))


def _changed_rows(asked: IndexedProblem, held: Truths, led: Numbers) -> Iterator[tuple[Slot, Slot]]:
    """The rows that change, before and after, for these holders and leaders."""
    names = [node.node_id for node in asked.nodes]
    other = (asked.holders_before != asked.living_holders) | (led != asked.leaders)
    other[cells(held != asked.before)[0]] = True
    epoch = asked.problem.epoch
    rows = np.flatnonzero(other)
    holders: list[list[int]] = [[] for _ in rows]
    for place, holder in zip(*map(np.ndarray.tolist, cells(held[rows])), strict=True):
        holders[place].append(holder)
    for row, members, chosen in zip(rows.tolist(), holders, led[rows].tolist(), strict=True):
        before = asked.problem.previous[row]
        leader = None if chosen == NOBODY else names[chosen]
        followers = tuple([names[holder] for holder in members if holder != chosen])
        leader_epoch = before.leader_epoch if leader == before.leader else epoch
        after = Slot(before.slot_id, leader, followers, leader_epoch)
        if after != before:
            yield before, after


def _lost_slots(asked: IndexedProblem) -> tuple[SlotId, ...]:
    """The slots that had holders, none of which lives."""
    living = {node.node_id for node in asked.problem.nodes}
    candidates = np.flatnonzero((asked.holders_before > 0) & (asked.living_holders == 0)).tolist()
    slots = (asked.problem.previous[row] for row in candidates)
    return tuple(slot.slot_id for slot in slots if living.isdisjoint(slot.replicas))


def _ready_heirs(asked: IndexedProblem, replicas: _Replicas) -> Iterator[ReadyHeirs]:
    """The ready heirs, where readiness restricts the choice. Without them a verifier could not check the choice."""
    orphaned = np.flatnonzero(asked.leaders == NOBODY)
    heirs = replicas.holders[orphaned] & asked.before[orphaned]
    ready = heirs & asked.ready[orphaned]
    narrowed = ready.any(axis=1) & (ready != heirs).any(axis=1)
    for row, of_row in zip(orphaned[narrowed].tolist(), ready[narrowed], strict=True):
        names = tuple(asked.nodes[index].node_id for index in np.flatnonzero(of_row).tolist())
        yield ReadyHeirs(asked.problem.previous[row].slot_id, names)
