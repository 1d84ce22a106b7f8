"""Rules for bundles of one's own: a shedder with a limit in messages, and a placement on the node with most room.

A node above the limit gives away its busiest bundles until it is at the limit again, and keeps at least one. A bundle
goes to a node with the most room below the limit. Bundles that were assigned to a node and that it has not reported yet
count there already, so that not everything goes to the same node between two reports.
"""

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from controlplane import ConfigurationError
from controlplane.bundle_rules import (
    BundleRule,
    BundleToPlace,
    Evidence,
    LoadView,
    NodeView,
    RuleKind,
    Selection,
    ShedChoice,
    Shedding,
    ShedReason,
    Skip,
    SkipReason,
    UnloadOutcome,
    knob,
)


@dataclass(frozen=True, slots=True)
class MessageLimit:
    """The limit of a node, in messages per second, in plus out."""

    max_messages_per_s: float = knob("messageLimitPerNode", 50_000.0)

    def __post_init__(self) -> None:
        """Refuse a limit that no node keeps."""
        if not self.max_messages_per_s > 0:
            raise ConfigurationError(f"messageLimitPerNode has to be greater than 0, not {self.max_messages_per_s}")


def messages_of_bundle(view: LoadView, bundle_id: str) -> float:
    """Messages per second of a bundle in its short-term average; 0 if it is unknown or the figure cannot be true."""
    history = view.bundles.get(bundle_id)
    return 0.0 if history is None else plausible(history.averages.short_term.load.message_rate_per_s)


def plausible(rate: float) -> float:
    """The rate, or 0 for one that no working node reports."""
    return rate if 0 <= rate < 1e15 else 0.0


@dataclass(frozen=True, slots=True)
class BusiestFirst:
    """The shedder."""

    settings: MessageLimit = MessageLimit()
    name: str = "BusiestFirst"
    first_memory: None = None

    def shed(self, view: LoadView, memory: None) -> Shedding[None]:
        """The busiest bundles of each node above the limit."""
        limit = self.settings.max_messages_per_s
        choices: list[ShedChoice] = []
        skips: list[Skip] = []
        for node_id, node in view.nodes.items():
            rate = plausible(node.load.traffic.message_rate_per_s)
            if rate <= limit:
                continue
            evidence = (Evidence("messages_per_s", rate, limit),)
            rested = [each for each in node.load.bundles if each in view.bundles and each not in view.recently_unloaded]
            rates = {each: messages_of_bundle(view, each) for each in rested}
            moving, left = list[str](), rate - limit
            for bundle_id in sorted(rates, key=lambda each: (-rates[each], each)):
                if left > 0 and len(moving) + 1 < len(set(node.load.bundles)):
                    moving.append(bundle_id)
                    left -= rates[bundle_id]
            choices += (
                ShedChoice(node_id, each, ShedReason.OVERLOADED, rates[each], rate - limit, evidence) for each in moving
            )
            if not moving:
                skips.append(Skip(SkipReason.NO_BUNDLES, node_id, evidence=evidence))
        return Shedding(tuple(choices), memory, tuple(skips))

    def retain(self, memory: None, active: AbstractSet[str]) -> None:
        """It remembers nothing."""
        del active
        return memory

    def after_unload(self, memory: None, choice: ShedChoice, outcome: UnloadOutcome, now_ms: int) -> None:
        """It remembers nothing: the next view has the bundle among those that were unloaded recently."""
        del choice, outcome, now_ms
        return memory


@dataclass(frozen=True, slots=True)
class MostRoom:
    """The placement."""

    settings: MessageLimit = MessageLimit()
    name: str = "MostRoom"
    first_memory: None = None

    def select(self, bundle: BundleToPlace, candidates: Sequence[str], view: LoadView, memory: None) -> Selection[None]:
        """The candidates with the most room; one that has not reported has none, and is chosen only if all have."""
        del bundle
        room = {each: self._room(view.nodes[each]) for each in candidates if each in view.nodes}
        most = max(room.values(), default=0.0)
        best = tuple(each for each in candidates if room.get(each) == most)
        return Selection(best or tuple(candidates), memory, room, most if best else None)

    def after_pick(self, bundle: BundleToPlace, node_id: str, view: LoadView, memory: None) -> None:
        """It remembers nothing: the bundle is in the next view, among the node's preallocated ones."""
        del bundle, node_id, view
        return memory

    def retain(self, memory: None, active: AbstractSet[str]) -> None:
        """It remembers nothing."""
        del active
        return memory

    def _room(self, node: NodeView) -> float:
        expected = sum(
            plausible(each.averages.short_term.load.message_rate_per_s) for each in node.preallocated.values()
        )
        return self.settings.max_messages_per_s - plausible(node.load.traffic.message_rate_per_s) - expected


BUNDLE_RULES = (
    BundleRule(RuleKind.SHEDDER, BusiestFirst, MessageLimit),
    BundleRule(RuleKind.PLACEMENT, MostRoom, MessageLimit),
)
