"""The callbacks by which an agent notifies the user's code, and the values that they pass."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from controlplane.core.bundles.bundle import Bundle
from controlplane.core.values.identifiers import Epoch, NodeId, SlotId, Term


class FencingToken(NamedTuple):
    """The right to lead a slot, comparable: a store that has seen a greater token refuses the holder of a smaller one.

    Both numbers only grow along the log, so that a later slot leader always has the greater token.
    """

    term: Term
    leader_epoch: Epoch


class Access(Enum):
    """The answer to the question whether the node may serve a slot (SOFARegistry's slot access)."""

    ACCEPT = "accept"
    """The node leads the slot, has all of its data, and may serve."""
    MIGRATING = "migrating"
    """The node leads the slot and is still fetching its data; ask again."""
    MOVED = "moved"
    """The node does not lead the slot, or may not serve because it has lost the log or the table is too old."""


class Ownership(NamedTuple):
    """The answer for one slot, with the numbers that a refusal or a write has to carry.

    Attributes:
        access: see :class:`Access`.
        token: the slot's fencing token in the table in use.
        epoch: of that table.
        leader: the slot's leader in that table.
    """

    access: Access
    token: FencingToken
    epoch: Epoch
    leader: NodeId | None


@dataclass(frozen=True, slots=True)
class SlotGained:
    """This node is a replica of the slot from now on, and has none of its data yet as far as the table shows.

    Until the user's code calls ``slot_ready``, requests for the slot are answered "migrating".

    Attributes:
        slot_id: the slot.
        leads: True as slot leader, False as follower.
        token: the slot's fencing token.
        epoch: of the table in which it was gained; it identifies this holding if the slot is lost and gained again.
        sources: living nodes that may have the data: the former slot leader first, then the other former replicas,
            then the present ones. After a split these are the nodes of the slot that was split, and some of them may
            still have the data under the number of that slot.
        part_of: the slot that was split, if this node has held it until now. The data is here then, under that slot,
            and only has to be separated. If that slot is lost with the same table, the loss is reported next: keep what
            belongs to the part before this call returns.
    """

    slot_id: SlotId
    leads: bool
    token: FencingToken
    epoch: Epoch
    sources: tuple[NodeId, ...]
    part_of: SlotId | None = None


@dataclass(frozen=True, slots=True)
class SlotChanged:
    """This node still holds the slot, but its row was written again: its leader or followers may have changed.

    Attributes:
        slot_id: the slot.
        led: whether this node led it before.
        leads: whether this node leads it now.
        token: the slot's fencing token.
        epoch: of the table with the change.
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
        slot_id: the slot.
        led: whether this node led it.
        epoch: of the table without it.
        leader: the slot's leader now.
    """

    slot_id: SlotId
    led: bool
    epoch: Epoch
    leader: NodeId | None


@dataclass(frozen=True, slots=True)
class Changes:
    """The changes that one epoch makes for one node, reported in this order except for :attr:`gained_of_lost`.

    Lost slots come first, because a slot that is lost and gained again is in both.

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
        """The gained parts of lost slots; reported before the loss, after which their data may be deleted."""
        lost = {slot.slot_id for slot in self.lost}
        return tuple(slot for slot in self.gained if slot.part_of in lost)


class NodeCallbacks:
    """The user's code: derive from this class and override what is needed.

    Calls are made one at a time, in the order of the epochs, in the thread that follows the table. During a call the
    agent's table and ``ownership`` stay at the epoch of the call, and heartbeats continue. Return soon, and fetch data
    in threads of your own: shortly before the silence limit is over the node refuses all requests, because its slots
    may have other holders by then. An exception ends the agent: heartbeats stop, and the cluster fences the node.
    """

    def on_slots_lost(self, lost: Sequence[SlotLost]) -> None:
        """Called with slots that this node no longer holds; it has refused their requests since before this call."""

    def on_slots_gained(self, gained: Sequence[SlotGained]) -> None:
        """Called with slots that this node holds from now on; call ``slot_ready`` for each once its data is here.

        After a split, the parts of lost slots come in a call of their own, before :meth:`on_slots_lost`.
        """

    def on_slots_changed(self, changed: Sequence[SlotChanged]) -> None:
        """Called with slots that this node still holds, with another leader (perhaps itself) or other followers."""

    def on_bundles_lost(self, lost: Sequence[Bundle]) -> None:
        """Called with bundles that this node no longer owns."""

    def on_bundles_gained(self, gained: Sequence[Bundle]) -> None:
        """Called with bundles that this node owns from now on."""


def tell(callbacks: NodeCallbacks, changes: Changes) -> None:
    """Make the calls for one epoch's changes, in the order given by :class:`Changes`."""
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
