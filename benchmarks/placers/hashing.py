"""The slot policies ``ring`` and ``rendezvous``: docs/explanation/ring.md.

The ring is consistent hashing (Karger and others, STOC 1997) with the 500 virtual nodes of HiveMQ's. Rendezvous hashing
is that of Thaler and Ravishankar (1998), with weights after Schindler and Schomaker (SPAA 2005).
"""

from collections.abc import Sequence

from benchmarks.placers.contract import Table
from controlplane.core.cluster.policy import ClusterPolicy
from controlplane.core.slots.minimal.contract import PlacementNode
from controlplane.core.slots.policies.rendezvous import RendezvousPolicy
from controlplane.core.slots.policies.ring import RingPolicy
from controlplane.core.slots.policy_contract import OrderKind, SlotPolicy, SlotRequest
from controlplane.core.slots.table import empty_table
from controlplane.core.values.identifiers import Epoch

_EPOCH = Epoch(1)


class OfPolicy:
    """A slot policy that answers every row, for nodes that report nothing and have no orders."""

    heeds_zones = False

    def __init__(self, name: str, policy: SlotPolicy, slot_count: int, replica_count: int) -> None:
        self.name = name
        self.heeds_weights = OrderKind.WEIGHTS in policy.supported_orders
        self._policy = policy
        self._cluster_policy = ClusterPolicy(replica_count=replica_count)
        self._slots = empty_table(slot_count)

    def place(self, nodes: Sequence[PlacementNode]) -> Sequence[Table]:
        """See :class:`benchmarks.placers.contract.Placer`."""
        request = SlotRequest(self._slots, tuple(nodes), frozenset(), self._cluster_policy, _EPOCH, 0)
        self._slots = self._policy.plan(request).slots
        return [tuple(slot.replicas for slot in self._slots)]


def ring(slot_count: int, replica_count: int) -> OfPolicy:
    """HiveMQ's ring: names alone decide, the leader included."""
    return OfPolicy("ring, 500 virtual nodes", RingPolicy(), slot_count, replica_count)


def rendezvous(slot_count: int, replica_count: int) -> OfPolicy:
    """Rendezvous hashing: names and weights decide, and leaders stay where they can."""
    return OfPolicy("rendezvous", RendezvousPolicy(), slot_count, replica_count)
