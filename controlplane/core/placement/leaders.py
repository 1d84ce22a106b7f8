"""Second stage: which of its holders leads each slot, with the fewest changes of leader that balance allows."""

from collections.abc import Iterator, Sequence

import numpy as np

from controlplane.core.placement.bands import Band, aims
from controlplane.core.placement.exchange import IMPOSSIBLE, HandOver, Numbers, Truths

NOBODY = -1


class SlotLeaders:
    """The leader of every slot while it is planned; units to exchange are leaderships.

    What a leader costs, the first of these outweighing all that follow, over the whole table:

    1. A slot whose leader is gone has heirs: the holders that held it before, or if any of these is ready only the
       ready ones. Anybody else would begin with nothing while an heir has the data.
    2. A change of leader.
    3. A new leader that is not known to be ready, and more so one that did not hold the slot before.

    Attributes:
        leaders: for each slot the index of its leader; ``NOBODY`` if nobody holds it.
        counts: leaderships of each node.
    """

    def __init__(self, holders: Truths, kept: Numbers, before: Truths, ready: Truths, pinned: Numbers) -> None:
        """All by index of slot (and node); ``kept`` and ``pinned`` name a node, or ``NOBODY``."""
        self._members = _padded(holders)
        self._change_cost = 2 * len(holders) + 1
        self._costs = self._priced(kept, before, ready)
        fixed = (pinned != NOBODY)[:, None] & (self._members != pinned[:, None])
        self._costs[fixed] = IMPOSSIBLE
        self.leaders = np.full(len(holders), NOBODY, np.int64)
        self._seats = np.zeros(len(holders), np.int64)
        self.counts = np.zeros(holders.shape[1], np.int64)
        self._slots = self._begins = np.zeros(0, np.int64)
        self._more = self._costs[:0]

    def _priced(self, kept: Numbers, before: Truths, ready: Truths) -> Numbers:
        """What each holder costs as leader."""
        members = self._members
        rows = np.arange(len(members))[:, None]
        there = members != NOBODY
        held, is_ready = before[rows, members] & there, ready[rows, members] & there
        keeps = there & (members == kept[:, None])
        orphaned = (kept == NOBODY)[:, None]
        ready_heirs = held & is_ready
        heirs = orphaned & np.where(ready_heirs.any(axis=1)[:, None], ready_heirs, held)
        passed_over = heirs.any(axis=1)[:, None] & ~heirs
        rank = np.where(is_ready, 0, np.where(held, 1, 2))
        costs = np.where(keeps, 0, self._change_cost + rank)
        costs += passed_over * (self._change_cost * (1 + len(members)))
        return np.where(there, costs, IMPOSSIBLE)

    def choose_cheapest(self, bands: Sequence[Band]) -> None:
        """Give each slot one of its cheapest leaders; kept ones first, then where most is lacking."""
        if not self._members.shape[1]:
            return
        cheapest = self._costs.min(axis=1)
        best = self._costs == cheapest[:, None]
        led = cheapest < IMPOSSIBLE
        settled = led & (best.sum(axis=1) == 1)
        rows = np.flatnonzero(settled)
        self._seats[rows] = best[rows].argmax(axis=1)
        self.leaders[rows] = self._members[rows, self._seats[rows]]
        self.counts += np.bincount(self.leaders[rows], minlength=len(self.counts))
        counts = self.counts.tolist()
        open_slots = np.flatnonzero(led & ~settled).tolist()
        targets = aims(counts, bands, sum(counts) + len(open_slots))
        for slot in open_slots:
            seats = np.flatnonzero(best[slot]).tolist()
            candidates = [int(index) for index in self._members[slot, seats]]
            chosen = min(range(len(seats)), key=lambda at: (counts[candidates[at]] - targets[candidates[at]], at))
            self._seats[slot], self.leaders[slot] = seats[chosen], candidates[chosen]
            counts[candidates[chosen]] += 1
        self.counts = np.array(counts, np.int64)

    def drop_preferences(self) -> None:
        """From now on costs are those that the certificate proves: without the third, in whole changes."""
        self._costs = np.where(self._costs < IMPOSSIBLE, self._costs // self._change_cost, IMPOSSIBLE)
        self._change_cost = 1

    def all_cheapest(self) -> bool:
        """Whether no slot could have a cheaper leader even without bands."""
        led = np.flatnonzero(self.leaders != NOBODY)
        return not len(led) or bool((self._costs[led, self._seats[led]] == self._costs[led].min(axis=1)).all())

    def costs(self) -> Numbers:
        """See :class:`controlplane.core.placement.exchange.Exchange`."""
        width = len(self.counts)
        slots = np.flatnonzero(self.leaders != NOBODY)
        self._slots = slots = slots[np.argsort(self.leaders[slots], kind="stable")]
        self._begins = np.searchsorted(self.leaders[slots], np.arange(width + 1))
        own, rows = self._seats[slots], np.arange(len(slots))
        costs = self._costs[slots]
        more = np.where(costs < IMPOSSIBLE, costs - costs[rows, own][:, None], IMPOSSIBLE)
        more[rows, own] = IMPOSSIBLE
        self._more = more
        cheapest = np.full((width, width), IMPOSSIBLE, np.int64)
        rows, seats = np.nonzero(more < IMPOSSIBLE)
        np.minimum.at(cheapest, (self.leaders[slots[rows]], self._members[slots[rows], seats]), more[rows, seats])
        return cheapest

    def offers(self, giver: int, prices: Numbers) -> Iterator[HandOver]:
        """See :class:`controlplane.core.placement.exchange.Exchange`."""
        own = slice(self._begins[giver], self._begins[giver + 1])
        slots, more = self._slots[own], self._more[own]
        members = self._members[slots]
        rows, seats = np.nonzero((more < IMPOSSIBLE) & (more == prices[members]))
        takers = members[rows, seats]
        for slot, taker in zip(slots[rows].tolist(), takers.tolist(), strict=True):
            yield HandOver(giver, taker, slot)

    def cost(self, hand_over: HandOver) -> int:
        """See :class:`controlplane.core.placement.exchange.Exchange`."""
        giver, taker, slot = hand_over
        if self.leaders[slot] != giver:
            return IMPOSSIBLE
        return int(self._costs[slot, self._seat(slot, taker)] - self._costs[slot, self._seats[slot]])

    def carry_out(self, hand_over: HandOver) -> None:
        """See :class:`controlplane.core.placement.exchange.Exchange`."""
        giver, taker, slot = hand_over
        self.leaders[slot] = taker
        self._seats[slot] = self._seat(slot, taker)
        self.counts[giver] -= 1
        self.counts[taker] += 1

    def _seat(self, slot: int, index: int) -> int:
        return int(np.flatnonzero(self._members[slot] == index)[0])


def _padded(holders: Truths) -> Numbers:
    """For each slot the indexes of its holders, ascending, filled up with ``NOBODY``."""
    counts = np.count_nonzero(holders, axis=1)
    members = np.full((len(holders), int(counts.max(initial=0))), NOBODY, np.int64)
    rows, indexes = np.nonzero(holders)
    first = np.cumsum(counts) - counts
    members[rows, np.arange(len(rows)) - first[rows]] = indexes
    return members
