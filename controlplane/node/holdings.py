"""What one node holds according to the newest table, and how far it has got with it."""

import threading
from collections.abc import Iterable
from dataclasses import dataclass, replace

from controlplane.core.identifiers import Epoch, Incarnation, NodeId, SlotId
from controlplane.core.membership import NodeStatus
from controlplane.core.records import BundleStatus, ReplicaStatus, SlotStatus
from controlplane.core.rows import NodeRow
from controlplane.core.slot_table import Slot
from controlplane.core.table_replica import RoutingTable
from controlplane.node.callbacks import Answer, Changes, FencingToken, Ownership, SlotChanged, SlotGained, SlotLost

_LIVING = (NodeStatus.ACTIVE, NodeStatus.DRAINING)


@dataclass(frozen=True, slots=True)
class Holding:
    """A slot that this node holds, in the newest table.

    Attributes:
        slot_id: which slot.
        leads: as slot leader, or as follower.
        token: the slot's fencing token.
        epoch: of the newest table.
        held_since: epoch in which this holding began: a slot that is lost and gained again is another holding.
        status: what this node says of it.
        leader: the slot's leader.
        followers: the other replicas.
        sources: living nodes that may have the data, see :class:`controlplane.node.callbacks.SlotGained`.
    """

    slot_id: SlotId
    leads: bool
    token: FencingToken
    epoch: Epoch
    held_since: Epoch
    status: ReplicaStatus
    leader: NodeId | None
    followers: tuple[NodeId, ...]
    sources: tuple[NodeId, ...]


@dataclass(frozen=True, slots=True)
class _Held:
    """What the table does not say of a held slot."""

    held_since: Epoch
    status: ReplicaStatus
    synced_at_ms: int
    sources: tuple[NodeId, ...]


class HoldingBook:
    """Thread-safe: one thread brings tables, others ask and report."""

    def __init__(self, node_id: NodeId) -> None:
        """Hold nothing, know no table."""
        self._node_id = node_id
        self._lock = threading.Lock()
        self._table: RoutingTable | None = None
        self._held: dict[SlotId, _Held] = {}
        self._bundles: frozenset[str] = frozenset()

    @property
    def epoch(self) -> Epoch:
        """Of the newest table; 0 before the first."""
        table = self._table
        return table.epoch if table else Epoch(0)

    @property
    def table(self) -> RoutingTable | None:
        """The newest table."""
        return self._table

    @property
    def is_empty(self) -> bool:
        """Whether the node holds no slot and owns no bundle."""
        with self._lock:
            return not self._held and not self._bundles

    def count(self) -> tuple[int, int]:
        """How many slots the node leads and follows."""
        with self._lock:
            leads = sum(1 for slot_id in self._held if self._leader(slot_id) == self._node_id)
            return leads, len(self._held) - leads

    def follow(self, table: RoutingTable, incarnation: Incarnation) -> Changes:
        """Take the next table; what it changes for this node, which counts as a member under ``incarnation`` only.

        A holding also ends and begins anew where epochs were skipped and the slot's row was written meanwhile: the node
        may have lost the slot in between, and with it writes that went to others.
        """
        with self._lock:
            before, self._table = self._table, table
            member = _is_member(table.nodes.get(self._node_id), incarnation)
            lost: list[SlotLost] = []
            gained: list[SlotGained] = []
            changed: list[SlotChanged] = []
            skipped = before is not None and table.epoch > before.epoch + 1
            for slot, earlier in _touched(table, before, every=bool(self._held) != member):
                holds = member and self._node_id in slot.replicas
                rewritten = skipped and slot is not earlier
                if slot.slot_id in self._held and (not holds or rewritten):
                    del self._held[slot.slot_id]
                    led = earlier is not None and earlier.leader == self._node_id
                    lost.append(SlotLost(slot.slot_id, led, table.epoch, slot.leader))
                if not holds:
                    continue
                if slot.slot_id not in self._held:
                    gained.append(self._gain(slot, earlier))
                elif earlier is not None and _leading(slot) != _leading(earlier):
                    changed.append(self._change(slot, earlier))
            bundles_lost, bundles_gained = self._follow_bundles(table, member=member)
        owned = table.bundles
        return Changes(
            table.epoch,
            tuple(lost),
            tuple(gained),
            tuple(changed),
            tuple(owned[bundle_id] for bundle_id in bundles_lost if bundle_id in owned),
            tuple(owned[bundle_id] for bundle_id in bundles_gained),
        )

    def ownership(self, slot_id: SlotId) -> Ownership:
        """Whether the node leads the slot and has its data; whether it may serve at all is another question."""
        with self._lock:
            table = self._table
            if table is None or not 0 <= slot_id < len(table.slots):
                return Ownership(Answer.MOVED, FencingToken(*_NOTHING), self.epoch, None)
            slot = table.slots[slot_id]
            held = self._held.get(slot_id)
            token = FencingToken(table.term, slot.leader_epoch)
            if held is None or slot.leader != self._node_id:
                return Ownership(Answer.MOVED, token, table.epoch, slot.leader)
            answer = Answer.ACCEPT if held.status is ReplicaStatus.HEALTHY else Answer.MIGRATING
            return Ownership(answer, token, table.epoch, slot.leader)

    def holding(self, slot_id: SlotId) -> Holding | None:
        """What the node holds of a slot now; None if nothing."""
        with self._lock:
            table, held = self._table, self._held.get(slot_id)
            if table is None or held is None:
                return None
            slot = table.slots[slot_id]
            return Holding(
                slot_id,
                slot.leader == self._node_id,
                FencingToken(table.term, slot.leader_epoch),
                table.epoch,
                held.held_since,
                held.status,
                slot.leader,
                slot.followers,
                tuple(node_id for node_id in held.sources if _lives(table.nodes.get(node_id))),
            )

    def report(self, slot_id: SlotId, held_since: Epoch, status: ReplicaStatus, wall_ms: int) -> bool:
        """Note how far the node has got with one holding; False if that holding is over."""
        with self._lock:
            held = self._held.get(slot_id)
            if held is None or held.held_since != held_since:
                return False
            synced_at_ms = wall_ms if status is ReplicaStatus.HEALTHY else held.synced_at_ms
            self._held[slot_id] = replace(held, status=status, synced_at_ms=synced_at_ms)
            return True

    def statuses(self) -> tuple[tuple[SlotStatus, ...], tuple[BundleStatus, ...]]:
        """What heartbeats carry: every held slot and owned bundle, in order."""
        with self._lock:
            table = self._table
            if table is None:
                return (), ()
            slots = []
            for slot_id in sorted(self._held):
                held, slot = self._held[slot_id], table.slots[slot_id]
                leads = slot.leader == self._node_id
                synced_at_ms = 0 if leads else held.synced_at_ms
                slots.append(SlotStatus(slot_id, slot.leader_epoch, leads, held.status, synced_at_ms))
            bundles = tuple(BundleStatus(bundle_id, ReplicaStatus.HEALTHY) for bundle_id in sorted(self._bundles))
            return tuple(slots), bundles

    def _leader(self, slot_id: SlotId) -> NodeId | None:
        return self._table.slots[slot_id].leader if self._table else None

    def _gain(self, slot: Slot, earlier: Slot | None) -> SlotGained:
        table = self._known_table()
        sources = self._sources(slot, earlier)
        self._held[slot.slot_id] = _Held(table.epoch, ReplicaStatus.MIGRATING, 0, sources)
        living = tuple(node_id for node_id in sources if _lives(table.nodes.get(node_id)))
        token = FencingToken(table.term, slot.leader_epoch)
        return SlotGained(slot.slot_id, slot.leader == self._node_id, token, table.epoch, living)

    def _change(self, slot: Slot, earlier: Slot) -> SlotChanged:
        table = self._known_table()
        held = self._held[slot.slot_id]
        sources = dict.fromkeys((*self._sources(slot, earlier), *held.sources))
        self._held[slot.slot_id] = replace(held, sources=tuple(sources))
        token = FencingToken(table.term, slot.leader_epoch)
        led, leads = earlier.leader == self._node_id, slot.leader == self._node_id
        return SlotChanged(slot.slot_id, led, leads, token, table.epoch, slot.leader)

    def _sources(self, slot: Slot, earlier: Slot | None) -> tuple[NodeId, ...]:
        former = earlier.replicas if earlier is not None else ()
        return tuple(node_id for node_id in dict.fromkeys((*former, *slot.replicas)) if node_id != self._node_id)

    def _follow_bundles(self, table: RoutingTable, *, member: bool) -> tuple[list[str], list[str]]:
        owned: Iterable[str] = ()
        if member:
            owned = (bundle_id for bundle_id, bundle in table.bundles.items() if bundle.owner == self._node_id)
        before, self._bundles = self._bundles, frozenset(owned)
        return sorted(before - self._bundles), sorted(self._bundles - before)

    def _known_table(self) -> RoutingTable:
        assert self._table is not None  # noqa: S101 - only called while a table is followed
        return self._table


_NOTHING = (0, 0)


def _is_member(row: NodeRow | None, incarnation: Incarnation) -> bool:
    return row is not None and row.incarnation == incarnation and _lives(row)


def _lives(row: NodeRow | None) -> bool:
    return row is not None and row.status in _LIVING


def _leading(slot: Slot) -> tuple[NodeId | None, Epoch]:
    return slot.leader, slot.leader_epoch


def _touched(
    table: RoutingTable, before: RoutingTable | None, *, every: bool
) -> list[tuple[Slot, Slot | None]]:
    """The slots whose rows were written since ``before`` with what they were, or every slot."""
    if before is None:
        return [(slot, None) for slot in table.slots]
    pairs = zip(table.slots, before.slots, strict=True)
    return [(slot, earlier) for slot, earlier in pairs if every or slot is not earlier]
