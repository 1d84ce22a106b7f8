"""The slot policy ``ring``: each slot is on HiveMQ's ring, and its owner there leads it.

A slot's key is the text ``slot/`` and the number of the slot, such as ``slot/17``. The owner of that key leads the
slot, and the key's replicas follow, one fewer than the policy's ``replica_count``. So the table follows from the names
of the nodes that are to hold slots, and from nothing else: equal nodes give equal tables, whatever happened before.

Nodes join the ring in order of name. Where names share virtual nodes (see
:mod:`controlplane.core.slots.ring.hash_ring`), a ring of HiveMQ also depends on who came and went before; this one does
not, so that its table can be found from the names alone.

Weights, capacities, zones, pins and exclusions of slots are ignored. Draining and excluded nodes are not on the ring.
The owner leads at once, even if another holder reports to have the data and the owner does not.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import Final

from controlplane.core.slots.policy_contract import SlotAnswer, SlotPolicy, SlotRequest
from controlplane.core.slots.ring.hash_ring import HashRing
from controlplane.core.slots.table import Slot
from controlplane.core.values.identifiers import Epoch, NodeId, SlotId
from controlplane.errors import ConfigurationError

POLICY_NAME: Final = "ring"


def slot_key(slot_id: SlotId) -> str:
    """The key of a slot on the ring. It is no name of a virtual node, unless a node's name begins with ``slot/``."""
    return f"slot/{slot_id}"


class RingPolicy(SlotPolicy):
    """See the module."""

    name = POLICY_NAME

    def check_options(self, options: Mapping[str, str]) -> None:
        """See :class:`controlplane.core.slots.policy_contract.SlotPolicy`."""
        if options:
            raise ConfigurationError(f"slot_policy_options: {', '.join(sorted(options))}: ring has no options")

    def plan(self, request: SlotRequest) -> SlotAnswer:
        """See :class:`controlplane.core.slots.policy_contract.SlotPolicy`; without nodes no slot has a holder."""
        owner_ids = request.owner_ids
        if not owner_ids:
            return SlotAnswer(tuple(slot.assigned(None, (), request.epoch) for slot in request.held))
        ring = _ring(owner_ids)
        follower_count = request.policy.replica_count - 1
        return SlotAnswer(tuple(_row(ring, slot, follower_count, request.epoch) for slot in request.held))


def _row(ring: HashRing, slot: Slot, follower_count: int, epoch: Epoch) -> Slot:
    key = slot_key(slot.slot_id)
    return slot.assigned(ring.owner(key), ring.replicas(key, follower_count), epoch)


@lru_cache(maxsize=1)
def _ring(owner_ids: tuple[NodeId, ...]) -> HashRing:
    """The ring of these nodes. Orders and intents ask for plans much oftener than the nodes change."""
    return HashRing(owner_ids)
