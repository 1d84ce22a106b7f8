"""Repair of stored loads that cannot be true, which an earlier release may have folded into the tables.

Without it they stay for good: an average that is infinite remains infinite, and one usage of 1e300 percent hides every
other one for hours.
"""

from controlplane.core.bundles.load.averages import UNSEEN_BUNDLE, message_load
from controlplane.core.bundles.load.plausible import (
    GREATEST_USAGE,
    Beyond,
    Implausible,
    beyond,
    implausible_averages,
    implausible_load,
)
from streaming.load_state import BundleState, LoadState, NodeState, implausible_report

SMOOTHED_USAGE = "smoothed_usage"


def repaired(state: LoadState) -> tuple[LoadState, tuple[Implausible, ...]]:
    """The state without what cannot be true, and those figures.

    A bundle's averages begin again with its newest sample; if that cannot be true either, the bundle is forgotten until
    it is reported again. A node whose newest report cannot be true is forgotten likewise. Otherwise a smoothed usage
    that cannot be true begins again with the node's usage.
    """
    bundles: list[BundleState] = []
    nodes: list[NodeState] = []
    found: list[Implausible] = []
    for bundle in state.bundles.values():
        wrong = implausible_averages(bundle.averages)
        sample = message_load(bundle.newest)
        if wrong is not None:
            found.append(Implausible("", bundle.bundle_id, *wrong))
        if wrong is None:
            bundles.append(bundle)
        elif implausible_load(sample) is None:
            bundles.append(bundle._replace(averages=UNSEEN_BUNDLE.add(sample)))
    for node in state.nodes.values():
        in_report, in_usage = implausible_report(node), _implausible_usage(node)
        found += [Implausible(node.node_id, "", *wrong) for wrong in (in_report, in_usage) if wrong is not None]
        if in_report is None:
            nodes.append(node if in_usage is None else node._replace(smoothed_usage=None))
    return (LoadState(bundles, nodes) if found else state), tuple(found)


def _implausible_usage(node: NodeState) -> Beyond | None:
    return None if node.smoothed_usage is None else beyond(SMOOTHED_USAGE, node.smoothed_usage, GREATEST_USAGE)
