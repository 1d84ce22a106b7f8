"""Second stage: which of its holders leads each slot, with the fewest changes of leader that balance allows."""

from collections.abc import Sequence

import numpy as np

from controlplane.core.slots.minimal.bands import Band, aims
from controlplane.core.slots.minimal.exchange import IMPOSSIBLE, HandOver
from controlplane.core.slots.minimal.matrices import Numbers, Truths, cells, stable_order

NOBODY = -1


class SlotLeaders:
    """The leaders of all slots while they are planned; the units to exchange are leaderships.

    The cost of a leader has three parts. Each outweighs all that follow, over the whole table:

    1. A leader that is not an heir, if the slot's leader is gone and it has heirs: the holders from before, or only the
       ready ones if there are any. Another node would start without data although an heir has it.
    2. A change of leader.
    3. A new leader that is not known to be ready; more if it did not hold the slot before.

    Attributes:
        leaders: the index of each slot's leader; ``NOBODY`` if the slot has no holder.
        counts: number of leaderships of each node.
    """

    def __init__(self, holders: Truths, kept: Numbers, before: Truths, ready: Truths, pinned: Numbers) -> None:
        """All arguments are by index of slot (and node); ``kept`` and ``pinned`` contain a node, or ``NOBODY``."""
        # The matrix is seats by slots, because numpy is slow along an axis as short as that of seats.
        self._members = _seated(holders)
        self._change_cost = 2 * len(holders) + 1
        self._costs = self._priced(kept, before, ready)
        self._costs[(pinned != NOBODY) & (self._members != pinned)] = IMPOSSIBLE
        self.leaders = np.full(len(holders), NOBODY, np.int64)
        self._seats = np.zeros(len(holders), np.int64)
        self.counts = np.zeros(holders.shape[1], np.int64)
        self._more = self._costs[:, :0]
        self._slots = self._begins = np.zeros(0, np.int64)

    def _priced(self, kept: Numbers, before: Truths, ready: Truths) -> Numbers:
        """The cost of each holder as leader."""
        members = self._members
        slots = np.arange(members.shape[1])
        there = members != NOBODY
        held, is_ready = before[slots, members] & there, ready[slots, members] & there
        keeps = there & (members == kept)
        ready_heirs = held & is_ready
        heirs = (kept == NOBODY) & np.where(ready_heirs.any(axis=0), ready_heirs, held)
        passed_over = heirs.any(axis=0) & ~heirs
        rank = np.where(is_ready, 0, np.where(held, 1, 2))
        costs = np.where(keeps, 0, self._change_cost + rank)
        costs += passed_over * (self._change_cost * (1 + len(slots)))
        return np.where(there, costs, IMPOSSIBLE)

    def choose_cheapest(self, bands: Sequence[Band]) -> None:
        """Give each slot one of its cheapest leaders: the kept one first, then the one on the node that lacks most."""
        if not len(self._members):
            return
        cheapest = self._costs.min(axis=0)
        best = self._costs == cheapest
        led = cheapest < IMPOSSIBLE
        settled = led & (best.sum(axis=0) == 1)
        slots = np.flatnonzero(settled)
        self._seats[slots] = best.argmax(axis=0)[slots]
        self.leaders[slots] = self._members[self._seats[slots], slots]
        self.counts += np.bincount(self.leaders[slots], minlength=len(self.counts))
        counts = self.counts.tolist()
        open_slots = np.flatnonzero(led & ~settled).tolist()
        targets = aims(counts, bands, sum(counts) + len(open_slots))
        for slot in open_slots:
            seats = np.flatnonzero(best[:, slot]).tolist()
            candidates = self._members[seats, slot].tolist()
            chosen = min(range(len(seats)), key=lambda at: (counts[candidates[at]] - targets[candidates[at]], at))
            self._seats[slot], self.leaders[slot] = seats[chosen], candidates[chosen]
            counts[candidates[chosen]] += 1
        self.counts = np.array(counts, np.int64)
        self._compare()

    def drop_preferences(self) -> None:
        """Reduce costs to those that the certificate proves: without the third part, in units of changes."""
        self._costs = np.where(self._costs < IMPOSSIBLE, self._costs // self._change_cost, IMPOSSIBLE)
        self._change_cost = 1
        self._compare()

    def _compare(self) -> None:
        """Compute the additional cost of each slot under each of its other holders."""
        if not len(self._members):
            return
        slots = np.arange(len(self.leaders))
        known = (self._costs < IMPOSSIBLE) & (self.leaders != NOBODY)
        self._more = np.where(known, self._costs - self._costs[self._seats, slots], IMPOSSIBLE)
        self._more[self._seats, slots] = IMPOSSIBLE

    def all_cheapest(self) -> bool:
        """Whether no slot could have a cheaper leader even without bands."""
        led = np.flatnonzero(self.leaders != NOBODY)
        return not len(led) or bool((self._costs[self._seats[led], led] == self._costs.min(axis=0)[led]).all())

    def costs(self) -> Numbers:
        """See :class:`controlplane.core.slots.minimal.exchange.Exchange`."""
        width = len(self.counts)
        self._slots = stable_order(self.leaders + 1, width + 1)
        self._begins = np.searchsorted(self.leaders[self._slots], np.arange(width + 1))
        cheapest = np.full(width * width, IMPOSSIBLE, np.int64)
        first = self.leaders * width
        for members, more in zip(self._members, self._more, strict=True):
            slots = np.flatnonzero(more < IMPOSSIBLE)
            np.minimum.at(cheapest, first[slots] + members[slots], more[slots])
        return cheapest.reshape(width, width)

    def offers(self, giver: int, prices: Numbers) -> tuple[Numbers, Numbers]:
        """See :class:`controlplane.core.slots.minimal.exchange.Exchange`."""
        slots = self._slots[self._begins[giver] : self._begins[giver + 1]]
        members, more = self._members[:, slots].T, self._more[:, slots].T
        rows, seats = cells((more < IMPOSSIBLE) & (more == prices[members]))
        return slots[rows], members[rows, seats]

    def cost(self, hand_over: HandOver) -> int:
        """See :class:`controlplane.core.slots.minimal.exchange.Exchange`."""
        giver, taker, slot = hand_over
        if self.leaders[slot] != giver:
            return IMPOSSIBLE
        return int(self._more[self._seat(slot, taker), slot])

    def carry_out(self, hand_over: HandOver) -> None:
        """See :class:`controlplane.core.slots.minimal.exchange.Exchange`."""
        giver, taker, slot = hand_over
        after = self._seat(slot, taker)
        self.leaders[slot], self._seats[slot] = taker, after
        self.counts[giver] -= 1
        self.counts[taker] += 1
        for seat in range(len(self._members)):
            if self._costs[seat, slot] < IMPOSSIBLE:
                self._more[seat, slot] = self._costs[seat, slot] - self._costs[after, slot]
        self._more[after, slot] = IMPOSSIBLE

    def _seat(self, slot: int, index: int) -> int:
        return next(seat for seat in range(len(self._members)) if self._members[seat, slot] == index)


def _seated(holders: Truths) -> Numbers:
    """Matrix of seats by slots: the indexes of each slot's holders, ascending, padded with ``NOBODY``."""
    rows, indexes = cells(holders)
    counts = np.bincount(rows, minlength=len(holders))
    members = np.full((int(counts.max(initial=0)), len(holders)), NOBODY, np.int64)
    first = np.cumsum(counts) - counts
    members[np.arange(len(rows)) - first[rows], rows] = indexes
    return members
