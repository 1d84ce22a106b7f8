"""Second stage: which of its holders leads each slot, with the fewest changes of leader that exact balance allows."""

from collections.abc import Mapping, Sequence

from controlplane.core.placement.bands import Band, aims

NO_LEADER = -1
_READY, _WARM, _COLD = range(3)


class SlotLeaders:
    """The leader of every slot while it is planned; units to exchange are leaderships.

    What a leader costs, the first of these outweighing all that follow, over the whole table:

    1. A slot whose leader is gone is *bereft*; its heirs are the holders that can take over at once. Anybody else
       would begin with nothing while an heir has the data.
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
        self._members = members
        self._kept = kept
        self._change_cost = 2 * len(members) + 1
        self._costs: list[dict[int, int]] = []
        for holders, leader, held, is_ready in zip(members, kept, before, ready, strict=True):
            heirs = _heirs(holders, held, is_ready) if leader == NO_LEADER else 0
            costs = {}
            for holder in holders:
                if holder == leader:
                    costs[holder] = 0
                    continue
                bereaved = len(members) + 1 if heirs and not heirs >> holder & 1 else 0
                rank = _READY if is_ready >> holder & 1 else _WARM if held >> holder & 1 else _COLD
                costs[holder] = self._change_cost * (1 + bereaved) + rank
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

    def drop_preferences(self) -> None:
        """From now on costs are those that the certificate proves: without the third, in whole changes."""
        for costs in self._costs:
            for holder in costs:
                costs[holder] //= self._change_cost
        self._change_cost = 1

    def all_cheapest(self) -> bool:
        """Whether no slot could have a cheaper leader even without bands."""
        return all(
            costs[leader] == min(costs.values())
            for leader, costs in zip(self.leaders, self._costs, strict=True)
            if leader != NO_LEADER
        )

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


def _heirs(holders: Sequence[int], held: int, is_ready: int) -> int:
    """Of a slot's holders, as a bit set: those that held it before, or if any of these is ready only the ready ones."""
    old = sum(1 << holder for holder in holders) & held
    return old & is_ready or old
