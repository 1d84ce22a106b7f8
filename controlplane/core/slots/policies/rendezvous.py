"""The slot policy ``rendezvous``: rendezvous hashing, or highest random weight.

Each pair of node and slot has a fixed pseudo-random number, the score, and the nodes with the greatest scores hold the
slot (Thaler and Ravishankar, IEEE/ACM Transactions on Networking 6(1), 1998). A score does not depend on other nodes,
so only slots of nodes that come, go or change their weight move. The number of slots of a node is random. With one
replica, its mean is the node's share by weight (Schindler and Schomaker, SPAA 2005). With several replicas heavy nodes
have less than their share, because a node holds a slot only once.

Capacities, zones, pins and exclusions of slots are ignored. Draining and excluded nodes hold nothing. A leader that
still holds its slot goes on leading it. The time of a plan grows with the number of slots times the number of nodes.
"""

from collections.abc import Mapping, Sequence
from heapq import nsmallest
from math import inf, log
from typing import Final

from controlplane.core.slots.minimal.contract import PlacementNode
from controlplane.core.slots.policy_contract import OrderKind, SlotAnswer, SlotPolicy, SlotRequest
from controlplane.core.slots.ring.text_hash import text_hash
from controlplane.core.values.identifiers import NodeId, SlotId
from controlplane.errors import ConfigurationError

POLICY_NAME: Final = "rendezvous"
_HALF: Final = 1 << 63
_TWO_TO_64: Final = 1 << 64


class RendezvousPolicy(SlotPolicy):
    """See the module."""

    name = POLICY_NAME
    supported_orders = frozenset({OrderKind.WEIGHTS})

    def check_options(self, options: Mapping[str, str]) -> None:
        """See :class:`controlplane.core.slots.policy_contract.SlotPolicy`."""
        if options:
            raise ConfigurationError(f"slot_policy_options: {', '.join(sorted(options))}: rendezvous has no options")

    def plan(self, request: SlotRequest) -> SlotAnswer:
        """See :class:`controlplane.core.slots.policy_contract.SlotPolicy`.

        If a slot has lost its leader, a holder that reports to have the data leads it, else one that held the slot
        before, else the one with the greatest score.
        """
        nodes = [node for node in request.nodes if node.weight > 0]
        ready = request.ready
        planned = []
        for slot in request.held:
            holders = best_nodes(slot.slot_id, nodes, request.policy.replica_count)
            leader = slot.leader
            if leader not in holders:
                up_to_date = [node_id for node_id in holders if (slot.slot_id, node_id) in ready]
                known = [node_id for node_id in holders if node_id in slot.replicas]
                leader = next(iter((*up_to_date, *known, *holders)), None)
            planned.append(slot.assigned(leader, holders, request.epoch))
        return SlotAnswer(tuple(planned))


def best_nodes(slot_id: SlotId, nodes: Sequence[PlacementNode], count: int) -> list[NodeId]:
    """The nodes with the greatest scores for a slot, the best first; equal scores are ordered by name.

    Args:
        slot_id: the slot.
        nodes: the nodes, of weights above 0.
        count: how many to return, if there are so many.
    """
    scored = [(-score(slot_id, node), node.node_id) for node in nodes]
    return [node_id for _, node_id in nsmallest(count, scored)]


def score(slot_id: SlotId, node: PlacementNode) -> float:
    """The score of a node for a slot: -weight / ln(u).

    u is the hash of the text ``slot/<number>/<node>`` as a number between 0 and 1: XXH64 over its UTF-16 units, as on
    the ring.
    """
    unit = (text_hash(f"slot/{slot_id}/{node.node_id}") + _HALF + 0.5) / _TWO_TO_64
    return -node.weight / log(unit) if unit < 1 else inf
