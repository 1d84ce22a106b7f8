"""First stage: which nodes hold each slot, with the fewest new replicas that exact balance allows."""

import heapq
import zlib
from collections.abc import Mapping, Sequence

from controlplane.core.identifiers import NodeId
from controlplane.core.placement.bands import Band, aims
from controlplane.core.slot_table import Slot


class ReplicaSets:
    """The holders of every slot while they are planned; units to exchange are replicas, a new one costs 1.

    Nodes are indexes into the sorted names. Where the nodes together cannot hold one replica of each slot, one more
    index, ``nobody``, stands for the absence of a node: a slot may be there at no cost.

    Attributes:
        members: for each slot the indexes of its holders.
        before: for each slot the bit set of its previous holders among the nodes.
        counts: replicas on each node.
    """

    def __init__(self, previous: Sequence[Slot], indexes: Mapping[NodeId, int], nobody: int | None) -> None:
        self.before: list[int] = []
        self.members: list[list[int]] = []
        self._leaders = [-1 if slot.leader is None else indexes.get(slot.leader, -1) for slot in previous]
        for slot in previous:
            holders = [indexes[name] for name in slot.replicas if name in indexes]
            before = 0
            for holder in holders:
                before |= 1 << holder
            self.before.append(before if nobody is None else before | 1 << nobody)
            self.members.append(holders if nobody is None or holders else [nobody])
        width = len(indexes) if nobody is None else len(indexes) + 1
        self._everybody = (1 << width) - 1
        self._now: list[int] = []
        self._units: list[list[int]] = []
        self.counts = [0] * width
        for holders in self.members:
            for holder in holders:
                self.counts[holder] += 1

    def fill(self, names: Sequence[NodeId], replicas_per_slot: int, bands: Sequence[Band]) -> None:
        """Give each slot its number of replicas, keeping all previous ones that it may.

        This costs the least that it could if there were no bands: a slot gets a new replica only if it has kept
        every previous one. The bands are aimed at, and met whenever nothing has to be exchanged.
        """
        targets = aims(self.counts, bands, replicas_per_slot * len(self.members))
        for slot, holders in enumerate(self.members):
            if len(holders) > replicas_per_slot:
                self._drop_most_loaded(slot, replicas_per_slot, targets)
        seeds = [zlib.crc32(name.encode("utf-8", "surrogatepass")) for name in names]
        heap = [
            (count - target, _mixed(seeds[index], count), index)
            for index, (count, target) in enumerate(zip(self.counts, targets, strict=True))
            if index < len(seeds)
        ]
        heapq.heapify(heap)
        for holders in self.members:
            missing = replicas_per_slot - len(holders)
            if missing > 0:
                self._add_least_loaded(holders, missing, heap, seeds)
        self._now = [sum([1 << holder for holder in holders]) for holders in self.members]

    def _drop_most_loaded(self, slot: int, keep: int, targets: Sequence[int]) -> None:
        """Drop replicas that a slot has too many of; its leader stays if that costs nothing."""
        holders = self.members[slot]
        leader = self._leaders[slot]
        ranked = sorted(holders, key=lambda index: (index != leader, self.counts[index] - targets[index], index))
        for dropped in ranked[keep:]:
            self.counts[dropped] -= 1
        self.members[slot] = ranked[:keep]

    def _add_least_loaded(
        self, holders: list[int], missing: int, heap: list[tuple[int, int, int]], seeds: Sequence[int]
    ) -> None:
        """Give a slot its missing replicas on the nodes that lack most, as Ryser's construction does.

        Among equals a hash chooses, so that the slots of one node share their other replicas with many nodes, and
        what the node leaves when it dies is spread.
        """
        taken: list[tuple[int, int, int]] = []
        while missing:
            entry = heapq.heappop(heap)
            index = entry[2]
            if index in holders:
                taken.append(entry)
                continue
            holders.append(index)
            self.counts[index] += 1
            taken.append((entry[0] + 1, _mixed(seeds[index], self.counts[index]), index))
            missing -= 1
        for entry in taken:
            heapq.heappush(heap, entry)

    def offers(self) -> list[dict[int, int]]:
        """See :class:`controlplane.core.placement.exchange.Exchange`."""
        width = len(self.counts)
        regained, level, paid = [0] * width, [0] * width, [0] * width
        followed: list[list[int]] = [[] for _ in range(width)]
        led: list[list[int]] = [[] for _ in range(width)]
        everybody = self._everybody
        for slot, (holders, now, before) in enumerate(zip(self.members, self._now, self.before, strict=True)):
            previous = before & ~now
            strangers = everybody & ~(before | now)
            leader = self._leaders[slot]
            for holder in holders:
                if before >> holder & 1:
                    paid[holder] |= strangers
                    level[holder] |= previous
                else:
                    level[holder] |= strangers
                    regained[holder] |= previous
                (led if holder == leader else followed)[holder].append(slot)
        # A follower goes before a leader: a slot whose leader stays need not change it.
        self._units = [first + then for first, then in zip(followed, led, strict=True)]
        return [{-1: less, 0: same, 1: more} for less, same, more in zip(regained, level, paid, strict=True)]

    def units(self, giver: int) -> Sequence[int]:
        """See :class:`controlplane.core.placement.exchange.Exchange`."""
        return self._units[giver]

    def takers(self, giver: int, slot: int, wanted: Mapping[int, int]) -> int:
        """See :class:`controlplane.core.placement.exchange.Exchange`."""
        now, before = self._now[slot], self.before[slot]
        if not now >> giver & 1:
            return 0
        cost = before >> giver & 1
        strangers = self._everybody & ~(before | now)
        return (before & ~now & wanted.get(cost - 1, 0)) | (strangers & wanted.get(cost, 0))

    def hand_over(self, giver: int, taker: int, slot: int) -> None:
        """See :class:`controlplane.core.placement.exchange.Exchange`."""
        holders = self.members[slot]
        holders[holders.index(giver)] = taker
        self._now[slot] ^= 1 << giver | 1 << taker
        self.counts[giver] -= 1
        self.counts[taker] += 1

    def moved(self) -> int:
        """How many replicas are new."""
        return sum((now & ~before).bit_count() for now, before in zip(self._now, self.before, strict=True))


def _mixed(seed: int, count: int) -> int:
    """A number that looks random and is not: it breaks ties between nodes that lack equally much."""
    return ((seed ^ count * 0x9E3779B1) * 0x85EBCA6B >> 7) & 0xFFFFFFFF
