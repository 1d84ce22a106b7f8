"""Third stage: spreads load over the nodes, if it is known, and preserves what the first two stages have reached.

The load of a slot is borne by its leader. The most loaded node hands slots to others until no node bears more than the
target: first leaderships alone, which moves nothing, then replicas with their leaderships. Nodes stay in their bands,
so most hand-overs exchange a heavy slot for a lighter one.

The stage is a heuristic. The exact problem is NP-hard, even for two nodes and one replica (it is the partition
problem). Each hand-over uses the pair of slots that balances the two nodes best, so each one lowers the greatest load.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from controlplane.core.slots.minimal.bands import Band
from controlplane.core.slots.minimal.contract import LoadGoal
from controlplane.core.slots.minimal.indexed import IndexedProblem
from controlplane.core.slots.minimal.matrices import Numbers, Truths
from controlplane.core.slots.minimal.replicas import SlotLimits

_COLD_NODES_TRIED = 16
"""Number of least loaded nodes to which replicas of a hot node are offered in each step."""
_NOTHING = -1


@dataclass(frozen=True, slots=True)
class LoadReport:
    """The result of the stage.

    Attributes:
        before: the greatest load of a node relative to its fair part, before the stage.
        after: the same after the stage.
        moved: replicas that it moved.
        leader_changes: slots whose leader it changed.
        least_leader_changes: the least number of changes that brings every node to at most the target.
    """

    before: Fraction
    after: Fraction
    moved: int
    leader_changes: int
    least_leader_changes: int


@dataclass(frozen=True, slots=True)
class _HandOver:
    """A heavy slot from the hot node to another one, and possibly a lighter slot back."""

    level: Fraction
    moves: int
    taker: int
    heavy: int
    light: int


class LoadSpreader:
    """The table while its load is spread.

    Attributes:
        holders: matrix of slots by nodes.
        leaders: each slot's leader, negative for none.
    """

    def __init__(
        self,
        asked: IndexedProblem,
        limits: SlotLimits,
        holders: Truths,
        leaders: Numbers,
        bands: tuple[Sequence[Band], Sequence[Band]],
        goal: LoadGoal,
    ) -> None:
        """``bands`` are the bands of replicas and those of leaderships."""
        width = len(asked.nodes)
        self.holders = holders.copy()
        self.leaders = leaders.copy()
        self._began = leaders
        self._limits = limits
        self._bands, self._leader_bands = bands
        self._goal = goal
        self._loads = np.array([goal.loads.get(slot.slot_id, 0) for slot in asked.problem.previous], np.int64)
        self._pinned = None if limits.pinned is None else limits.pinned[:, :width]
        self._led_by_pin = asked.pinned_leaders >= 0
        led = self.leaders >= 0
        self._borne = np.zeros(width, np.int64)
        np.add.at(self._borne, self.leaders[led], self._loads[led])
        weights = [node.weight for node in asked.nodes]
        total = int(self._borne.sum())
        self._fair = [Fraction(total * weight, sum(weights)) for weight in weights]
        self._moved = 0

    def run(self) -> LoadReport:
        """Hand slots over until no node bears more than the target, nothing helps, or the moves are used up."""
        before, least = self._greatest()[0], self._least_changes()
        while (hot := self._greatest())[0] * 100 > self._goal.target_percent:
            best = min(self._possible(hot[1]), default=None, key=self._rank)
            if best is None:
                break
            self._carry_out(hot[1], best)
        changes = int(np.count_nonzero(self.leaders != self._began))
        return LoadReport(before, self._greatest()[0], self._moved, changes, least)

    def _level(self, index: int, borne: int) -> Fraction:
        """A node's load relative to its fair part of the total."""
        return Fraction(borne) / self._fair[index] if self._fair[index] else Fraction(0)

    def _greatest(self) -> tuple[Fraction, int]:
        """The highest level, and the node that has it."""
        levels = ((self._level(index, int(borne)), -index) for index, borne in enumerate(self._borne))
        level, index = max(levels, default=(Fraction(0), 0))
        return level, -index

    def _least_changes(self) -> int:
        """The least number of leader changes: the heaviest slots that cover each node's load above the target."""
        changes = 0
        for index, fair in enumerate(self._fair):
            excess = int(self._borne[index]) - fair * self._goal.target_percent / 100
            own = np.sort(self._loads[self.leaders == index])[::-1].tolist()
            while excess > 0:
                excess -= own[0]
                own = own[1:]
                changes += 1
        return changes

    @staticmethod
    def _rank(hand_over: _HandOver) -> tuple[int, Fraction, int, int, int]:
        return hand_over.moves, hand_over.level, hand_over.taker, hand_over.heavy, hand_over.light

    def _possible(self, hot: int) -> Iterator[_HandOver]:
        """The best hand-over of leaderships to each other node; if there is none at all, the best ones of replicas."""
        free = (self.leaders == hot) & ~self._led_by_pin
        found = False
        others = sorted(
            (index for index in range(len(self._fair)) if index != hot and self._fair[index]),
            key=lambda index: (self._level(index, int(self._borne[index])), index),
        )
        for taker in others:
            back = (self.leaders == taker) & ~self._led_by_pin
            heavy, light = free & self.holders[:, taker], back & self.holders[:, hot]
            best = self._best(hot, taker, heavy, light, moves_each=0)
            if best is not None:
                found = True
                yield best
        if found:
            return
        for taker in others[:_COLD_NODES_TRIED]:
            back = (self.leaders == taker) & ~self._led_by_pin
            heavy, light = free & self._may_replace(hot, taker), back & self._may_replace(taker, hot)
            best = self._best(hot, taker, heavy, light, moves_each=1)
            if best is not None:
                yield best

    def _may_replace(self, giver: int, taker: int) -> Truths:
        """The slots in which ``taker`` could hold the replica of ``giver``."""
        limits = self._limits
        may: Truths = self.holders[:, giver] & ~self.holders[:, taker]
        if limits.eligible is not None:
            may &= limits.eligible[:, taker]
        if self._pinned is not None:
            may &= ~self._pinned[:, giver]
        zones = limits.zones
        if zones is not None and zones.zones[giver] != zones.zones[taker]:
            zone = zones.zones[taker]
            members = np.flatnonzero(zones.zones[: self.holders.shape[1]] == zone)
            may &= np.count_nonzero(self.holders[:, members], axis=1) < zones.most[zone]
        return may

    def _best(self, hot: int, taker: int, heavy: Truths, light: Truths, *, moves_each: int) -> _HandOver | None:
        """The slot to give, and possibly one to take back, that balance the two nodes best; None if nothing helps."""
        givers = np.flatnonzero(heavy)
        givers = givers[np.argsort(self._loads[givers], kind="stable")]
        backs = np.flatnonzero(light)
        backs = backs[np.argsort(self._loads[backs], kind="stable")]
        allowed = self._goal.most_moves - self._moved
        pairs: list[tuple[int, int]] = []
        together = self._fair[hot] + self._fair[taker]
        wanted = (int(self._borne[hot]) * self._fair[taker] - int(self._borne[taker]) * self._fair[hot]) / together
        if self._has_slack(hot, taker, moves_each) and moves_each <= allowed and len(givers):
            pairs += [(int(givers[at]), _NOTHING) for at in _around(self._loads[givers], int(wanted))]
        if len(givers) and len(backs) and 2 * moves_each <= allowed:
            targets = self._loads[givers] - int(wanted)
            places = np.searchsorted(self._loads[backs], targets)
            for shift in (-1, 0):
                at = np.clip(places + shift, 0, len(backs) - 1)
                off = np.abs(self._loads[givers] - self._loads[backs[at]] - int(wanted))
                row = int(off.argmin())
                pairs.append((int(givers[row]), int(backs[at[row]])))
        now = self._level(hot, int(self._borne[hot]))
        best: _HandOver | None = None
        for give, back in pairs:
            amount = int(self._loads[give]) - (int(self._loads[back]) if back != _NOTHING else 0)
            level = max(
                self._level(hot, int(self._borne[hot]) - amount), self._level(taker, int(self._borne[taker]) + amount)
            )
            moves = moves_each * (1 if back == _NOTHING else 2)
            if level < now and (best is None or level < best.level):
                best = _HandOver(level, moves, taker, give, back)
        return best

    def _has_slack(self, giver: int, taker: int, replicas: int) -> bool:
        """Whether the bands allow ``giver`` one leadership and ``replicas`` less, and ``taker`` as many more."""
        led = np.count_nonzero(self.leaders == giver), np.count_nonzero(self.leaders == taker)
        held = np.count_nonzero(self.holders[:, giver]), np.count_nonzero(self.holders[:, taker])
        return bool(
            led[0] > self._leader_bands[giver].least
            and led[1] < self._leader_bands[taker].most
            and held[0] - replicas >= self._bands[giver].least
            and held[1] + replicas <= self._bands[taker].most
        )

    def _carry_out(self, hot: int, hand_over: _HandOver) -> None:
        self._lead(hand_over.heavy, hot, hand_over.taker, move=hand_over.moves > 0)
        if hand_over.light != _NOTHING:
            self._lead(hand_over.light, hand_over.taker, hot, move=hand_over.moves > 0)
        self._moved += hand_over.moves

    def _lead(self, slot: int, giver: int, taker: int, *, move: bool) -> None:
        load = int(self._loads[slot])
        self.leaders[slot] = taker
        self._borne[giver] -= load
        self._borne[taker] += load
        if move:
            self.holders[slot, giver] = False
            self.holders[slot, taker] = True


def _around(ascending: Numbers, wanted: int) -> Sequence[int]:
    """The indexes of the values next to the wanted one."""
    place = int(np.searchsorted(ascending, wanted))
    return sorted({min(max(at, 0), len(ascending) - 1) for at in (place - 1, place)})
