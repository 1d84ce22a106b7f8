"""The callbacks by which an agent notifies the user's code, and the values that they pass."""

from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from controlplane.core.bundles.bundle import Bundle
from controlplane.core.values.addresses import Address
from controlplane.core.values.identifiers import Epoch, NodeId, SlotId, Term


class FencingToken(NamedTuple):
    """The right to lead a slot or own a bundle, comparable: a store that has seen a greater one refuses smaller ones.

    Both numbers only grow along the log, so that a later slot leader or owner always has the greater token.

    Attributes:
        term: of the table that gives the right.
        since_epoch: the epoch in which the slot leader, or the owner of the bundle, became that: the slot leader epoch,
            or the owner epoch. Below feature level 3 bundles have no owner epoch. Then it is the epoch in which this
            node learned that it owns the bundle, and 0 for a bundle of another node.
    """

    term: Term
    since_epoch: Epoch


class Access(Enum):
    """The answer to the question whether the node may serve a slot or a bundle (SOFARegistry's slot access)."""

    ACCEPT = "accept"
    """The node leads the slot and has all of its data, or owns the bundle and has opened it, and may serve."""
    MIGRATING = "migrating"
    """The node leads the slot and is still fetching its data, or opens the bundle; ask again."""
    MOVED = "moved"
    """Another node is to be asked, or the node may not serve because it has lost the log or the table is too old."""
    MISMATCH = "mismatch"
    """The caller goes by another row than the node: the one with the older table has to read on. Only where the caller
    says by which row it goes; see :class:`controlplane.node.RoutedBy`."""
    UNSUPPORTED = "unsupported"
    """The table in use has no such slot or namespace: no node serves it."""


class Ownership(NamedTuple):
    """The answer for one slot, with the numbers that a refusal or a write has to carry.

    Attributes:
        access: see :class:`Access`.
        token: the slot's fencing token in the table in use.
        epoch: of that table.
        ask: the node that a client should ask: the slot's leader in that table or, while this node releases the slot,
            the next one.
        slot_id: the slot; None if there is no table yet.
        addresses: the addresses of that node, by name.
    """

    access: Access
    token: FencingToken
    epoch: Epoch
    ask: NodeId | None
    slot_id: SlotId | None = None
    addresses: tuple[Address, ...] = ()


class BundleOwnership(NamedTuple):
    """The answer for the bundle of a key, with what a refusal or a write has to carry.

    Attributes:
        access: see :class:`Access`.
        token: the bundle's fencing token in the table in use.
        epoch: of that table.
        bundle: the bundle's row in that table; None if there is none that covers the key, or no table yet.
        ask: for "moved", the node that the client should ask: the next owner of a bundle that is handed off, otherwise
            the owner; None if the table names no node but this one. For "migrating", this node.
        addresses: the addresses of the node to ask, by name.
    """

    access: Access
    token: FencingToken
    epoch: Epoch
    bundle: Bundle | None
    ask: NodeId | None
    addresses: tuple[Address, ...] = ()


class TopicLoad(NamedTuple):
    """A topic of a bundle with its latest load, by which the owner finds the bounds of a split.

    Attributes:
        topic: the key by which clients find the topic: Pulsar's full name of it, for example.
        message_rate_in_per_s: messages towards it.
        message_rate_out_per_s: messages from it.
        throughput_in_bytes_per_s: bytes towards it.
        throughput_out_bytes_per_s: bytes from it.
    """

    topic: str
    message_rate_in_per_s: float = 0.0
    message_rate_out_per_s: float = 0.0
    throughput_in_bytes_per_s: float = 0.0
    throughput_out_bytes_per_s: float = 0.0


@dataclass(frozen=True, slots=True)
class SlotGained:
    """This node is a replica of the slot from now on, and has none of its data yet as far as the table shows.

    Until the user's code calls ``slot_ready``, requests for the slot are answered "migrating"; see
    :meth:`NodeCallbacks.on_slots_gained`.

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
class SlotReleasing:
    """This node leads the slot, and has to release it for the next leader, which has its data.

    Attributes:
        slot_id: the slot.
        epoch: of the table that tells it to: the release epoch.
        next_leader: the node that will lead it.
    """

    slot_id: SlotId
    epoch: Epoch
    next_leader: NodeId


@dataclass(frozen=True, slots=True)
class Changes:
    """The changes that one epoch makes for a node's slots, reported in this order except for :attr:`gained_of_lost`.

    Lost slots come first, because a slot that is lost and gained again is in both.

    Attributes:
        epoch: of the new table.
        lost: slots.
        gained: slots.
        changed: slots.
        releasing: slots. They are due later than the others, when the requests that were accepted have ended.
    """

    epoch: Epoch
    lost: tuple[SlotLost, ...] = ()
    gained: tuple[SlotGained, ...] = ()
    changed: tuple[SlotChanged, ...] = ()
    releasing: tuple[SlotReleasing, ...] = ()

    @property
    def gained_of_lost(self) -> tuple[SlotGained, ...]:
        """The gained parts of lost slots; reported before the loss, after which their data may be deleted."""
        lost = {slot.slot_id for slot in self.lost}
        return tuple(slot for slot in self.gained if slot.part_of in lost)

    @property
    def slot_ids(self) -> frozenset[SlotId]:
        """The slots that change."""
        kinds = (self.lost, self.gained, self.changed, self.releasing)
        return frozenset(each.slot_id for kind in kinds for each in kind)

    def apart(self, waits: AbstractSet[SlotId]) -> "tuple[Changes, Changes]":
        """What concerns none of these slots, and the rest. A lost slot stays with the parts that are gained from it."""
        if not waits or waits.isdisjoint(self.slot_ids):
            return self, Changes(self.epoch)
        parts = (slot for slot in self.gained_of_lost if slot.slot_id in waits)
        waits = waits | {slot.part_of for slot in parts if slot.part_of is not None}
        return self._only(lambda slot_id: slot_id not in waits), self._only(lambda slot_id: slot_id in waits)

    def _only(self, is_wanted: Callable[[SlotId], bool]) -> "Changes":
        return Changes(
            self.epoch,
            tuple(each for each in self.lost if is_wanted(each.slot_id)),
            tuple(each for each in self.gained if is_wanted(each.slot_id)),
            tuple(each for each in self.changed if is_wanted(each.slot_id)),
            tuple(each for each in self.releasing if is_wanted(each.slot_id)),
        )


class NodeCallbacks:
    """The user's code: derive from this class and override what is needed.

    Calls for slots are made one at a time, in the order of the epochs. During a call ``NodeAgent.table`` stays at
    the epoch of the call, while the answers to requests go by the newest one: so a call may be about a slot that has
    moved on already, and then a later call says so. Fetch data in threads of your own, because the next call waits for
    this one. It waits for ``HandoffSettings.open_limit_ms``: then the call counts as hung, and later ones for other
    slots are made without it.

    Calls for bundles are made for different bundles at the same time, and one after the other for one bundle, or for it
    and its parts. They may take long; ``HandoffSettings`` says how long they are waited for. The newest table goes on
    meanwhile, as for slots.

    An exception ends the agent: heartbeats stop, and the cluster fences the node.
    """

    def on_slots_lost(self, lost: Sequence[SlotLost]) -> None:
        """Called with slots that this node no longer holds; it has refused their requests since before this call."""

    def on_slots_gained(self, gained: Sequence[SlotGained]) -> None:
        """Called with slots that this node holds from now on; call ``slot_ready`` for each once its data is here.

        A class that does not override this stores nothing by slots: each of them counts as ready at once.

        After a split, the parts of lost slots come in a call of their own, before :meth:`on_slots_lost`.
        """

    def on_slots_changed(self, changed: Sequence[SlotChanged]) -> None:
        """Called with slots that this node still holds, with another leader (perhaps itself) or other followers."""

    def on_slots_releasing(self, releasing: Sequence[SlotReleasing]) -> None:
        """Called with slots that this node has to release: send the next leader what it may not have yet.

        The node accepts nothing for them since before this call, and what it had accepted has ended or was voided. When
        this has returned, the next leader is told to serve. It is told as well if this does not return within
        ``HandoffSettings.release_limit_ms``. :meth:`on_slots_changed` or :meth:`on_slots_lost` says what came of it; a
        slot that stays is served again when :meth:`on_slots_changed` has returned.
        """

    def on_bundle_preparing(self, bundle: Bundle) -> None:
        """Called with a bundle that will be assigned to this node as soon as its owner has released it.

        What can be prepared without being its owner, may be: its clients wait less then. If the bundle does not come,
        :meth:`on_bundle_released` is called.
        """

    def on_bundle_assigned(self, bundle: Bundle, token: FencingToken) -> None:
        """Called with a bundle that this node has to open. It serves the bundle as its owner once this has returned.

        Also called for a bundle that comes back after :meth:`on_bundle_releasing`, perhaps without
        :meth:`on_bundle_released` between, because no other node was seen to own it.

        Args:
            bundle: its row.
            token: opens the bundle: greater than that of any former owner, and not greater than that of later requests.
        """

    def on_bundle_releasing(self, bundle: Bundle) -> None:
        """Called with a bundle that this node has to release: close its topics, and keep the clients.

        It accepts nothing for it since before this call, and what it had accepted has ended or was voided. When this
        has returned, another node is told to open the bundle. It is told as well if this does not return in time.
        """

    def on_bundle_released(self, bundle_id: str, bundle: Bundle | None) -> None:
        """Called after :meth:`on_bundle_releasing`, when it is known what comes of a bundle: send its clients away.

        Args:
            bundle_id: the bundle.
            bundle: its row, which says whom to ask; None if it has ended, or the table names no other node.
        """

    def on_bundle_split(self, parent: Bundle, children: Sequence[Bundle]) -> None:
        """Called with bundles that have taken the place of one that this node owned: refile its topics by their hashes.

        The node serves the children since before this call, and without a gap. A child may belong to another node by
        now; then :meth:`on_bundle_releasing` and :meth:`on_bundle_released` are called for it next.
        """

    def topics_of_bundle(self, bundle: Bundle) -> Sequence[TopicLoad]:  # noqa: ARG002 - for those who override it
        """The topics of a bundle that this node owns and has to split where they, or their load, are divided equally.

        Without topics the bundle stays whole, unless it is split in the middle.
        """
        return ()


def tell(callbacks: NodeCallbacks, changes: Changes) -> None:
    """Make the calls for one epoch's changes of slots, in the order given by :class:`Changes`."""
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
    if changes.releasing:
        callbacks.on_slots_releasing(changes.releasing)
