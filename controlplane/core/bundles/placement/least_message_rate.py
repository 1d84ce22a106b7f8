"""The strategy that prefers nodes with the least message rate (Pulsar's LeastLongTermMessageRate)."""

import math
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from controlplane.core.bundles.load.plausible import is_plausible_amount
from controlplane.core.bundles.load.resource_usage import ResourceWeights, measured_usage
from controlplane.core.bundles.load.view import LoadView, NodeView
from controlplane.core.bundles.placement.contract import BundleToPlace, MissingLoadError, Selection
from controlplane.core.bundles.settings.allowed import NOT_NEGATIVE, THRESHOLD_PERCENT
from controlplane.core.bundles.settings.knobs import knob, refuse_unusable


@dataclass(frozen=True, slots=True)
class LeastMessageRateSettings:
    """Settings of the strategy.

    Attributes:
        overloaded_percent: a node whose usage is greater is overloaded and chosen only if every candidate is.
        weights: weights of the resources in a node's usage.
        compares_unweighted_usage: the usage is the greatest of all resources, heap memory included, whatever the
            weights say (before Pulsar had weights).
        checks_loads: a candidate without a report, or whose figures are negative, infinite or not a number, counts as
            overloaded. Off is Pulsar's behaviour: a missing report is an error, a score that is not a number is never
            the least, and other figures count as they are.
    """

    overloaded_percent: float = knob(
        "loadBalancerBrokerOverloadedThresholdPercentage", 85, THRESHOLD_PERCENT, accepted=NOT_NEGATIVE
    )
    weights: ResourceWeights = field(default_factory=ResourceWeights)
    compares_unweighted_usage: bool = False
    checks_loads: bool = True

    def __post_init__(self) -> None:
        """Refuse a threshold that no usage can be compared with."""
        refuse_unusable(self)


@dataclass(frozen=True, slots=True)
class LeastMessageRate:
    """Choose the nodes with the least long-term message rate, in plus out, preallocated bundles included.

    A node whose usage exceeds the threshold scores infinity. Where no candidate has a score below infinity, the best
    are those with infinity, thus all of them unless a score is not a number.
    """

    settings: LeastMessageRateSettings = field(default_factory=LeastMessageRateSettings)
    name: str = "LeastLongTermMessageRate"
    first_memory: None = None

    def select(
        self,
        bundle: BundleToPlace,  # noqa: ARG002 - every bundle is placed alike
        candidates: Sequence[str],
        view: LoadView,
        memory: None,
    ) -> Selection[None]:
        """The candidates with the least score, in messages per second.

        Raises:
            MissingLoadError: a candidate has no report, and loads are not checked.
        """
        scores = {node_id: self._score(node_id, view) for node_id in candidates}
        least = min((score for score in scores.values() if not math.isnan(score)), default=None)
        best = tuple(node_id for node_id, score in scores.items() if score == least)
        return Selection(best or tuple(candidates), memory, scores, None if least == math.inf else least)

    def after_pick(self, bundle: BundleToPlace, node_id: str, view: LoadView, memory: None) -> None:  # noqa: ARG002
        """Nothing: the strategy has no memory."""
        return memory

    def retain(self, memory: None, active: AbstractSet[str]) -> None:  # noqa: ARG002
        """Nothing: the strategy has no memory."""
        return memory

    def _score(self, node_id: str, view: LoadView) -> float:
        node = view.nodes.get(node_id)
        if node is None:
            if self.settings.checks_loads:
                return math.inf
            raise MissingLoadError(node_id)
        usage = measured_usage(node.load, self.settings.weights, unweighted=self.settings.compares_unweighted_usage)
        if usage > self.settings.overloaded_percent / 100.0:
            return math.inf
        rate = _message_rate_per_s(node)
        if self.settings.checks_loads and not (is_plausible_amount(usage) and is_plausible_amount(rate)):
            return math.inf
        return rate


def _message_rate_per_s(node: NodeView) -> float:
    preallocated = 0.0
    for bundle in node.preallocated.values():  # not sum(): newer Pythons compensate rounding there
        preallocated += bundle.averages.long_term.load.message_rate_per_s
    return preallocated + node.averages.long_term.message_rate_per_s
