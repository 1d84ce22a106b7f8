"""What a node holds, by the newest table it knows: gains and losses, and the answer that each request gets."""

from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from controlplane.core.identifiers import Epoch, Incarnation, NodeId, SlotId, Term
from controlplane.core.membership import NodeStatus
from controlplane.core.records import BundleStatus, ReplicaStatus, SlotStatus
from controlplane.core.slot_table import Slot
from controlplane.core.table_replica import RoutingTable


class Access(Enum):
    """The answer to a request for a slot (SOFARegistry's SlotAccess)."""

    ACCEPT = "accept"
    """The node leads the slot and has its data."""
    MIGRATING = "migrating"
    """The node leads the slot and is still fetching."""
    MOVED = "moved"
    """The node does not lead the slot, or may not serve at all: ask a newer table."""


class Token(NamedTuple):
    """A slot's fencing token: a store that has seen a greater one refuses writes under a smaller one."""

    term: Term
    leader_epoch: Epoch


@dataclass(frozen=True, slots=True)
class Ownership:
    """Whether the node may serve a slot now.

    Attributes:
        access: see :class:`Access`.
        token: the slot's fencing token in the table that the node knows.
        epoch: of that table; a refusal tells it to the client.
    """

    access: Access
    token: Token
    epoch: Epoch


@dataclass(frozen=True, slots=True)
class SlotGained:
    """A replica that the node holds from an epoch on.

    Attributes:
        slot_id: which slot.
        leads: as slot leader, or as follower.
        token: its fencing token.
        epoch: of the table.
        sources: living nodes that may have the data, the likeliest first: the slot leader of the table before, its
            followers, then the other replicas of this table.
        followers: the slot's followers in this table.
    """

    slot_id: SlotId
    leads: bool
    token: Token
    epoch: Epoch
    sources: tuple[NodeId, ...]
    followers: tuple[NodeId, ...]


@dataclass(frozen=True, slots=True)
class SlotLost:
    """A replica that the node does not hold any more."""

    slot_id: SlotId
    token: Token
    epoch: Epoch


@dataclass(frozen=True, slots=True)
class Changes:
    """What one table changes for the node."""

    lost: tuple[SlotLost, ...] = ()
    gained: tuple[SlotGained, ...] = ()
    changed: tuple[SlotGained, ...] = ()
    bundles_lost: tuple[str, ...] = ()
    bundles_gained: tuple[str, ...] = ()


_NO_TOKEN = Token(Term(0), Epoch(0))


class SlotLedger:
    """What the node holds. Not thread-safe: the agent guards it."""

    def __init__(self, node_id: NodeId) -> None:
        """Nothing is held before the first table."""
        self._node_id = node_id
        self._table: RoutingTable | None = None
        self._held: dict[SlotId, Slot] = {}
        self._bundles: frozenset[str] = frozenset()
        self._ready: set[SlotId] = set()

    @property
    def epoch(self) -> Epoch:
        """Of the table that the node works with; 0 before the first."""
        return self._table.epoch if self._table else Epoch(0)

    @property
    def holds_nothing(self) -> bool:
        """Whether the table gives the node no slot and no bundle."""
        return not self._held and not self._bundles

    @property
    def counts(self) -> tuple[int, int, int]:
        """How many slots the node leads and follows, and how many bundles it owns."""
        leads = sum(1 for slot in self._held.values() if slot.leader == self._node_id)
        return leads, len(self._held) - leads, len(self._bundles)

    def take(self, table: RoutingTable, incarnation: Incarnation) -> Changes:
        """Take a new table over. A row of another incarnation, or of a fenced one, gives this process nothing."""
        before, held_before, bundles_before = self._table, self._held, self._bundles
        self._table = table
        self._held, self._bundles = self._holdings(table, incarnation)
        self._ready &= self._held.keys()
        both = held_before.keys() & self._held.keys()
        return Changes(
            lost=tuple(
                SlotLost(slot_id, self._token(slot_id), table.epoch)
                for slot_id in sorted(held_before.keys() - self._held.keys())
            ),
            gained=tuple(self._gain(slot_id, before) for slot_id in sorted(self._held.keys() - held_before.keys())),
            changed=tuple(
                self._gain(slot_id, before) for slot_id in sorted(both) if self._held[slot_id] != held_before[slot_id]
            ),
            bundles_lost=tuple(sorted(bundles_before - self._bundles)),
            bundles_gained=tuple(sorted(self._bundles - bundles_before)),
        )

    def mark_ready(self, slot_id: SlotId) -> None:
        """The node has the slot's data; no effect if it does not hold the slot any more."""
        if slot_id in self._held:
            self._ready.add(slot_id)

    def ownership(self, slot_id: SlotId, *, may_serve: bool) -> Ownership:
        """The answer to a request; without ``may_serve`` the node has fenced itself and refuses all."""
        slot = self._held.get(slot_id)
        if not may_serve or slot is None or slot.leader != self._node_id:
            access = Access.MOVED
        else:
            access = Access.ACCEPT if slot_id in self._ready else Access.MIGRATING
        return Ownership(access, self._token(slot_id), self.epoch)

    def slot_statuses(self) -> tuple[SlotStatus, ...]:
        """For the heartbeat: one per slot held."""
        return tuple(
            SlotStatus(
                slot_id,
                slot.leader_epoch,
                slot.leader == self._node_id,
                ReplicaStatus.HEALTHY if slot_id in self._ready else ReplicaStatus.MIGRATING,
                0,
            )
            for slot_id, slot in sorted(self._held.items())
        )

    def bundle_statuses(self) -> tuple[BundleStatus, ...]:
        """For the heartbeat: one per bundle owned."""
        return tuple(BundleStatus(bundle_id, ReplicaStatus.HEALTHY) for bundle_id in sorted(self._bundles))

    def _holdings(self, table: RoutingTable, incarnation: Incarnation) -> tuple[dict[SlotId, Slot], frozenset[str]]:
        row = table.nodes.get(self._node_id)
        if row is None or row.incarnation != incarnation or row.status not in (NodeStatus.ACTIVE, NodeStatus.DRAINING):
            return {}, frozenset()
        held = {slot.slot_id: slot for slot in table.slots if self._node_id in slot.replicas}
        owned = frozenset(bundle_id for bundle_id, bundle in table.bundles.items() if bundle.owner == self._node_id)
        return held, owned

    def _gain(self, slot_id: SlotId, before: RoutingTable | None) -> SlotGained:
        table = self._table
        slot = self._held[slot_id]
        candidates = (*(before.slots[slot_id].replicas if before is not None else ()), *slot.replicas)
        living = [node_id for node_id in dict.fromkeys(candidates) if self._lives(node_id)]
        return SlotGained(
            slot_id=slot_id,
            leads=slot.leader == self._node_id,
            token=self._token(slot_id),
            epoch=table.epoch if table else Epoch(0),
            sources=tuple(living),
            followers=slot.followers,
        )

    def _lives(self, node_id: NodeId) -> bool:
        row = self._table.nodes.get(node_id) if self._table else None
        return node_id != self._node_id and row is not None and row.status in (NodeStatus.ACTIVE, NodeStatus.DRAINING)

    def _token(self, slot_id: SlotId) -> Token:
        table = self._table
        if table is None or not 0 <= slot_id < len(table.slots):
            return _NO_TOKEN
        return Token(table.term, table.slots[slot_id].leader_epoch)
