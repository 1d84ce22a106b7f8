"""The slots that a node has to release, the requests that it accepted for its slots, and what it has released.

A row that names a next leader tells the slot leader to release the slot: it accepts nothing for it from then on. When
the service was told of the row, and every accepted request has ended or was voided because it took too long, the
service is asked to release it. The slot is released when that call has returned, or was waited for long enough. Not
thread-safe: the book of holdings holds the lock.
"""

import math
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from controlplane.core.slots.reports import ReleasedSlots, runs_of
from controlplane.core.slots.table import Slot
from controlplane.core.values.identifiers import Epoch, SlotId
from controlplane.node.handoff_settings import HandoffSettings

_NEVER: Final = math.inf


@dataclass(eq=False, slots=True)
class AcceptedSlotRequest:
    """A request for a slot that was accepted, until it ends.

    Attributes:
        slot_ids: the slot, and those that were split off from it meanwhile: the key may belong to any of them.
        is_void: whether the right to serve it has ended before it did.
    """

    slot_ids: set[SlotId]
    is_void: bool = False


@dataclass(slots=True)
class _Release:
    """A slot that has to be released.

    Attributes:
        epoch: in which the slot leader was told to.
        since_ms: monotonic time at which it read that.
        is_told: whether the service was told of the row.
        is_asked: whether the service was asked to release the slot.
        is_done: whether it has done so, or was waited for long enough.
    """

    epoch: Epoch
    since_ms: int
    is_told: bool = False
    is_asked: bool = False
    is_done: bool = False


class SlotReleases:
    """The releases of one node's slots.

    Attributes:
        has_news: whether a slot was released that no heartbeat has reported.
        unasked: the slots that the service has to be asked to release, with their release epochs.
    """

    def __init__(self, settings: HandoffSettings) -> None:
        """Begin without any. Requests are voided that last longer than the limit behind a release."""
        self._accepted_limit_ms = settings.accepted_limit_ms
        self._limit_ms = settings.accepted_limit_ms + settings.release_limit_ms
        self._accepted: dict[SlotId, set[AcceptedSlotRequest]] = defaultdict(set)
        self._releases: dict[SlotId, _Release] = {}
        self._reopening: dict[SlotId, Epoch] = {}
        self.unasked: dict[SlotId, Epoch] = {}
        self.has_news = False

    def follow(self, slot: Slot, epoch: Epoch, now_ms: int, *, leads: bool) -> None:
        """Take the row of a slot in the table of an epoch; ``leads`` says whether this process leads it by the row."""
        known = self._releases.get(slot.slot_id)
        if leads and known is not None and known.epoch == slot.release_epoch:
            return
        if known is not None:
            del self._releases[slot.slot_id]
            self.unasked.pop(slot.slot_id, None)
            if known.is_asked:
                self._reopening[slot.slot_id] = epoch
        if not leads:
            self._reopening.pop(slot.slot_id, None)
            self.void(slot.slot_id)
        elif slot.next_leader is not None:
            self._releases[slot.slot_id] = _Release(slot.release_epoch, now_ms)

    def told(self, slot_ids: Iterable[SlotId], epoch: Epoch) -> None:
        """The service was told of the rows of slots in the table of an epoch."""
        for slot_id in slot_ids:
            release = self._releases.get(slot_id)
            if release is not None and release.epoch <= epoch:
                release.is_told = True
                self._look(slot_id, release)
            if self._reopening.get(slot_id, _NEVER) <= epoch:
                del self._reopening[slot_id]

    def ask(self) -> dict[SlotId, Epoch]:
        """The releases that are due; the service is asked for them now."""
        due, self.unasked = self.unasked, {}
        for slot_id in due:
            self._releases[slot_id].is_asked = True
        return due

    def done(self, slot_id: SlotId, release_epoch: Epoch) -> None:
        """The service has released a slot."""
        release = self._releases.get(slot_id)
        if release is not None and release.epoch == release_epoch:
            release.is_done = self.has_news = True

    def is_releasing(self, slot_id: SlotId) -> bool:
        """Whether the node has to release a slot, or has released it and still leads it by the table."""
        return slot_id in self._releases

    def is_reopening(self, slot_id: SlotId) -> bool:
        """Whether the service may still have a slot closed that stays here after all."""
        return slot_id in self._reopening

    def accept(self, slot_id: SlotId) -> AcceptedSlotRequest:
        """Note a request that is accepted. :meth:`leave` has to follow."""
        request = AcceptedSlotRequest({slot_id})
        self._accepted[slot_id].add(request)
        return request

    def split(self, slot_id: SlotId, part: SlotId) -> None:
        """A part was split off from a slot: its release waits for the requests of the whole."""
        for request in self._accepted.get(slot_id, ()):
            request.slot_ids.add(part)
            self._accepted[part].add(request)

    def leave(self, request: AcceptedSlotRequest) -> None:
        """Note the end of a request."""
        for slot_id in request.slot_ids:
            requests = self._accepted.get(slot_id)
            if requests is not None and request in requests:
                requests.discard(request)
                if not requests:
                    del self._accepted[slot_id]
                    release = self._releases.get(slot_id)
                    if release is not None:
                        self._look(slot_id, release)

    def attend(self, now_ms: int) -> int | None:
        """End what releases have waited for long enough; return when to look again, None if not at all."""
        wakes: list[int] = []
        for slot_id, release in self._releases.items():
            if release.is_done:
                continue
            void_at_ms, give_up_at_ms = release.since_ms + self._accepted_limit_ms, release.since_ms + self._limit_ms
            if now_ms >= void_at_ms and slot_id in self._accepted:
                self.void(slot_id)
                self._look(slot_id, release)
            if now_ms >= give_up_at_ms:
                release.is_done = self.has_news = True
                self.unasked.pop(slot_id, None)
            else:
                wakes.append(give_up_at_ms if slot_id not in self._accepted else void_at_ms)
        return min(wakes, default=None)

    def report(self) -> tuple[ReleasedSlots, ...]:
        """What heartbeats say: the slots that are released, until their rows change."""
        self.has_news = False
        by_epoch: dict[Epoch, list[SlotId]] = defaultdict(list)
        for slot_id, release in sorted(self._releases.items()):
            if release.is_done:
                by_epoch[release.epoch].append(slot_id)
        return tuple(ReleasedSlots(epoch, runs_of(slot_ids)) for epoch, slot_ids in sorted(by_epoch.items()))

    def void(self, slot_id: SlotId) -> None:
        """The right to serve a slot has ended before the requests that were accepted under it."""
        for request in self._accepted.pop(slot_id, ()):
            request.is_void = True

    def _look(self, slot_id: SlotId, release: _Release) -> None:
        """Let the service be asked to release a slot, if nothing else is waited for."""
        if release.is_told and not release.is_asked and not release.is_done and slot_id not in self._accepted:
            self.unasked[slot_id] = release.epoch
