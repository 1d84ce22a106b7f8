"""What an agent tells the user's code, and what it asks of it."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from controlplane.core.bundles.bundle import Bundle
from controlplane.core.values.identifiers import Epoch, NodeId, SlotId, Term


class FencingToken(NamedTuple):
    """The right to lead a slot, comparable: whoever has seen a greater one refuses the holder of a smaller one.

    Both numbers only grow along the log, so that a later slot leader always has the greater token.
    """

    term: Term
    leader_epoch: Epoch


class Access(Enum):
    """The answer to a request for a slot (SOFARegistry's slot access)."""

    ACCEPT = "accept"
    """It leads the slot, has all its data, and may serve."""
    MIGRATING = "migrating"
    """It leads the slot and is still fetching its data: ask again."""
    MOVED = "moved"
    """It does not lead the slot, or may not serve: without the log, or without news of the table."""


class Ownership(NamedTuple):
    """The answer for one slot, with the numbers that a refusal or a write has to carry.

    Attributes:
        access: see :class:`Access`.
        token: the slot's fencing token in the table that this node knows.
        epoch: of that table.
        leader: the slot's leader in that table.
    """

    access: Access
    token: FencingToken
    epoch: Epoch
    leader: NodeId | None


@dataclass(frozen=True, slots=True)
class SlotGained:
    """This node is a replica of the slot from now on and has none of its data yet, as far as the table knows.

    Until the user's code calls ``slot_ready`` the slot is answered "migrating".

    Attributes:
        slot_id: which slot.
        leads: as slot leader, or as follower.
        token: the slot's fencing token.
        epoch: of the table that says so; it names this holding when the slot is lost and gained again.
        sources: living nodes that may have the data: the former slot leader first, then the other former replicas,
            then the present ones. After a split that is said of the slot that it was split from, and under that slot's
            number some of them may still have the data.
        part_of: the slot that it was split from, if this node has held that one up to now: then the data is here, under
            that slot, and has only to be told apart. If that slot is lost with the same table, its loss is told next:
            keep what belongs to the part before that call returns.
    """

    slot_id: SlotId
    leads: bool
    token: FencingToken
    epoch: Epoch
    sources: tuple[NodeId, ...]
    part_of: SlotId | None = None


@dataclass(frozen=True, slots=True)
class SlotChanged:
    """This node goes on holding the slot, whose row was written anew: its leader or followers may be others now.

    Attributes:
        slot_id: which slot.
        led: whether this node led it before.
        leads: whether this node leads it now.
        token: the slot's fencing token.
        epoch: of the table that says so.
        leader: the slot's leader now.
        sources: as in :class:`SlotGained`, for a slot whose data is not here yet.
    """

    slot_id: SlotId
    led: bool
    leads: bool
    token: FencingToken
    epoch: Epoch
    leader: NodeId | None
    sources: tuple[NodeId, ...]


@dataclass(frozen=True, slots=True)
class SlotLost:
    """This node no longer holds the slot.

    Attributes:
        slot_id: which slot.
        led: whether this node led it.
        epoch: of the table that says so.
        leader: the slot's leader now.
    """

    slot_id: SlotId
    led: bool
    epoch: Epoch
    leader: NodeId | None


@dataclass(frozen=True, slots=True)
class Changes:
    """What one epoch changes for one node. It is told in this order, but for :attr:`gained_of_lost`.

    Lost slots come first because one that is lost and gained anew is in both.

    Attributes:
        epoch: of the new table.
        lost: slots.
        gained: slots.
        changed: slots.
        bundles_lost: as they are now.
        bundles_gained: as they are now.
    """

    epoch: Epoch
    lost: tuple[SlotLost, ...] = ()
    gained: tuple[SlotGained, ...] = ()
    changed: tuple[SlotChanged, ...] = ()
    bundles_lost: tuple[Bundle, ...] = ()
    bundles_gained: tuple[Bundle, ...] = ()

    @property
    def gained_of_lost(self) -> tuple[SlotGained, ...]:
        """The gained parts of slots that are lost: to be told before the loss, with which their data may be dropped."""
        lost = {slot.slot_id for slot in self.lost}
        return tuple(slot for slot in self.gained if slot.part_of in lost)


class NodeCallbacks:
    """The user's side: derive from it and override what is needed.

    Calls come one at a time, in the order of the epochs, in the thread that follows the table: while a call runs, the
    agent's table and ``ownership`` stay at the epoch of the call, and heartbeats go on. So return soon, and let threads
    of your own fetch: when the silence limit is nearly over the node refuses all requests, because its slots may have
    gone to others meanwhile. An exception ends the agent: heartbeats stop, and the cluster takes the node for dead.
    """

    def on_slots_lost(self, lost: Sequence[SlotLost]) -> None:
        """Slots that this node no longer holds; it has refused their requests since before this call."""

    def on_slots_gained(self, gained: Sequence[SlotGained]) -> None:
        """Slots that this node holds from now on; call ``slot_ready`` for each once its data is here.

        After a split the parts of slots that are lost come in a call of their own, before :meth:`on_slots_lost`.
        """

    def on_slots_changed(self, changed: Sequence[SlotChanged]) -> None:
        """Slots that this node goes on holding, whose leader (perhaps itself) or followers may be others now."""

    def on_bundles_lost(self, lost: Sequence[Bundle]) -> None:
        """Bundles that this node no longer owns."""

    def on_bundles_gained(self, gained: Sequence[Bundle]) -> None:
        """Bundles that this node owns from now on."""


def tell(callbacks: NodeCallbacks, changes: Changes) -> None:
    """Make the calls that one epoch's changes ask for, in the order that :class:`Changes` says."""
    parts, gained = changes.gained_of_lost, changes.gained
    if parts:
        callbacks.on_slots_gained(parts)
        told = {part.slot_id for part in parts}
        gained = tuple(each for each in gained if each.slot_id not in told)
    if changes.lost:
        callbacks.on_slots_lost(changes.lost)
    if gained:
        callbacks.on_slots_gained(gained)
    if changes.changed:
        callbacks.on_slots_changed(changes.changed)
    if changes.bundles_lost:
        callbacks.on_bundles_lost(changes.bundles_lost)
    if changes.bundles_gained:
        callbacks.on_bundles_gained(changes.bundles_gained)
