"""Shedding above an absolute threshold of a node's usage (Pulsar's OverloadShedder)."""

from collections.abc import Callable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Final

from controlplane.core.bundles.load.resource_usage import ResourceWeights, measured_usage
from controlplane.core.bundles.load.view import LoadView, NodeLoad
from controlplane.core.bundles.settings.allowed import NOT_NEGATIVE, THRESHOLD_PERCENT
from controlplane.core.bundles.settings.knobs import knob, refuse_unusable
from controlplane.core.bundles.shedding.contract import (
    Evidence,
    ShedChoice,
    Shedding,
    ShedReason,
    Skip,
    SkipReason,
    UnloadOutcome,
)
from controlplane.core.bundles.shedding.sheddable import (
    SheddableBundles,
    TrafficBundle,
    busiest_first,
    throughput,
    until_target,
)

RULE_NAME: Final = "OverloadShedder"
_MARGIN: Final = 0.05
"""Share of the throughput to shed beyond the excess, so that the node does not end at the threshold again."""


@dataclass(frozen=True, slots=True)
class OverloadSettings:
    """Settings of the rule. The defaults are Pulsar's.

    Attributes:
        threshold_percent: a node sheds from this usage on.
        weights: weights of the resources.
        compares_unweighted_usage: the usage is the greatest of all five resources, heap memory included, whatever the
            weights say (Pulsar 2).
        takes_any_known_bundle: the candidates are all known bundles, those of other nodes and of internal namespaces
            included (Pulsar 2). A quirk: the busiest bundle of the cluster is unloaded wherever it is.
    """

    threshold_percent: float = knob(
        "loadBalancerBrokerOverloadedThresholdPercentage", 85, THRESHOLD_PERCENT, accepted=NOT_NEGATIVE
    )
    weights: ResourceWeights = field(default_factory=ResourceWeights)
    compares_unweighted_usage: bool = False
    takes_any_known_bundle: bool = False

    def __post_init__(self) -> None:
        """Refuse a threshold with which every node or none would count as overloaded.

        Raises:
            ConfigurationError: the threshold is negative or not a number.
        """
        refuse_unusable(self)


@dataclass(frozen=True, slots=True)
class OverloadShedder:
    """Each node whose usage is at or above the threshold sheds its busiest bundles, at least one.

    Their throughput is the node's throughput times the excess of its usage and a margin.
    """

    settings: OverloadSettings = field(default_factory=OverloadSettings)

    @property
    def name(self) -> str:
        """The rule's name."""
        return RULE_NAME

    @property
    def first_memory(self) -> None:
        """The rule remembers nothing."""
        return

    def retain(self, memory: None, active: AbstractSet[str]) -> None:
        """The rule remembers nothing."""

    def after_unload(self, memory: None, choice: ShedChoice, outcome: UnloadOutcome, now_ms: int) -> None:
        """The rule remembers nothing."""

    def usage(self, node: NodeLoad) -> float:
        """The usage that is compared with the threshold; 1.0 means 100 percent."""
        return measured_usage(node, self.settings.weights, unweighted=self.settings.compares_unweighted_usage)

    def shed(self, view: LoadView, memory: None) -> Shedding[None]:
        """The result of one cycle. Choices have the order of the nodes in the view."""
        threshold = self.settings.threshold_percent / 100.0
        candidates = self._candidates(view)
        choices: list[ShedChoice] = []
        skips: list[Skip] = []
        for node_id, node in view.nodes.items():
            usage = self.usage(node.load)
            if usage < threshold:
                continue
            evidence = (Evidence("usage", usage, threshold),)
            bundle_count = len(set(node.load.bundles))
            if bundle_count <= 1:
                reason = SkipReason.SOLE_BUNDLE if bundle_count else SkipReason.NO_BUNDLES
                skips.append(Skip(reason, node_id, evidence=evidence))
                continue
            target = node.load.traffic.throughput_bytes_per_s * (usage - threshold + _MARGIN)
            chosen = until_target(candidates(node.load), target)
            choices += (
                ShedChoice(node_id, each.bundle_id, ShedReason.OVERLOADED, each.traffic, target, evidence)
                for each in chosen
            )
            if not chosen:
                skips.append(Skip(SkipReason.NO_BUNDLES, node_id, evidence=evidence))
        return Shedding(tuple(choices), memory, tuple(skips))

    def _candidates(self, view: LoadView) -> Callable[[NodeLoad], list[TrafficBundle]]:
        if self.settings.takes_any_known_bundle:
            rested = ((name, each) for name, each in view.bundles.items() if name not in view.recently_unloaded)
            every = busiest_first(rested, throughput)
            return lambda _node: every
        sheddable = SheddableBundles(view)
        return lambda node: sheddable.of(node.bundles, throughput)
