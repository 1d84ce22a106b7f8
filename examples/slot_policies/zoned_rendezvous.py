"""A custom slot policy: rendezvous hashing (Thaler and Ravishankar, 1998) that spreads a slot's replicas over zones.

Each pair of node and slot has a fixed pseudo-random number; the nodes with the greatest numbers hold the slot. A node
of weight 3 has three numbers for each slot. A node's numbers do not depend on other nodes, so hardly more than the
slots of nodes that join, leave or change their weight move. Nodes of zones that already have a replica come last; a
node without a zone is a zone of its own. The number of slots of a node is random; capacities are ignored.
"""

from collections.abc import Mapping
from hashlib import blake2b
from math import gcd

from controlplane import ConfigurationError
from controlplane.slot_policies import OrderKind, PlacementNode, Slot, SlotAnswer, SlotPolicy, SlotRequest


class ZonedRendezvous(SlotPolicy):
    """Rendezvous hashing over zones."""

    name = "zoned-rendezvous"
    supported_orders = frozenset({OrderKind.WEIGHTS, OrderKind.ZONES})

    def check_options(self, options: Mapping[str, str]) -> None:
        """Refuse every option, because there are none."""
        if options:
            raise ConfigurationError(
                f"slot_policy_options: zoned-rendezvous has none, and knows no {', '.join(options)}"
            )

    def plan(self, request: SlotRequest) -> SlotAnswer:
        """Assign every slot to the nodes with the greatest numbers. A leader that still holds its slot stays leader."""
        unit = gcd(*(node.weight for node in request.nodes)) or 1
        ready = request.ready
        planned = []
        for slot in request.held:
            ranked = _spread(_ranked(slot, request.nodes, unit))
            holders = [node.node_id for node in ranked[: request.policy.replica_count]]
            leader = slot.leader
            if leader not in holders:
                # A node with the data: one that reports to be ready, else one that held the slot before.
                up_to_date = [node_id for node_id in holders if (slot.slot_id, node_id) in ready]
                known = [node_id for node_id in holders if node_id in slot.replicas]
                leader = next(iter((*up_to_date, *known, *holders)), None)
            planned.append(slot.assigned(leader, holders, request.epoch))
        return SlotAnswer(tuple(planned))


def _ranked(slot: Slot, nodes: tuple[PlacementNode, ...], unit: int) -> list[PlacementNode]:
    """The eligible nodes, in descending order of their numbers for this slot; equal numbers are ordered by name."""
    draws = {node: _draw(slot, node, node.weight // unit) for node in nodes if node.weight > 0}
    return sorted(draws, key=lambda node: (-draws[node], node.node_id))


def _draw(slot: Slot, node: PlacementNode, times: int) -> int:
    """The greatest of a node's numbers, from a hash that is the same in every process (unlike Python's own)."""
    texts = (f"{slot.slot_id}/{node.node_id}/{number}" for number in range(times))
    return max(int.from_bytes(blake2b(text.encode(), digest_size=8).digest()) for text in texts)


def _spread(ranked: list[PlacementNode]) -> list[PlacementNode]:
    """The first node of each zone, then all others, each in their order."""
    firsts = {node.zone or node.node_id: node for node in reversed(ranked)}
    first_names = {node.node_id for node in firsts.values()}
    return sorted(ranked, key=lambda node: node.node_id not in first_names)


SLOT_POLICIES = (ZonedRendezvous(),)
