"""The bundles of all nodes that the leader splits (Pulsar's BundleSplitterTask, modular load manager)."""

from collections.abc import Mapping

from controlplane.core.bundles.load.view import LoadView
from controlplane.core.bundles.names import namespace_of
from controlplane.core.bundles.splitting.limits import MeasuredBundle, SplitChoice, SplitSettings, choose_splits


def bundles_to_split(
    view: LoadView, bundle_counts: Mapping[str, int], settings: SplitSettings
) -> tuple[SplitChoice, ...]:
    """The bundles to split, in the order of nodes and of their reports.

    Numbers of topics and sessions are those of the latest report, rates are long-term averages, and a bundle without
    averages has rates of 0. A rate that is not a number exceeds no limit. A bundle that two nodes report takes two
    places below the namespace's greatest number of bundles and is chosen once, at the node that comes last.

    Args:
        view: loads of nodes and bundles.
        bundle_counts: number of bundles by namespace, now. Bundles of other namespaces are not chosen: their number
            could not be read.
        settings: the limits.
    """
    chosen: dict[str, SplitChoice] = {}
    for choice in choose_splits(_measured(view), bundle_counts, len(view.nodes), settings):
        chosen[choice.bundle.bundle_id] = choice
    return tuple(chosen.values())


def _measured(view: LoadView) -> list[MeasuredBundle]:
    measured = []
    for node_id, node in view.nodes.items():
        for bundle_id, latest in node.load.stats.items():
            history = view.bundles.get(bundle_id)
            measured.append(
                MeasuredBundle(
                    bundle_id,
                    namespace_of(bundle_id),
                    node_id,
                    latest.topic_count,
                    latest.consumer_count + latest.producer_count,
                    0.0 if history is None else history.averages.long_term.load.message_rate_per_s,
                    0.0 if history is None else history.averages.long_term.load.throughput_bytes_per_s,
                )
            )
    return measured
