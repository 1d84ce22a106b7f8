"""What the slot policies ``ring`` and ``rendezvous`` promise: a table that follows from names and weights.

The holders are found again from a decision's state, with nothing of the policies but the hash of a text, which is
compared with recorded answers of the original.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from math import inf, log
from typing import Final, TypeAlias

from controlplane.core.log.decision import CauseKind, Decision
from controlplane.core.log.state import State
from controlplane.core.slots.minimal.contract import PlacementNode
from controlplane.core.slots.ring.text_hash import text_hash
from controlplane.core.slots.table import Slot
from controlplane.core.values.identifiers import NodeId, SlotId
from controlplane.core.verification.holders import holders

_Order: TypeAlias = Callable[[SlotId], Sequence[NodeId]]
"""For a slot, the nodes that are to hold it, in order of preference, as many as it has replicas."""
_VIRTUAL_NODES: Final = 500
_TWO_TO_64: Final = 1 << 64


def hashed_table_complaints(decision: Decision, after: State) -> list[str]:
    """Rows of a plan under one of these policies that have other holders than names and weights say.

    Under ``ring`` the first of them has to lead, too. A refused plan promises nothing.

    Args:
        decision: a decision that plans.
        after: the state after it.
    """
    policy = after.cluster.policy
    order_of = _ORDERS.get(policy.slot_policy)
    if order_of is None or any(cause.kind is CauseKind.PLACEMENT_REFUSED for cause in decision.causes):
        return []
    order = order_of([node for node in holders(after) if node.weight > 0], policy.replica_count)
    planned = after.slots.planned
    return [
        f"slot {row.slot_id} goes to {row.replicas}, by {policy.slot_policy!r} it has to go to {tuple(expected)}"
        for row in (planned.get(slot.slot_id, slot) for slot in after.slots.table)
        if not _agrees(row, expected := order(row.slot_id), leads=policy.slot_policy == "ring")
    ]


def _agrees(row: Slot, expected: Sequence[NodeId], *, leads: bool) -> bool:
    return {*row.replicas} == {*expected} and (not leads or [*row.replicas[:1]] == [*expected[:1]])


def _ring_order(nodes: Sequence[PlacementNode], count: int) -> _Order:
    circle = _circle(tuple(sorted(node.node_id for node in nodes)))

    def order(slot_id: SlotId) -> Sequence[NodeId]:
        start = bisect_left(circle, (text_hash(f"slot/{slot_id}"), ""))
        return _first_names((circle[(start + step) % len(circle)][1] for step in range(len(circle))), count)

    return order


@lru_cache(maxsize=1)
def _circle(names: tuple[NodeId, ...]) -> list[tuple[int, NodeId]]:
    """The places on the ring and their nodes; kept, because many decisions are made for the same nodes."""
    taken: dict[int, tuple[str, NodeId]] = {}
    for name in names:
        for number in range(_VIRTUAL_NODES):
            title = name + str(number)
            place = text_hash(title)
            if place not in taken or taken[place][0].encode("utf-16-be") > (name + "1").encode("utf-16-be"):
                taken[place] = (title, name)
    return sorted((place, name) for place, (_, name) in taken.items())


def _first_names(walk: Iterator[NodeId], count: int) -> Sequence[NodeId]:
    found: dict[NodeId, None] = {}
    for name in walk:
        found[name] = None
        if len(found) == count:
            break
    return [*found]


def _rendezvous_order(nodes: Sequence[PlacementNode], count: int) -> _Order:
    def order(slot_id: SlotId) -> Sequence[NodeId]:
        ranked = sorted((-_weighted(text_hash(f"slot/{slot_id}/{each.node_id}"), each), each.node_id) for each in nodes)
        return [name for _, name in ranked[:count]]

    return order


def _weighted(signed: int, node: PlacementNode) -> float:
    share = (signed + _TWO_TO_64 // 2 + 0.5) / _TWO_TO_64
    return inf if share >= 1 else node.weight / -log(share)


_ORDERS: Final[Mapping[str, Callable[[Sequence[PlacementNode], int], _Order]]] = {
    "ring": _ring_order,
    "rendezvous": _rendezvous_order,
}
