"""Seeded histories of a fleet: the living nodes after each event, the same for every placer."""

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

from controlplane.core.slots.minimal.contract import PlacementNode

ZONES: Final = ("a", "b", "c", "d")
_GREATEST_WEIGHT: Final = 3
_ABSENCE_EVENTS: Final = 2
"""How many events a lost zone stays away."""

Fleet: TypeAlias = tuple[PlacementNode, ...]
"""The living nodes, by name."""


@dataclass(frozen=True, slots=True)
class History:
    """A fleet and its history.

    Attributes:
        name: for the output.
        start: before the first event.
        fleets: after each event.
    """

    name: str
    start: Fleet
    fleets: tuple[Fleet, ...]


class _Story:
    """A fleet while its history is generated."""

    def __init__(self, seed: str, node_count: int, *, weighted: bool, zoned: bool) -> None:
        self.random = random.Random(seed)
        self._weighted = weighted
        self._zoned = zoned
        self._started = 0
        self._away: list[PlacementNode] = []
        self._back_in = 0
        self.nodes: list[PlacementNode] = []
        for _ in range(node_count):
            self.join()
        self.fleets = [self._fleet()]

    def tell(self, events: int, choices: Mapping[Callable[[], None], int]) -> None:
        """This number of events, each chosen by its weight. A lost zone comes back after some events."""
        least, most = len(self.nodes) // 2, 3 * len(self.nodes) // 2
        for _ in range(events):
            self._back_in -= 1
            if self._away and self._back_in <= 0:
                self.nodes += self._away
                self._away = []
            else:
                event = self.random.choices(list(choices), list(choices.values()))[0]
                if len(self.nodes) <= least:
                    event = self.join
                elif len(self.nodes) >= most:
                    event = self.leave
                event()
            self.fleets.append(self._fleet())

    def join(self) -> None:
        """A new node, in the zone that has the fewest."""
        sizes = {zone: sum(node.zone == zone for node in self.nodes) for zone in ZONES}
        zone = min(ZONES, key=lambda zone: sizes[zone]) if self._zoned else ""
        weight = self.random.randint(1, _GREATEST_WEIGHT) if self._weighted else 1
        self._started += 1
        self.nodes.append(PlacementNode(f"node-{self._started:03}", weight, 0, zone))

    def leave(self) -> None:
        """Any node."""
        self.nodes.remove(self.random.choice(self.nodes))

    def reweigh(self) -> None:
        """Any node gets another weight."""
        index = self.random.randrange(len(self.nodes))
        node = self.nodes[index]
        others = [weight for weight in range(1, _GREATEST_WEIGHT + 1) if weight != node.weight]
        self.nodes[index] = replace(node, weight=self.random.choice(others))

    def lose_zone(self) -> None:
        """All nodes of a zone leave at once. While a zone is away, a single node leaves instead."""
        if self._away:
            self.leave()
            return
        zone = self.random.choice(ZONES)
        self._away = [node for node in self.nodes if node.zone == zone]
        self.nodes = [node for node in self.nodes if node.zone != zone]
        self._back_in = _ABSENCE_EVENTS

    def _fleet(self) -> Fleet:
        return tuple(sorted(self.nodes, key=lambda node: node.node_id))


def joins_and_leaves(seed: int, node_count: int, events: int) -> History:
    """Nodes of one weight and no zone come and go."""
    story = _Story(f"{seed} joins and leaves", node_count, weighted=False, zoned=False)
    story.tell(events, {story.join: 1, story.leave: 1})
    return History("joins and leaves", story.fleets[0], tuple(story.fleets[1:]))


def weights(seed: int, node_count: int, events: int) -> History:
    """Nodes of weights 1 to 3 come, go, and change their weight."""
    story = _Story(f"{seed} weights", node_count, weighted=True, zoned=False)
    story.tell(events, {story.join: 1, story.leave: 1, story.reweigh: 2})
    return History("weights of 1 to 3 that change", story.fleets[0], tuple(story.fleets[1:]))


def zone_losses(seed: int, node_count: int, events: int) -> History:
    """Nodes of four zones come and go; whole zones go and come back."""
    story = _Story(f"{seed} zones", node_count, weighted=False, zoned=True)
    story.tell(events, {story.join: 1, story.leave: 1, story.lose_zone: 1})
    return History("four zones, lost and back again", story.fleets[0], tuple(story.fleets[1:]))
