"""The slots that a node has to release, the requests that it accepted for its slots, and what it has released.

A row that names a next leader tells the slot leader to release the slot: it accepts nothing for it from then on. The
slot is released when the callbacks for that table have returned and every accepted request has ended, or was voided
because it took too long. Not thread-safe: the book of holdings holds the lock.
"""

from collections import defaultdict
from dataclasses import dataclass

from controlplane.core.slots.reports import ReleasedSlots, runs_of
from controlplane.core.slots.table import Slot
from controlplane.core.values.identifiers import Epoch, SlotId


@dataclass(eq=False, slots=True)
class AcceptedSlotCall:
    """A request for a slot that was accepted, until it ends.

    Attributes:
        slot_ids: the slot, and those that were split off from it meanwhile: the key may belong to any of them.
        is_void: whether the right to serve it has ended before it did.
    """

    slot_ids: set[SlotId]
    is_void: bool = False


@dataclass(slots=True)
class _Release:
    """A slot that has to be released: told in which epoch, since when, and whether the callbacks have returned."""

    epoch: Epoch
    since_ms: int
    is_told: bool = False


class SlotReleases:
    """The releases of one node's slots.

    Attributes:
        has_news: whether a slot was released that no heartbeat has reported.
    """

    def __init__(self, accepted_limit_ms: int) -> None:
        """Begin without any. Requests are voided that last longer than the limit behind a release."""
        self._accepted_limit_ms = accepted_limit_ms
        self._accepted: dict[SlotId, set[AcceptedSlotCall]] = defaultdict(set)
        self._releases: dict[SlotId, _Release] = {}
        self.has_news = False

    def follow(self, slot: Slot, now_ms: int, *, leads: bool) -> None:
        """Take the newest row of a slot; ``leads`` says whether this process leads it by the row."""
        if leads and slot.next_leader is not None:
            known = self._releases.get(slot.slot_id)
            if known is None or known.epoch != slot.release_epoch:
                self._releases[slot.slot_id] = _Release(slot.release_epoch, now_ms)
            return
        self._releases.pop(slot.slot_id, None)
        if not leads:
            self._void(slot.slot_id)

    def told(self, epoch: Epoch) -> None:
        """The callbacks for the table of an epoch, and for those before it, have returned."""
        for slot_id, release in self._releases.items():
            if not release.is_told and release.epoch <= epoch:
                release.is_told = True
                self.has_news |= slot_id not in self._accepted

    def is_releasing(self, slot_id: SlotId) -> bool:
        """Whether the node has to release a slot, or has released it and still leads it by the table."""
        return slot_id in self._releases

    def accept(self, slot_id: SlotId) -> AcceptedSlotCall:
        """Note a request that is accepted. :meth:`leave` has to follow."""
        call = AcceptedSlotCall({slot_id})
        self._accepted[slot_id].add(call)
        return call

    def split(self, slot_id: SlotId, part: SlotId) -> None:
        """A part was split off from a slot: its release waits for the requests of the whole."""
        for call in self._accepted.get(slot_id, ()):
            call.slot_ids.add(part)
            self._accepted[part].add(call)

    def leave(self, call: AcceptedSlotCall) -> None:
        """Note the end of a request."""
        for slot_id in call.slot_ids:
            calls = self._accepted.get(slot_id)
            if calls is not None and call in calls:
                calls.discard(call)
                if not calls:
                    del self._accepted[slot_id]
                    release = self._releases.get(slot_id)
                    self.has_news |= release is not None and release.is_told

    def attend(self, now_ms: int) -> int | None:
        """Void the requests that releases were held up by for long enough; return when to look again, if at all."""
        awaited = [(release, slot_id) for slot_id, release in self._releases.items() if slot_id in self._accepted]
        for release, slot_id in awaited:
            if now_ms >= release.since_ms + self._accepted_limit_ms:
                self._void(slot_id)
                self.has_news |= release.is_told
        left = [release for release, slot_id in awaited if slot_id in self._accepted]
        return min((release.since_ms + self._accepted_limit_ms for release in left), default=None)

    def report(self) -> tuple[ReleasedSlots, ...]:
        """What heartbeats say: the slots that are released, until their rows change."""
        self.has_news = False
        by_epoch: dict[Epoch, list[SlotId]] = defaultdict(list)
        for slot_id, release in sorted(self._releases.items()):
            if release.is_told and slot_id not in self._accepted:
                by_epoch[release.epoch].append(slot_id)
        return tuple(ReleasedSlots(epoch, runs_of(slot_ids)) for epoch, slot_ids in sorted(by_epoch.items()))

    def _void(self, slot_id: SlotId) -> None:
        for call in self._accepted.pop(slot_id, ()):
            call.is_void = True
