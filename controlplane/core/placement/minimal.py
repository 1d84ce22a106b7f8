"""The default slot policy: exact balance with certified least movement.

Two stages, each an exact minimum: first the replica sets with the fewest new replicas, then, given those, the slot
leaders with the fewest changes, never an empty leader for a slot that lost its own and has a holder with the data,
unless exact balance leaves no choice. ``docs/explanation/placement.md`` has the formulation.
"""

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import pairwise

from controlplane.core.decision import Certificate, ReadyHeirs
from controlplane.core.identifiers import Epoch, NodeId, SlotId
from controlplane.core.placement.bands import Band, Demand, demand
from controlplane.core.placement.contract import PlacementNode, PlacementProblem, Plan
from controlplane.core.placement.exchange import balance, prices
from controlplane.core.placement.leaders import NO_LEADER, SlotLeaders
from controlplane.core.placement.replicas import ReplicaSets
from controlplane.core.slot_table import Slot
from controlplane.errors import InvariantViolationError

POLICY_NAME = "minimal"


def plan(problem: PlacementProblem) -> Plan:
    """The slot table for these nodes that moves least, and the proof.

    Every slot gets the same number of replicas: ``replica_count``, or as many as the nodes can hold of each. If they
    cannot hold one of each, some slots stay without a node, and every node is full. Every node holds the floor or the
    ceiling of its water-filled share of the replicas, and leads the floor or the ceiling of its share of the slots.

    Returns:
        The changed rows, by slot id, with the certificate. The same for every order of ``nodes``.

    Raises:
        InvariantViolationError: there is no slot, two nodes have one name, rows are not in the order of their ids, or
            a weight, capacity or count is out of range.
    """
    previous, nodes, replica_count = problem.previous, problem.nodes, problem.rules.replica_count
    ready, epoch = problem.ready, problem.epoch
    _refuse_nonsense(previous, nodes, replica_count)
    usable = sorted((node for node in nodes if node.weight > 0), key=lambda node: node.node_id)
    names = [node.node_id for node in usable]
    asked = demand(len(previous), replica_count, [node.weight for node in usable], [node.capacity for node in usable])
    indexes = {name: index for index, name in enumerate(names)}
    replicas = _place_replicas(previous, names, indexes, asked)
    leaders = _choose_leaders(previous, indexes, asked, replicas, ready)
    changed = list(_changed_rows(previous, names, replicas, leaders, epoch))
    leader_changes = sum(before.leader != after.leader for before, after in changed)
    zero = {node.node_id: 0 for node in sorted(nodes, key=lambda node: node.node_id)}
    certificate = Certificate(
        policy=POLICY_NAME,
        moved=replicas.moved,
        least_moved=replicas.moved,
        leader_changes=leader_changes,
        least_leader_changes=leader_changes,
        node_prices=zero | dict(zip(names, replicas.prices, strict=True)),
        leader_prices=zero | dict(zip(names, leaders.prices, strict=True)),
        lost_slots=_lost_slots(previous, nodes, replicas),
        ready_heirs=tuple(_ready_heirs(previous, names, replicas, ready)),
    )
    return Plan(tuple(after for _, after in changed), certificate)


@dataclass(frozen=True, slots=True)
class _Replicas:
    """The first stage's answer, by index of slot and of node."""

    members: list[list[int]]
    before: list[int]
    moved: int
    prices: list[int]


@dataclass(frozen=True, slots=True)
class _Leaders:
    """The second stage's answer, by index of slot and of node."""

    of_slots: list[int]
    prices: list[int]


def _refuse_nonsense(previous: Sequence[Slot], nodes: Sequence[PlacementNode], replica_count: int) -> None:
    if not previous or replica_count < 1:
        raise InvariantViolationError(
            f"placement: {len(previous)} slots with {replica_count} replicas each; both have to be at least 1"
        )
    if any(before.slot_id >= after.slot_id for before, after in pairwise(previous)):
        raise InvariantViolationError("placement: the previous table's rows are not in the order of distinct slot ids")
    if len({node.node_id for node in nodes}) < len(nodes):
        raise InvariantViolationError(f"placement: a node is named twice in {sorted(node.node_id for node in nodes)}")
    for node in nodes:
        if node.weight < 0 or node.capacity < 0:
            raise InvariantViolationError(
                f"placement: node {node.node_id!r} has weight {node.weight} and capacity {node.capacity}; "
                "neither may be negative"
            )


def _place_replicas(
    previous: Sequence[Slot], names: Sequence[NodeId], indexes: Mapping[NodeId, int], asked: Demand
) -> _Replicas:
    """First stage: the replica sets with the fewest new replicas, and the prices that prove it."""
    bands = list(asked.replicas)
    unserved = len(previous) * asked.replicas_per_slot - asked.total
    nobody = None
    if unserved:
        nobody = len(names)
        bands.append(Band(unserved, unserved))
    sets = ReplicaSets(previous, indexes, nobody)
    sets.fill(names, asked.replicas_per_slot, bands)
    # Without an exchange each slot paid only for what it lacked: prices of zero prove that.
    node_prices = prices(sets, bands) if balance(sets, bands) else [0] * len(bands)
    members, before = sets.members, sets.before
    if nobody is not None:
        before = [held & ~(1 << nobody) for held in before]
        members = [[] if holders == [nobody] else holders for holders in members]
        # All bands are exact here, so only differences count, and nobody's price has to be zero.
        base = node_prices.pop()
        node_prices = [price - base for price in node_prices]
    return _Replicas(members, before, sets.moved(), node_prices)


def _choose_leaders(
    previous: Sequence[Slot],
    indexes: Mapping[NodeId, int],
    asked: Demand,
    replicas: _Replicas,
    ready: AbstractSet[tuple[SlotId, NodeId]],
) -> _Leaders:
    """Second stage: the slot leaders with the fewest changes, and the prices that prove it."""
    rows = {slot.slot_id: row for row, slot in enumerate(previous)}
    ready_bits = [0] * len(previous)
    for slot_id, node_id in ready:
        if slot_id in rows and node_id in indexes:
            ready_bits[rows[slot_id]] |= 1 << indexes[node_id]
    kept = [NO_LEADER if slot.leader is None else indexes.get(slot.leader, NO_LEADER) for slot in previous]
    leaders = SlotLeaders(replicas.members, kept, replicas.before, ready_bits, len(indexes))
    leaders.choose_cheapest(asked.leaders)
    balance(leaders, asked.leaders)
    leaders.drop_preferences()
    leader_prices = [0] * len(indexes) if leaders.all_cheapest() else prices(leaders, asked.leaders)
    return _Leaders(leaders.leaders, leader_prices)


def _changed_rows(
    previous: Sequence[Slot], names: Sequence[NodeId], replicas: _Replicas, leaders: _Leaders, epoch: Epoch
) -> Iterator[tuple[Slot, Slot]]:
    """The rows that change, before and after."""
    for before, holders, chosen in zip(previous, replicas.members, leaders.of_slots, strict=True):
        leader = None if chosen == NO_LEADER else names[chosen]
        followers = tuple(sorted([names[holder] for holder in holders if holder != chosen]))
        if leader != before.leader:
            yield before, Slot(before.slot_id, leader, followers, epoch)
        elif followers != before.followers:
            yield before, Slot(before.slot_id, leader, followers, before.leader_epoch)


def _lost_slots(previous: Sequence[Slot], nodes: Sequence[PlacementNode], replicas: _Replicas) -> tuple[SlotId, ...]:
    """The slots that had holders, none of which lives."""
    living = {node.node_id for node in nodes}
    without_usable = (slot for slot, usable in zip(previous, replicas.before, strict=True) if not usable)
    return tuple(slot.slot_id for slot in without_usable if slot.replicas and living.isdisjoint(slot.replicas))


def _ready_heirs(
    previous: Sequence[Slot],
    names: Sequence[NodeId],
    replicas: _Replicas,
    ready: AbstractSet[tuple[SlotId, NodeId]],
) -> Iterator[ReadyHeirs]:
    """Who may inherit, where readiness narrows that down: without it nobody else could check the choice."""
    living = set(names)
    for before, holders in zip(previous, replicas.members, strict=True):
        if before.leader in living:
            continue
        heirs = sorted({names[holder] for holder in holders}.intersection(before.replicas))
        chosen = tuple(name for name in heirs if (before.slot_id, name) in ready)
        if 0 < len(chosen) < len(heirs):
            yield ReadyHeirs(before.slot_id, chosen)
