"""Second stage: which of its holders leads each slot, with the fewest changes of leader that exact balance allows."""

from collections.abc import Mapping, Sequence

from controlplane.core.placement.bands import Band, aims

NO_LEADER = -1
_READY, _WARM, _COLD = range(3)


class SlotLeaders:
    """The leader of every slot while it is planned; units to exchange are leaderships.

    A kept leader costs nothing. A change costs more than all preferences together, so the number of changes comes
    first; then a holder that is ready goes before one that held the slot before, and that before one that is new.

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
        self._members = members
        self._kept = kept
        self.change_cost = 2 * len(members) + 1
        self._costs: list[dict[int, int]] = []
        for holders, leader, held, is_ready in zip(members, kept, before, ready, strict=True):
            costs = {}
            for holder in holders:
                if holder == leader:
                    costs[holder] = 0
                elif is_ready >> holder & 1:
                    costs[holder] = self.change_cost + _READY
                else:
                    costs[holder] = self.change_cost + (_WARM if held >> holder & 1 else _COLD)
            self._costs.append(costs)
        self.leaders: list[int] = []
        self.counts = [0] * width
        self._units: list[list[int]] = []

    def choose_cheapest(self, bands: Sequence[Band]) -> None:
        """Give each slot one of its cheapest leaders; kept ones first, then where most is lacking."""
        self.leaders = [NO_LEADER] * len(self._members)
        open_slots = []
        for slot, leader in enumerate(self._kept):
            if leader in self._costs[slot]:
                self._appoint(slot, leader)
            elif self._costs[slot]:
                open_slots.append(slot)
        targets = aims(self.counts, bands, sum(self.counts) + len(open_slots))
        for slot in open_slots:
            costs = self._costs[slot]
            self._appoint(
                slot, min(costs, key=lambda index: (costs[index], self.counts[index] - targets[index], index))
            )

    def _appoint(self, slot: int, leader: int) -> None:
        self.leaders[slot] = leader
        self.counts[leader] += 1

    def changes(self) -> int:
        """How many slots are led by another node than before."""
        return sum(
            costs[leader] // self.change_cost
            for leader, costs in zip(self.leaders, self._costs, strict=True)
            if leader != NO_LEADER
        )

    def forced_changes(self) -> int:
        """How many slots cannot keep their leader, whatever the bands."""
        return sum(min(costs.values()) // self.change_cost for costs in self._costs if costs)

    def count_changes_only(self) -> None:
        """From now on every change costs 1: the problem whose prices the certificate shows."""
        for costs in self._costs:
            for holder in costs:
                costs[holder] //= self.change_cost
        self.change_cost = 1

    def offers(self) -> list[dict[int, int]]:
        """See :class:`controlplane.core.placement.exchange.Exchange`."""
        width = len(self.counts)
        offers: list[dict[int, int]] = [{} for _ in range(width)]
        self._units = [[] for _ in range(width)]
        for slot, leader in enumerate(self.leaders):
            if leader == NO_LEADER:
                continue
            self._units[leader].append(slot)
            costs, offer = self._costs[slot], offers[leader]
            own = costs[leader]
            for holder, cost in costs.items():
                if holder != leader:
                    offer[cost - own] = offer.get(cost - own, 0) | 1 << holder
        return offers

    def units(self, giver: int) -> Sequence[int]:
        """See :class:`controlplane.core.placement.exchange.Exchange`."""
        return self._units[giver]

    def takers(self, giver: int, slot: int, wanted: Mapping[int, int]) -> int:
        """See :class:`controlplane.core.placement.exchange.Exchange`."""
        if self.leaders[slot] != giver:
            return 0
        costs = self._costs[slot]
        own = costs[giver]
        takers = 0
        for holder, cost in costs.items():
            if holder != giver:
                takers |= wanted.get(cost - own, 0) & 1 << holder
        return takers

    def hand_over(self, giver: int, taker: int, slot: int) -> None:
        """See :class:`controlplane.core.placement.exchange.Exchange`."""
        self.leaders[slot] = taker
        self.counts[giver] -= 1
        self.counts[taker] += 1
