"""Moves slots from nodes with too much to nodes with too little, a few at a time (DefaultSlotBalancer).

There are five stages; the first that moves anything ends the tick. Within a stage the counts by which nodes are sorted
are current, but the lists of nodes with too much are those of the beginning of a pass. A pass may therefore overshoot
its limit.
"""

from collections.abc import Callable, Collection, Iterable
from typing import TypeAlias

from controlplane.core.slots.sofa.balance_numbers import BalanceNumbers, ceiling_mean
from controlplane.core.slots.sofa.builder import (
    NodeOrder,
    NodeView,
    SlotTableBuilder,
    least_followers_first,
    least_leaders_first,
    most_followers_first,
    most_leaders_first,
)
from controlplane.core.slots.sofa.java_collections import JavaMap, copied_set, tree_set
from controlplane.core.slots.sofa.leader_only import balance_leaders_only
from controlplane.core.slots.sofa.refusals import NothingToArrangeError
from controlplane.core.slots.sofa.table import SofaTable


def balance(builder: SlotTableBuilder, nodes: Collection[str], numbers: BalanceNumbers) -> SofaTable | None:
    """One tick's moves; None if nothing has to move.

    Raises:
        NothingToArrangeError: there are no nodes.
        UnassignedSlotError: something moved while a slot had no leader.
    """
    if not nodes:
        raise NothingToArrangeError("there are no nodes to balance slots over")
    current = tree_set(nodes)
    if builder.replicas < 2:  # noqa: PLR2004 - with one replica there is no follower to move
        return balance_leaders_only(builder, current, numbers)
    balancer = _Balancer(builder, current, numbers)
    stages: tuple[Callable[[], bool], ...] = (
        balancer.upgrade_high_leaders,
        balancer.migrate_high_leaders,
        balancer.balance_high_followers,
        balancer.balance_low_followers,
        balancer.balance_low_leaders,
    )
    if not any(stage() for stage in stages):
        return None
    builder.mint_epoch()
    return builder.build()


_NewLeader: TypeAlias = tuple[int, str]
"""A slot and its new leader."""
_NewFollower: TypeAlias = tuple[int, str, str]
"""A slot, the follower that gives it up, and the node that follows instead."""


class _Balancer:
    """The stages; each returns whether it moved anything."""

    def __init__(self, builder: SlotTableBuilder, current: list[str], numbers: BalanceNumbers) -> None:
        self._builder = builder
        self._current = current
        self._numbers = numbers
        followers = builder.slot_count * (builder.replicas - 1)
        self._high_leaders = numbers.high(ceiling_mean(builder.slot_count, len(current)))
        self._low_leaders = numbers.low(builder.slot_count // len(current))
        self._high_followers = numbers.high(ceiling_mean(followers, len(current)))
        self._low_followers = numbers.low(followers // len(current))

    def upgrade_high_leaders(self) -> bool:
        """Each node that leads too many slots hands the lowest one to the follower that leads least."""
        high = self._high_leaders
        return self._move_leaders(
            lambda: (self._leading_beyond(high), _names(self._leading_beyond(high - 1))), self._upgrade
        )

    def _upgrade(self, view: NodeView, full: set[str]) -> _NewLeader | None:
        heirs = self._slots_by_follower(view, full)
        if not len(heirs):
            return None
        heir = self._first(heirs, least_leaders_first)
        return heirs[heir][0], heir

    def migrate_high_leaders(self) -> bool:
        """Give a slot another follower, to be upgraded by a later tick, if no follower of a high leader has room."""
        moved = 0
        while moved < self._numbers.max_follower_moves:
            high = self._leading_beyond(self._high_leaders)
            if not high:
                return False
            full = _names(self._leading_beyond(self._high_leaders - 1))
            fresh: set[str] = set()
            for view in high:
                found = self._migration(view, full, fresh)
                if found is not None:
                    self._builder.move_follower(*found)
                    fresh.add(found[2])
                    moved += 1
            if not fresh:
                break
        return moved > 0

    def _migration(self, view: NodeView, full: set[str], fresh: set[str]) -> _NewFollower | None:
        given = self._slots_by_follower(view, fresh)
        takers = self._candidates(self._current, full, least_leaders_first)
        for giver in sorted(given, key=lambda name: most_followers_first(self._builder.view(name))):
            for slot_id in given[giver]:
                for taker in takers:
                    if taker != giver and not self._builder.slots[slot_id].follows(taker):
                        return slot_id, giver, taker
        return None

    def balance_high_followers(self) -> bool:
        """Each node that follows too many slots hands over the lowest one that another node can follow."""
        return self._move_followers(self._gift)

    def _gift(self) -> _NewFollower | None:
        full = _names(self._following_beyond(self._high_followers - 1))
        for view in self._following_beyond(self._high_followers):
            takers = self._candidates(self._current, full, least_followers_first)
            for slot_id in sorted(view.follows):
                for taker in takers:
                    if not self._holds(taker, slot_id):
                        return slot_id, view.name, taker
        return None

    def balance_low_followers(self) -> bool:
        """Each node that follows too few slots takes the lowest one that it can from the node that follows most."""
        return self._move_followers(self._taking)

    def _taking(self) -> _NewFollower | None:
        poor = _names(self._following_below(self._low_followers + 1))
        for view in self._following_below(self._low_followers):
            for giver in self._candidates(self._current, poor, most_followers_first):
                for slot_id in sorted(self._builder.view(giver).follows):
                    if not self._holds(view.name, slot_id):
                        return slot_id, giver, view.name
        return None

    def balance_low_leaders(self) -> bool:
        """Each node that leads too few slots takes over the lowest one that it follows of the greatest leader."""
        low = self._low_leaders
        return self._move_leaders(
            lambda: (self._leading_below(low), _names(self._leading_below(low + 1))), self._take_over
        )

    def _take_over(self, view: NodeView, poor: set[str]) -> _NewLeader | None:
        givers: JavaMap[str, list[int]] = JavaMap()
        for slot_id in sorted(view.follows):
            leader = self._builder.slots[slot_id].leader
            if leader is not None and leader not in poor:
                givers.compute_if_absent(leader, list).append(slot_id)
        if not len(givers):
            return None
        return givers[self._first(givers, most_leaders_first)][0], view.name

    def _move_leaders(
        self,
        look: Callable[[], tuple[list[NodeView], set[str]]],
        choose: Callable[[NodeView, set[str]], _NewLeader | None],
    ) -> bool:
        """Run passes over the nodes in need, until the limit is reached or no node can be helped.

        Args:
            look: the nodes in need, and those that must not take part on the other side, at the beginning of a pass.
            choose: a slot that helps one of them, with its new leader.
        """
        moved = 0
        stuck: set[str] = set()
        while moved < self._numbers.max_leader_moves:
            in_need, excluded = look()
            if stuck.issuperset(view.name for view in in_need):
                break
            for view in in_need:
                found = None if view.name in stuck else choose(view, excluded)
                if found is None:
                    stuck.add(view.name)
                else:
                    self._builder.replace_leader(*found)
                    moved += 1
        return moved > 0

    def _move_followers(self, choose: Callable[[], _NewFollower | None]) -> bool:
        """Make one move and examine everything again, until the limit is reached or nothing helps."""
        moved = 0
        while moved < self._numbers.max_follower_moves and (found := choose()) is not None:
            self._builder.move_follower(*found)
            moved += 1
        return moved > 0

    def _slots_by_follower(self, view: NodeView, excluded: set[str]) -> JavaMap[str, list[int]]:
        """For each follower of the slots that a node leads: these slots, ascending."""
        found: JavaMap[str, list[int]] = JavaMap()
        for slot_id in sorted(view.leads):
            for follower in self._candidates(self._builder.slots[slot_id].followers, excluded, None):
                found.compute_if_absent(follower, list).append(slot_id)
        return found

    def _candidates(self, names: list[str], excluded: set[str], order: NodeOrder | None) -> list[str]:
        found = [name for name in copied_set(names) if name not in excluded]
        return found if order is None else sorted(found, key=lambda name: order(self._builder.view(name)))

    def _first(self, names: Iterable[str], order: NodeOrder) -> str:
        return min(names, key=lambda name: order(self._builder.view(name)))

    def _holds(self, node: str, slot_id: int) -> bool:
        slot = self._builder.slots[slot_id]
        return slot.leader == node or slot.follows(node)

    def _leading_beyond(self, count: int) -> list[NodeView]:
        return self._builder.views_where(lambda view: len(view.leads) > count, most_leaders_first)

    def _leading_below(self, count: int) -> list[NodeView]:
        return self._builder.views_where(lambda view: len(view.leads) < count, least_leaders_first)

    def _following_beyond(self, count: int) -> list[NodeView]:
        return self._builder.views_where(lambda view: len(view.follows) > count, most_followers_first)

    def _following_below(self, count: int) -> list[NodeView]:
        return self._builder.views_where(lambda view: len(view.follows) < count, least_followers_first)


def _names(views: list[NodeView]) -> set[str]:
    return {view.name for view in views}
