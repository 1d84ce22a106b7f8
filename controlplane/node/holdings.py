"""The slots that one node holds according to the newest table, and the state of their data."""

import threading
from collections.abc import Iterable
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import Final, NamedTuple

from controlplane.core.membership.node import NodeRole, NodeStatus
from controlplane.core.routing.replica import RoutingTable
from controlplane.core.slots.reports import (
    GROUPS_FROM_LEVEL,
    ReleasedSlots,
    SlotGroup,
    SlotSettings,
    SlotStatus,
    grouped,
)
from controlplane.core.slots.sofa.slot_access import LocalSlot
from controlplane.core.slots.table import Slot
from controlplane.core.values.identifiers import Epoch, Incarnation, NodeId, ProcessId, SlotId, Term
from controlplane.core.values.replica_status import ReplicaStatus
from controlplane.node.callbacks import (
    Access,
    Changes,
    FencingToken,
    Ownership,
    SlotChanged,
    SlotGained,
    SlotLost,
    SlotReleasing,
)
from controlplane.node.handoff_settings import HandoffSettings
from controlplane.node.slot_releases import AcceptedSlotRequest, SlotReleases

_NO_TOKEN = FencingToken(Term(0), Epoch(0))
_AS_IT_IS_SENT: Final = -1
"""Stands for the time of the last sync of slots that are in sync whenever a heartbeat is sent."""


@dataclass(frozen=True, slots=True)
class _Held:
    """A held slot, as far as it is not in the table.

    Attributes:
        gained_epoch: identifies this holding: a slot that is lost and gained again is another holding.
        status: the status that the node reports.
        synced_at_ms: wall clock of the last complete sync with the slot leader; 0 for never, None if the node receives
            every write as it happens, and so is in sync for as long as it is healthy.
        sources: nodes that may have the data.
    """

    gained_epoch: Epoch
    status: ReplicaStatus
    synced_at_ms: int | None
    sources: tuple[NodeId, ...]


class HoldingReport(NamedTuple):
    """What a heartbeat says of a node's slots; everything is by the same table.

    Attributes:
        epoch: of the table; 0 before the first.
        settings: of the table; None before the first.
        statuses: one for each slot, in a cluster whose controllers may not know groups.
        groups: every slot, in all other clusters.
        released: the slots that the node has released, and still leads by the table.
    """

    epoch: Epoch
    settings: SlotSettings | None
    statuses: tuple[SlotStatus, ...] = ()
    groups: tuple[SlotGroup, ...] = ()
    released: tuple[ReleasedSlots, ...] = ()


class HoldingBook:
    """The slots of one node. Thread-safe: one thread passes tables, others ask and report."""

    def __init__(self, node_id: NodeId, process_id: ProcessId = "", settings: HandoffSettings | None = None) -> None:
        """Begin without a table and without holdings."""
        self._releases = SlotReleases(settings or HandoffSettings())
        self._node_id = node_id
        self._process_id = process_id
        self._lock = threading.Lock()
        self._table: RoutingTable | None = None
        self._held: dict[SlotId, _Held] = {}
        self._untold: set[SlotId] = set()
        self._groups: tuple[SlotGroup, ...] | None = None

    @property
    def epoch(self) -> Epoch:
        """The epoch of the newest table; 0 before the first."""
        table = self._table
        return table.epoch if table else Epoch(0)

    @property
    def holds_nothing(self) -> bool:
        """Whether the node holds no slot."""
        with self._lock:
            return not self._held

    @property
    def is_the_last_one(self) -> bool:
        """Whether the node is draining and no other node in the table could take over what it holds.

        The counterpart of ``can_relieve`` of the state: a node has only the rows.
        """
        table = self._table
        row = table.nodes.get(self._node_id) if table else None
        if table is None or row is None or row.status is not NodeStatus.DRAINING:
            return False
        # The row of an excluded node has weight 0.
        others = (each for each in table.nodes.values() if each.status is NodeStatus.ACTIVE and each.weight)
        return not any(each.role is NodeRole.DATA for each in others)

    def count(self) -> tuple[int, int]:
        """The numbers of slots that the node leads, and of slots that it follows."""
        with self._lock:
            table = self._table
            leads = sum(1 for slot_id in self._held if table and table.slots[slot_id].leader == self._node_id)
            return leads, len(self._held) - leads

    def follow(self, table: RoutingTable, incarnation: Incarnation, now_ms: int = 0) -> Changes:
        """Take the next table at monotonic time ``now_ms``; return its changes for this node.

        The node is a member only under ``incarnation``. From here on requests are answered by this table.

        A holding also ends and begins again if epochs were skipped and the slot's row, or the node's own row, was
        written meanwhile: the node may have lost the slot in between, and missed writes that others accepted.
        """
        with self._lock:
            before, self._table = self._table, table
            self._groups = None
            row = table.nodes.get(self._node_id)
            member = row is not None and row.is_of(incarnation, self._process_id) and row.status.lives
            lost: list[SlotLost] = []
            gained: list[SlotGained] = []
            changed: list[SlotChanged] = []
            skipped = before is not None and table.epoch > before.epoch + 1
            interrupted = skipped and before is not None and before.nodes.get(self._node_id) is not row
            # Only a slot with all of its data is useful as the source of its part.
            complete = (slot_id for slot_id, held in self._held.items() if held.status is ReplicaStatus.HEALTHY)
            held_before = frozenset(() if skipped else complete)
            for slot, earlier in _touched(table, before, every=interrupted or bool(self._held) != member):
                holds = member and self._node_id in slot.replicas
                rewritten = interrupted or (skipped and slot is not earlier)
                if slot.slot_id in self._held and (not holds or rewritten):
                    del self._held[slot.slot_id]
                    self._untold.discard(slot.slot_id)
                    self._releases.void(slot.slot_id)
                    led = earlier is not None and earlier.leader == self._node_id
                    lost.append(SlotLost(slot.slot_id, led, table.epoch, slot.leader))
                if earlier is not None and earlier.slot_id != slot.slot_id:
                    self._releases.split(earlier.slot_id, slot.slot_id)
                self._releases.follow(slot, table.epoch, now_ms, leads=holds and slot.leader == self._node_id)
                if not holds:
                    continue
                # After skipped epochs, the present replicas may have more recent data than the former ones.
                sources = self._sources(slot, earlier) if skipped else self._sources(earlier, slot)
                if slot.slot_id not in self._held:
                    split_from = earlier.slot_id if earlier is not None and earlier.slot_id in held_before else None
                    part_of = split_from if split_from != slot.slot_id else None
                    gained.append(self._gain(table, slot, sources, part_of))
                elif earlier is not None and slot is not earlier:
                    changed.append(self._change(table, slot, earlier, sources))
        return Changes(table.epoch, tuple(lost), tuple(gained), tuple(changed))

    def begin(self, changes: Changes) -> None:
        """The callbacks for changes are made now: the service knows what it has gained."""
        with self._lock:
            for gained in changes.gained:
                held = self._held.get(gained.slot_id)
                if held is not None and held.gained_epoch == gained.epoch:
                    self._untold.discard(gained.slot_id)

    def finish(self, changes: Changes) -> None:
        """The callbacks for changes have returned: what they tell to release may be released, or has been."""
        with self._lock:
            self._releases.told((slot.slot_id for slot in changes.gained), changes.epoch)
            self._releases.told((slot.slot_id for slot in changes.changed), changes.epoch)
            for slot in changes.releasing:
                self._releases.done(slot.slot_id, slot.epoch)

    def releasing(self) -> Changes | None:
        """The slots that the service has to be asked to release now; None if there are none."""
        with self._lock:
            table = self._table
            if table is None or not self._releases.unasked:
                return None
            return Changes(
                table.epoch,
                releasing=tuple(
                    SlotReleasing(slot_id, epoch, table.slots[slot_id].next_leader or "")
                    for slot_id, epoch in sorted(self._releases.ask().items())
                ),
            )

    def attend(self, now_ms: int) -> int | None:
        """End what releases have waited for long enough; return when to look again, None if not at all."""
        with self._lock:
            return self._releases.attend(now_ms)

    @property
    def has_due_releases(self) -> bool:
        """Whether the service has to be asked to release a slot."""
        return bool(self._releases.unasked)

    @property
    def has_news(self) -> bool:
        """Whether a slot was released that no heartbeat has reported."""
        return self._releases.has_news

    def accept(self, slot: SlotId | bytes | str) -> tuple[Ownership, AcceptedSlotRequest | None]:
        """The answer of :meth:`ownership`, with the noted request if it is accepted. :meth:`leave` has to follow."""
        with self._lock:
            answer = self._ownership(slot)
            if answer.access is not Access.ACCEPT or answer.slot_id is None:
                return answer, None
            return answer, self._releases.accept(answer.slot_id)

    def leave(self, request: AcceptedSlotRequest) -> None:
        """Note the end of a request."""
        with self._lock:
            self._releases.leave(request)

    def ownership(self, slot: SlotId | bytes | str) -> Ownership:
        """Whether the node leads a slot, or that of a key, and has its data; the session decides if it may serve."""
        with self._lock:
            return self._ownership(slot)

    def _ownership(self, slot: SlotId | bytes | str) -> Ownership:
        table = self._table
        if table is None:
            return Ownership(Access.MOVED, _NO_TOKEN, Epoch(0), None)
        slot_id = slot if isinstance(slot, int) else table.slot_for(slot).slot_id
        if not 0 <= slot_id < len(table.slots):
            return Ownership(Access.UNSUPPORTED, _NO_TOKEN, table.epoch, None, slot_id)
        row = table.slots[slot_id]
        held = self._held.get(slot_id)
        access, ask = Access.MOVED, row.leader
        if held is None or row.leader != self._node_id:
            pass
        elif self._releases.is_releasing(slot_id):
            ask = row.next_leader
        elif held.status is ReplicaStatus.HEALTHY and not self._releases.is_reopening(slot_id):
            access = Access.ACCEPT
        else:
            access = Access.MIGRATING
        node = None if ask is None else table.nodes.get(ask)
        addresses = () if node is None else node.addresses
        return Ownership(access, FencingToken(table.term, row.leader_epoch), table.epoch, ask, slot_id, addresses)

    def local_slot(self, slot_id: SlotId) -> tuple[Epoch, LocalSlot | None]:
        """The epoch of the table, and what SOFARegistry's rule needs of a slot; None if the node does not hold it."""
        with self._lock:
            table, held = self._table, self._held.get(slot_id)
            if table is None or held is None:
                return self.epoch, None
            row = table.slots[slot_id]
            leads = row.leader == self._node_id and not self._releases.is_releasing(slot_id)
            is_migrated = held.status is ReplicaStatus.HEALTHY and not self._releases.is_reopening(slot_id)
            return table.epoch, LocalSlot(leads, is_migrated, row.leader_epoch)

    def mark_ready(self, slot_id: SlotId, gained_epoch: Epoch | None, synced_at_ms: int | None = None) -> bool:
        """Note that all data of a slot is here; False if it is not held, or was gained in another epoch than given.

        Without an epoch, False as well if the service was not told of the gain: it speaks of an earlier one then.

        ``synced_at_ms`` is the wall clock of the sync, for a follower that syncs from time to time.
        """
        with self._lock:
            held = self._held.get(slot_id)
            if held is None or (slot_id in self._untold if gained_epoch is None else gained_epoch != held.gained_epoch):
                return False
            self._held[slot_id] = replace(held, status=ReplicaStatus.HEALTHY, synced_at_ms=synced_at_ms)
            self._groups = None
            return True

    def report(self, wall_ms: int) -> HoldingReport:
        """The contents of a heartbeat that is sent at ``wall_ms``: every held slot, by one table."""
        with self._lock:
            table = self._table
            if table is None:
                return HoldingReport(Epoch(0), None)
            settings = table.settings
            report = HoldingReport(
                table.epoch,
                SlotSettings(settings.slot_count, settings.replica_count, settings.hash_function.value),
            )
            if settings.feature_level >= GROUPS_FROM_LEVEL:
                return report._replace(groups=self._groups_at(wall_ms), released=self._releases.report())
            return report._replace(statuses=tuple(self._status(table, *slot) for slot in self._synced(wall_ms)))

    def _groups_at(self, wall_ms: int) -> tuple[SlotGroup, ...]:
        """The groups of a heartbeat; made anew only after a change, because a heartbeat must not cost what slots do."""
        if self._groups is None:
            self._groups = grouped(self._synced(_AS_IT_IS_SENT))
        return tuple(
            group._replace(last_sync_ms=wall_ms) if group.last_sync_ms == _AS_IT_IS_SENT else group
            for group in self._groups
        )

    def _synced(self, now_ms: int) -> Iterable[tuple[SlotId, ReplicaStatus, int]]:
        """Each held slot, ascending, with its status and the time of its last sync: ``now_ms`` if it always is."""
        for slot_id, held in sorted(self._held.items(), key=itemgetter(0)):
            yield slot_id, held.status, now_ms if held.synced_at_ms is None else held.synced_at_ms

    def _status(self, table: RoutingTable, slot_id: SlotId, status: ReplicaStatus, synced_at_ms: int) -> SlotStatus:
        slot = table.slots[slot_id]
        leads = slot.leader == self._node_id
        return SlotStatus(slot_id, slot.leader_epoch, leads, status, 0 if leads else synced_at_ms)

    def _gain(self, table: RoutingTable, slot: Slot, sources: tuple[NodeId, ...], part_of: SlotId | None) -> SlotGained:
        self._held[slot.slot_id] = _Held(table.epoch, ReplicaStatus.MIGRATING, 0, sources)
        self._untold.add(slot.slot_id)
        token = FencingToken(table.term, slot.leader_epoch)
        leads = slot.leader == self._node_id
        return SlotGained(slot.slot_id, leads, token, table.epoch, _living(sources, table), part_of)

    def _change(self, table: RoutingTable, slot: Slot, earlier: Slot, sources: tuple[NodeId, ...]) -> SlotChanged:
        held = self._held[slot.slot_id]
        known = tuple(dict.fromkeys((*sources, *held.sources)))
        self._held[slot.slot_id] = replace(held, sources=known)
        token = FencingToken(table.term, slot.leader_epoch)
        led, leads = earlier.leader == self._node_id, slot.leader == self._node_id
        return SlotChanged(slot.slot_id, led, leads, token, table.epoch, slot.leader, _living(known, table))

    def _sources(self, first: Slot | None, second: Slot | None) -> tuple[NodeId, ...]:
        """The other replicas of two rows, without repetition, in this order."""
        replicas = [node_id for slot in (first, second) if slot is not None for node_id in slot.replicas]
        return tuple(node_id for node_id in dict.fromkeys(replicas) if node_id != self._node_id)


def _living(node_ids: tuple[NodeId, ...], table: RoutingTable) -> tuple[NodeId, ...]:
    return tuple(node_id for node_id in node_ids if node_id in table.nodes and table.nodes[node_id].status.lives)


def _touched(table: RoutingTable, before: RoutingTable | None, *, every: bool) -> list[tuple[Slot, Slot | None]]:
    """The slots whose rows were written since ``before``, each with its earlier row; with ``every``, all slots.

    After a split, the earlier row of a part is that of the slot that was split: with twice as many slots, slot
    s + count has keys of slot s only.
    """
    if before is None or len(before.slots) > len(table.slots):
        return [(slot, None) for slot in table.slots]
    count = len(before.slots)
    pairs = ((slot, before.slots[slot.slot_id % count]) for slot in table.slots)
    return [(slot, earlier) for slot, earlier in pairs if every or slot is not earlier]
