"""What splitting a bundle changes, or why it changes nothing (Pulsar's checkNamespaceBundleSplit)."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import NamedTuple, TypeVar

from controlplane.core.bundles.load.view import LoadView, NodeView
from controlplane.core.bundles.ranges import Boundaries, HashRange
from controlplane.core.bundles.settings.knobs import knob
from controlplane.core.bundles.splitting.contract import SplitRequest
from controlplane.core.bundles.splitting.named_algorithms import SplitAlgorithms
from controlplane.errors import ConfigurationError

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class SplitExecutionSettings:
    """Settings of a split.

    Attributes:
        unloads_children: whether the parts are unloaded, so that other nodes can take them.
        unloads_by_setting_alone: whether the parts are unloaded without asking the policies, as in Pulsar 2.
    """

    unloads_children: bool = knob("loadBalancerAutoUnloadSplitBundlesEnabled", default=True)
    unloads_by_setting_alone: bool = False


class UnloadConsent(NamedTuple):
    """Whether policies let the parts be unloaded from their node.

    Attributes:
        isolation: the isolation policy of the namespace leaves other nodes to choose from.
        anti_affinity: the namespace's anti-affinity group is better off with another node.
    """

    isolation: bool
    anti_affinity: bool


class NoSplitCause(Enum):
    """Why a bundle stays whole."""

    TOO_NARROW = "too_narrow"
    VANISHED = "vanished"
    NO_POSITION = "no_position"
    REFUSED = "refused"


class NoSplit(NamedTuple):
    """A bundle that stays whole.

    Attributes:
        cause: why, as a word.
        reason: why, for people.
    """

    cause: NoSplitCause
    reason: str

    @property
    def forgets_load(self) -> bool:
        """Whether the bundle's averages are dropped: they are as soon as an algorithm is asked, whatever it answers."""
        return self.cause in (NoSplitCause.NO_POSITION, NoSplitCause.REFUSED)


class SplitPlan(NamedTuple):
    """A split to carry out.

    Attributes:
        algorithm: name of the algorithm that chose the positions.
        boundaries: the namespace's boundaries afterwards.
        children: the parts, ascending; at first they belong to the bundle's owner.
        unloads_children: whether the owner gives the parts away.
        reason: why these positions.
    """

    algorithm: str
    boundaries: Boundaries
    children: tuple[HashRange, ...]
    unloads_children: bool
    reason: str

    @property
    def forgets_load(self) -> bool:
        """Whether the bundle's averages are dropped."""
        return True


def plan_split(
    boundaries: Boundaries,
    request: SplitRequest,
    algorithms: SplitAlgorithms,
    algorithm_name: str,
    consent: UnloadConsent,
    settings: SplitExecutionSettings,
) -> SplitPlan | NoSplit:
    """The split of a bundle that the leader's task or an operator named.

    Args:
        boundaries: the namespace's boundaries now, which may have changed since the bundle was reported.
        request: the bundle, and what the algorithm may look at.
        algorithms: the known algorithms.
        algorithm_name: name of the algorithm; the default stands in for an unknown one.
        consent: what the policies say to unloading the parts.
        settings: see there.
    """
    bundle = request.bundle
    if not bundle.can_split:
        return NoSplit(NoSplitCause.TOO_NARROW, f"the bounds of {bundle.name} are neighbours")
    if not boundaries.has(bundle):
        return NoSplit(NoSplitCause.VANISHED, f"the namespace has no bundle {bundle.name} any more")
    algorithm = algorithms.executed(algorithm_name)
    try:
        positions, reason = algorithm.choose(request)
        split = boundaries.split(bundle, len(positions) + 1, positions) if positions else None
    except ConfigurationError as error:
        return NoSplit(NoSplitCause.REFUSED, f"{algorithm.name}: {error}")
    if split is None:
        return NoSplit(NoSplitCause.NO_POSITION, f"{algorithm.name}: {reason}")
    agreed = settings.unloads_by_setting_alone or (consent.isolation and consent.anti_affinity)
    return SplitPlan(
        algorithm.name,
        split.boundaries,
        split.children,
        settings.unloads_children and agreed,
        f"{algorithm.name}: {reason}",
    )


def without_split_bundles(view: LoadView, bundle_ids: Iterable[str], leader_id: str | None) -> LoadView:
    """The view without the averages of bundles whose split was tried, so that the next round does not choose them.

    Args:
        view: the leader's view.
        bundle_ids: the bundles.
        leader_id: the node that the leader itself is, whose own statistics of the bundles are dropped too; None if the
            leader is no node. Statistics of the other nodes stay until their next report.
    """
    gone = frozenset(bundle_ids)
    nodes = view.nodes
    if leader_id is not None and leader_id in nodes:
        nodes = {**nodes, leader_id: _without(nodes[leader_id], gone)}
    return replace(view, nodes=nodes, bundles=_others(view.bundles, gone))


def _without(node: NodeView, gone: frozenset[str]) -> NodeView:
    return replace(node, load=replace(node.load, stats=_others(node.load.stats, gone)))


def _others(values: Mapping[str, T], gone: frozenset[str]) -> dict[str, T]:
    return {name: value for name, value in values.items() if name not in gone}
