"""What an agent tells the user's code, and what it asks of it."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple, Protocol

from controlplane.core.bundles import Bundle
from controlplane.core.identifiers import Epoch, NodeId, SlotId, Term
from controlplane.core.records import BundleLoad, ResourceUsage, SlotLoad


class FencingToken(NamedTuple):
    """The right to lead a slot, comparable: whoever has seen a greater one refuses the holder of a smaller one.

    Both numbers only grow along the log, so that a later slot leader always has the greater token.
    """

    term: Term
    leader_epoch: Epoch


class Answer(Enum):
    """What a node says to a request for a slot (SOFARegistry's slot access status)."""

    ACCEPT = "accept"
    """It leads the slot, has all its data, and may serve."""
    MIGRATING = "migrating"
    """It leads the slot and is still fetching its data: ask again."""
    MOVED = "moved"
    """It does not lead the slot, or may not serve because it has lost the log: look at a newer table."""


class Ownership(NamedTuple):
    """The answer for one slot, with the numbers that a refusal or a write has to carry.

    Attributes:
        answer: see :class:`Answer`.
        token: the slot's fencing token in the table that this node knows.
        epoch: of that table.
        leader: the slot's leader in that table.
    """

    answer: Answer
    token: FencingToken
    epoch: Epoch
    leader: NodeId | None


@dataclass(frozen=True, slots=True)
class SlotGained:
    """This node is a replica of the slot from now on and has none of its data yet, as far as the table knows.

    Until the user calls ``slot_ready`` the slot is answered "migrating".

    Attributes:
        slot_id: which slot.
        leads: as slot leader, or as follower.
        token: the slot's fencing token.
        epoch: of the table that says so; it names this holding when the slot is lost and gained again.
        sources: living nodes that may have the data: the former slot leader first, then the other former replicas, then
            the present ones.
    """

    slot_id: SlotId
    leads: bool
    token: FencingToken
    epoch: Epoch
    sources: tuple[NodeId, ...]


@dataclass(frozen=True, slots=True)
class SlotChanged:
    """This node goes on holding the slot, but it or another node leads it now.

    Attributes:
        slot_id: which slot.
        led: whether this node led it before.
        leads: whether this node leads it now.
        token: the slot's fencing token.
        epoch: of the table that says so.
        leader: the slot's leader now.
    """

    slot_id: SlotId
    led: bool
    leads: bool
    token: FencingToken
    epoch: Epoch
    leader: NodeId | None


@dataclass(frozen=True, slots=True)
class SlotLost:
    """This node no longer holds the slot; it has refused its requests since before this call.

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
    """What one epoch changes for one node; lost slots come first: one that is lost and gained is in both.

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


class NodeCallbacks(Protocol):
    """The user's side, called in a thread of its own, one call at a time, in the order of the epochs.

    A call may take its time: heartbeats and the table go on meanwhile, and ``ownership`` is up to date before the call.
    An exception stops the agent: heartbeats end, and the cluster takes the node for dead. Derive from this class and
    override what is needed.
    """

    def on_slots_lost(self, lost: Sequence[SlotLost]) -> None:
        """Slots that this node no longer holds."""

    def on_slots_gained(self, gained: Sequence[SlotGained]) -> None:
        """Slots that this node holds from now on; call ``slot_ready`` for each once its data is here."""

    def on_slots_changed(self, changed: Sequence[SlotChanged]) -> None:
        """Slots that this node goes on holding under another slot leader, perhaps itself."""

    def on_bundles_lost(self, lost: Sequence[Bundle]) -> None:
        """Bundles that this node no longer owns."""

    def on_bundles_gained(self, gained: Sequence[Bundle]) -> None:
        """Bundles that this node owns from now on."""


class Load(NamedTuple):
    """What the user's code measures of its own work since it was asked last.

    Attributes:
        cpu: percent of one core, limit 100 x cores.
        memory: MiB of resident memory.
        direct_memory: MiB outside the heap; unknown unless measured.
        bandwidth_in: Kbit/s.
        bandwidth_out: Kbit/s.
        bundles: one per bundle that was worked for.
        slots: one per slot that is led, where measured.
    """

    cpu: ResourceUsage
    memory: ResourceUsage
    direct_memory: ResourceUsage = ResourceUsage(-1.0, -1.0)
    bandwidth_in: ResourceUsage = ResourceUsage(-1.0, -1.0)
    bandwidth_out: ResourceUsage = ResourceUsage(-1.0, -1.0)
    bundles: tuple[BundleLoad, ...] = ()
    slots: tuple[SlotLoad, ...] = ()
