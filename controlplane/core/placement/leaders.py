"""Second stage: which of its holders leads each slot, with the fewest changes of leader that exact balance allows."""

from collections.abc import Mapping, Sequence

from controlplane.core.placement.bands import Band, aims
from controlplane.core.placement.exchange import bits

NO_LEADER = -1


class SlotLeaders:
    """The leader of every slot while it is planned; units to exchange are leaderships.

    What a leader costs, the first of these outweighing all that follow, over the whole table:

    1. A slot whose leader is gone has heirs: the holders that held it before, or if any of these is ready only the
       ready ones. Anybody else would begin with nothing while an heir has the data.
    2. A change of leader.
    3. A new leader that is not known to be ready, and more so one that did not hold the slot before.

    Attributes:
        leaders: for each slot the index of its leader; ``NO_LEADER`` if nobody holds it.
        counts: leaderships of each node.
    """

    def __init__(
        self,
        members: Sequence[Sequence[int]],
        kept: Sequence[int],
        before: Sequence[int],
        ready: Sequence[int],
        width: int,
    ) -> None:
        self._kept = kept
        self._change_cost = 2 * len(members) + 1
        self._groups = [
            self._priced(holders, leader, held, is_ready)
            for holders, leader, held, is_ready in zip(members, kept, before, ready, strict=True)
        ]
        self.leaders = [NO_LEADER] * len(members)
        self._paid = [0] * len(members)
        self.counts = [0] * width
        self._units: list[list[int]] = []

    def _priced(self, holders: Sequence[int], leader: int, held: int, is_ready: int) -> list[tuple[int, int]]:
        """A slot's holders in groups of equal cost as leader, cheapest first: (cost, bit set)."""
        everybody = sum([1 << holder for holder in holders])
        kept = everybody & 1 << leader if leader != NO_LEADER else 0
        others = everybody & ~kept
        heirs = 0
        if leader == NO_LEADER:
            heirs = everybody & held & is_ready or everybody & held
        change, passed_over = self._change_cost, self._change_cost * (2 + len(self._kept))
        ready, warm, cold = others & is_ready, others & held & ~is_ready, others & ~(held | is_ready)
        groups = [(0, kept)]
        for rank, group in enumerate((ready, warm, cold)):
            groups.append((change + rank, group & heirs if heirs else group))
        if heirs:
            groups.extend((passed_over + rank, group & ~heirs) for rank, group in enumerate((ready, warm, cold)))
        return [(cost, group) for cost, group in groups if group]

    def choose_cheapest(self, bands: Sequence[Band]) -> None:
        """Give each slot one of its cheapest leaders; kept ones first, then where most is lacking."""
        open_slots = []
        for slot, groups in enumerate(self._groups):
            if groups and groups[0][0] == 0:
                self._appoint(slot, self._kept[slot])
            elif groups:
                open_slots.append(slot)
        targets = aims(self.counts, bands, sum(self.counts) + len(open_slots))
        for slot in open_slots:
            cost, cheapest = self._groups[slot][0]
            self._paid[slot] = cost
            self._appoint(slot, min(bits(cheapest), key=lambda index: (self.counts[index] - targets[index], index)))

    def _appoint(self, slot: int, leader: int) -> None:
        self.leaders[slot] = leader
        self.counts[leader] += 1

    def drop_preferences(self) -> None:
        """From now on costs are those that the certificate proves: without the third, in whole changes."""
        change = self._change_cost
        self._groups = [[(cost // change, group) for cost, group in groups] for groups in self._groups]
        self._paid = [paid // change for paid in self._paid]
        self._change_cost = 1

    def all_cheapest(self) -> bool:
        """Whether no slot could have a cheaper leader even without bands."""
        return all(not groups or paid == groups[0][0] for paid, groups in zip(self._paid, self._groups, strict=True))

    def offers(self) -> list[dict[int, int]]:
        """See :class:`controlplane.core.placement.exchange.Exchange`."""
        offers: list[dict[int, int]] = [{} for _ in self.counts]
        self._units = [[] for _ in self.counts]
        for slot, (leader, own, groups) in enumerate(zip(self.leaders, self._paid, self._groups, strict=True)):
            if leader == NO_LEADER:
                continue
            self._units[leader].append(slot)
            offer, others = offers[leader], ~(1 << leader)
            for cost, group in groups:
                offer[cost - own] = offer.get(cost - own, 0) | group & others
        return offers

    def units(self, giver: int) -> Sequence[int]:
        """See :class:`controlplane.core.placement.exchange.Exchange`."""
        return self._units[giver]

    def takers(self, giver: int, slot: int, wanted: Mapping[int, int]) -> int:
        """See :class:`controlplane.core.placement.exchange.Exchange`."""
        if self.leaders[slot] != giver:
            return 0
        own = self._paid[slot]
        takers = 0
        for cost, group in self._groups[slot]:
            takers |= wanted.get(cost - own, 0) & group
        return takers

    def hand_over(self, giver: int, taker: int, slot: int) -> None:
        """See :class:`controlplane.core.placement.exchange.Exchange`."""
        self.leaders[slot] = taker
        self._paid[slot] = next(cost for cost, group in self._groups[slot] if group >> taker & 1)
        self.counts[giver] -= 1
        self.counts[taker] += 1
