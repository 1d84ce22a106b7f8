"""The independent check of a plan: is the table legal, balanced, and has nothing moved without need?

It shares no code with the planner and never solves anything. Linear programming's duality does the work: any prices,
good or bad, give a number below which no balanced table can move, so prices that give the number of moves itself
prove it to be the least. Time grows with slots times replicas.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from controlplane.core.decision import Certificate
from controlplane.core.identifiers import NodeId
from controlplane.core.placement.contract import PlacementNode, PlacementProblem
from controlplane.core.slot_table import Slot

_POLICY_NAME = "minimal"


def verify(problem: PlacementProblem, slots_after: Sequence[Slot], certificate: Certificate) -> list[str]:
    """What is wrong with a plan, one sentence each; empty if it is accepted.

    Args:
        problem: what was asked. Who was ready is taken from the certificate: it is what the planner knew.
        slots_after: the whole table after, by slot id.
        certificate: the proof to check.
    """
    previous, nodes, replica_count = problem.previous, problem.nodes, problem.rules.replica_count
    if [slot.slot_id for slot in previous] != [slot.slot_id for slot in slots_after] or not previous:
        return ["the table after does not have the slots of the table before, in their order"]
    rules = _Rules.of(len(previous), nodes, replica_count)
    complaints = [*_rows(previous, slots_after, rules), *_counts(slots_after, rules)]
    if complaints:
        return complaints
    return [
        *_names(certificate, nodes),
        *_replica_proof(previous, slots_after, rules, certificate),
        *_leader_proof(previous, slots_after, rules, certificate),
        *_lost(previous, nodes, certificate),
    ]


@dataclass(frozen=True, slots=True)
class _Rules:
    """What a table has to keep to: replicas per slot (least, most), and for each usable node its bounds."""

    least_per_slot: int
    most_per_slot: int
    replicas: Mapping[NodeId, tuple[int, int]]
    leaders: Mapping[NodeId, tuple[int, int]]

    @classmethod
    def of(cls, slot_count: int, nodes: Sequence[PlacementNode], replica_count: int) -> "_Rules":
        """The bounds, by saturating nodes until the level stands: all numbers are integers."""
        room = {node.node_id: min(node.capacity or slot_count, slot_count) for node in nodes if node.weight}
        weights = {node.node_id: node.weight for node in nodes if node.weight}
        per_slot = min(replica_count, sum(room.values()) // slot_count)
        everywhere = per_slot > 0
        per_slot = per_slot if everywhere else 1
        pool = per_slot * slot_count if everywhere else sum(room.values())
        full: set[NodeId] = set()
        while True:
            left = pool - sum(room[name] for name in full)
            weight = sum(weights[name] for name in weights if name not in full)
            more = {name for name in weights if name not in full and weights[name] * left >= room[name] * weight}
            if not more:
                break
            full |= more
        replicas, leaders = {}, {}
        for name, own in weights.items():
            share, parts = (room[name], 1) if name in full else (own * left, weight)
            replicas[name] = (share // parts, -(-share // parts))
            leaders[name] = (share // (parts * per_slot), -(-share // (parts * per_slot)))
        return cls(per_slot if everywhere else 0, per_slot, replicas, leaders)


def _rows(previous: Sequence[Slot], after: Sequence[Slot], rules: _Rules) -> list[str]:
    """Each row by itself."""
    complaints = []
    for old, new in zip(previous, after, strict=True):
        holders = new.replicas
        where = f"slot {new.slot_id}"
        if len(set(holders)) < len(holders):
            complaints.append(f"{where}: a node holds it twice: {', '.join(holders)}")
        complaints.extend(
            f"{where}: {name} is no node that may hold it" for name in holders if name not in rules.leaders
        )
        if not rules.least_per_slot <= len(holders) <= rules.most_per_slot:
            complaints.append(f"{where}: {len(holders)} replicas, not {rules.least_per_slot} to {rules.most_per_slot}")
        if new.leader is None and holders:
            complaints.append(f"{where}: it has holders and no leader")
        if list(new.followers) != sorted(new.followers):
            complaints.append(f"{where}: its followers are not sorted")
        if new.leader == old.leader and new.leader_epoch != old.leader_epoch:
            complaints.append(f"{where}: its leader epoch changed though its leader did not")
        if new.leader != old.leader and new.leader_epoch <= old.leader_epoch:
            complaints.append(f"{where}: its leader changed but its leader epoch did not rise")
    return complaints


def _counts(after: Sequence[Slot], rules: _Rules) -> list[str]:
    """Each node's count of replicas and of leaderships."""
    held = Counter(name for slot in after for name in slot.replicas)
    led = Counter(slot.leader for slot in after)
    return [
        f"node {name}: {count[name]} {what}, not {least} to {most}"
        for what, count, bounds in (("replicas", held, rules.replicas), ("leaderships", led, rules.leaders))
        for name, (least, most) in sorted(bounds.items())
        if not least <= count[name] <= most
    ]


def _names(certificate: Certificate, nodes: Sequence[PlacementNode]) -> list[str]:
    complaints = []
    if certificate.policy != _POLICY_NAME:
        complaints.append(f"certificate: policy {certificate.policy!r} is not {_POLICY_NAME!r}")
    names = sorted(node.node_id for node in nodes)
    for what, prices in (("node", certificate.node_prices), ("leader", certificate.leader_prices)):
        if sorted(prices) != names:
            complaints.append(f"certificate: its {what} prices do not name the nodes, each once")
    return complaints


def _replica_proof(
    previous: Sequence[Slot], after: Sequence[Slot], rules: _Rules, certificate: Certificate
) -> list[str]:
    """Do the prices prove the number of moves?"""
    prices = {name: certificate.node_prices.get(name, 0) for name in rules.replicas}
    cheapest = sorted((price, name) for name, price in prices.items())
    moved = bound = 0
    for old, new in zip(previous, after, strict=True):
        before = set(old.replicas) & prices.keys()
        moved += len(set(new.replicas) - before)
        bound += _cheapest_row(before, prices, cheapest, rules)
    bound -= _band_value(prices, rules.replicas)
    return _compare("replicas moved", moved, certificate.moved, bound, certificate.least_moved)


def _cheapest_row(
    before: AbstractSet[NodeId], prices: Mapping[NodeId, int], cheapest: Sequence[tuple[int, NodeId]], rules: _Rules
) -> int:
    """What a slot's replicas cost at least: a node's price, and one more where the slot was not before."""
    costs = [prices[name] for name in before]
    strangers = 0
    for price, name in cheapest:
        if strangers == rules.most_per_slot:
            break
        if name not in before:
            costs.append(price + 1)
            strangers += 1
    costs.sort()
    row = sum(costs[: rules.least_per_slot])
    return row + sum(cost for cost in costs[rules.least_per_slot : rules.most_per_slot] if cost < 0)


def _leader_proof(
    previous: Sequence[Slot],
    after: Sequence[Slot],
    rules: _Rules,
    certificate: Certificate,
) -> list[str]:
    """Do the prices prove the number of leader changes, given who holds what?

    A change costs 1. To pass over every heir of a slot whose leader is gone costs more than a change of all slots.
    """
    prices = {name: certificate.leader_prices.get(name, 0) for name in rules.leaders}
    ready = {each.slot_id: each.node_ids for each in certificate.ready_heirs}
    complaints: list[str] = []
    changes = paid = bound = 0
    for old, new in zip(previous, after, strict=True):
        changes += old.leader != new.leader
        if new.leader is None:
            paid += old.leader is not None
            bound += old.leader is not None
            continue
        heirs = set(old.followers) & set(new.replicas) if old.leader not in rules.leaders else set()
        if new.slot_id in ready:
            ready_heirs = set(ready.pop(new.slot_id))
            if not ready_heirs < heirs or not ready_heirs:
                complaints.append(
                    f"slot {new.slot_id}: {sorted(ready_heirs)} are not some of its heirs {sorted(heirs)}"
                )
            heirs &= ready_heirs
        costs = {
            name: int(name != old.leader) + (len(previous) + 1 if heirs and name not in heirs else 0)
            for name in new.replicas
        }
        paid += costs[new.leader]
        bound += min(cost + prices[name] for name, cost in costs.items())
    bound -= _band_value(prices, rules.leaders)
    complaints += [f"certificate: readiness of slot {slot_id}, which nobody inherits" for slot_id in sorted(ready)]
    complaints += _compare(
        "leaders changed", changes, certificate.leader_changes, changes, certificate.least_leader_changes
    )
    if paid != bound:
        complaints.append(f"leaders changed: they cost {paid}, but the prices prove only {bound}")
    return complaints


def _band_value(prices: Mapping[NodeId, int], bounds: Mapping[NodeId, tuple[int, int]]) -> int:
    """The most that the nodes' units are worth at these prices."""
    return sum(price * bounds[name][price >= 0] for name, price in prices.items())


def _compare(what: str, counted: int, claimed: int, proven: int, claimed_least: int) -> list[str]:
    complaints = []
    if counted != claimed:
        complaints.append(f"{what}: {counted}, but the certificate says {claimed}")
    if counted != proven:
        complaints.append(f"{what}: {counted}, but the prices prove only {proven}")
    if claimed_least != counted:
        complaints.append(f"{what}: the certificate's least is {claimed_least}, not {counted}")
    return complaints


def _lost(previous: Sequence[Slot], nodes: Sequence[PlacementNode], certificate: Certificate) -> list[str]:
    living = {node.node_id for node in nodes}
    lost = tuple(slot.slot_id for slot in previous if slot.replicas and not living.intersection(slot.replicas))
    if lost == certificate.lost_slots:
        return []
    return [f"slots lost with their last holder: {list(lost)}, but the certificate says {list(certificate.lost_slots)}"]
