"""Operations of the data model: what a node measures and reports, and what the leader makes of it."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from itertools import cycle, islice
from typing import Any, Final

from controlplane.core.bundles.load.averages import (
    NO_LOAD,
    UNSEEN_BUNDLE,
    MessageLoad,
    NodeAverages,
    TimeAverage,
    node_averages,
)
from controlplane.core.bundles.load.leader_fold import FoldSettings, LeaderLoads, fold
from controlplane.core.bundles.load.load_order import by_history, by_stats
from controlplane.core.bundles.load.measured_node import measured, reported
from controlplane.core.bundles.load.report_rule import ReportSettings, need_report
from controlplane.core.bundles.load.resource_usage import (
    ResourceWeights,
    greatest_usage,
    percent_usage,
    weighted_usage,
)
from controlplane.core.bundles.load.smoothed_node import NO_MEASUREMENT, SmoothingSettings, smoothed
from controlplane.core.bundles.load.top_bundles import TopBundlesSettings, partition_sort, top_bundles
from controlplane.core.bundles.load.view import BundleHistory, NodeLoad, NodeView, Resources
from tests.conformance.pulsar.numbers import number
from tests.conformance.pulsar.settings import EXTENSIBLE, composed, settings
from tests.conformance.pulsar.translation import (
    NOW_MS,
    Document,
    bundle_load,
    history,
    isolation_policies,
    node_load,
    resource,
    traffic,
)


def _resources(given: Document) -> Resources:
    return Resources(*(resource(given.get(name)) for name in ("cpu", "mem", "dmem", "bwin", "bwout")))


def _eight(averages: NodeAverages) -> list[float]:
    return [*averages.short_term, *averages.long_term]


def _sampled(average: TimeAverage) -> list[float]:
    return [*average.load, average.sample_count]


def usage(given: Document) -> Document:
    """ResourceUsage.percentUsage and both maxima of LocalBrokerData."""
    load = node_load(given["broker"])
    weights = settings(ResourceWeights, given)
    named = {"cpu": load.cpu, "mem": load.memory, "dmem": load.direct_memory}
    named |= {"bwin": load.bandwidth_in, "bwout": load.bandwidth_out}
    return {
        "percent": {
            name: percent_usage(each, keeps_infinite=weights.keeps_infinite_usage) for name, each in named.items()
        },
        "max": greatest_usage(load, weights),
        "weighted": weighted_usage(load, weights),
    }


def local_update(given: Document) -> list[Document]:
    """LocalBrokerData.update and cleanDeltas."""
    load = NodeLoad("")
    out: list[Document] = []
    for step in given["steps"]:
        if step.get("clean"):
            load = reported(load, 0)
        load = measured(load, _resources(step), (bundle_load(name, each) for name, each in step["stats"].items()))
        out.append(
            {
                **dict(zip(("ti", "to", "ri", "ro"), load.traffic, strict=True)),
                "topics": load.topic_count,
                "num_bundles": load.bundle_count,
                "consumers": load.consumer_count,
                "producers": load.producer_count,
                "bundles": sorted(load.bundles),
                "gains": sorted(load.bundle_gains),
                "losses": sorted(load.bundle_losses),
            }
        )
    return out


def need_update(given: Document) -> Document:
    """ModularLoadManagerImpl.needBrokerDataUpdate."""
    rule = settings(ReportSettings, given)
    last, local = node_load(given["last"]), node_load(given["local"])
    need = need_report(last, local, given["age_ms"], rule)
    return {
        "need": need.needed,
        "rate_change": need.changes.message_rate,
        "throughput_change": need.changes.throughput,
        "bundles_change": need.changes.bundle_count,
        "weighted_last": weighted_usage(last, rule.weights),
        "weighted_local": weighted_usage(local, rule.weights),
    }


def time_average(given: Document) -> list[list[float]]:
    """TimeAverageMessageData."""
    default = MessageLoad(*map(number, given["default"])) if "default" in given else NO_LOAD
    average = TimeAverage(given["max"], given.get("num_samples", 0), default)
    samples = [MessageLoad(*map(number, each)) for each in given["samples"]]
    updates, every = given.get("updates", len(samples)), given.get("every", 1)
    out = [_sampled(average)]
    for done, sample in enumerate(islice(cycle(samples), updates), start=1):
        average = average.add(sample)
        if done % every == 0 or done == updates:
            out.append(_sampled(average))
    return out


def broker_average(given: Document) -> list[float]:
    """TimeAverageBrokerData.reset."""
    known = {each["name"]: history(each).averages for each in given["data"]}
    return _eight(node_averages(given["bundles"], known))


def fold_steps(given: Document) -> Iterator[LeaderLoads]:
    """What the leader knows after each step: nodes report, bundles are preallocated, and the leader folds."""
    loads, rule = LeaderLoads(), settings(FoldSettings, given)
    reports: dict[str, NodeLoad] = {}
    for step in given["steps"]:
        for broker in step.get("brokers", ()):
            reports[broker["name"]] = _reported(reports, broker)
        # The original's map has a node from its first report on, before the fold in which its averages appear.
        loads = replace(loads, nodes={**{name: NodeView(load) for name, load in reports.items()}, **loads.nodes})
        for bundle, name in (step.get("preallocate") or {}).items():
            loads = loads.preallocated(bundle, name, BundleHistory(UNSEEN_BUNDLE))
        for _ in range(step.get("times", 1)):
            loads = fold(loads, reports, rule, owned_by_leader=frozenset(step.get("leader_owned", ()))).loads
        yield loads


def _reported(reports: Mapping[str, NodeLoad], broker: Document) -> NodeLoad:
    """A node's next report, after its former one."""
    stats = (bundle_load(bundle, each) for bundle, each in broker.get("stats", {}).items())
    return measured(reports.get(broker["name"], NodeLoad(broker["name"])), _resources(broker), stats)


def fold_(given: Document) -> list[Document]:
    """ModularLoadManagerImpl.updateBundleData, with quirks A and B."""
    return [
        {
            "bundles": {
                name: [_sampled(each.averages.short_term), _sampled(each.averages.long_term), each.topic_count]
                for name, each in loads.bundles.items()
            },
            "brokers": {
                name: {"avg": _eight(node.averages), "preallocated": sorted(node.preallocated)}
                for name, node in loads.nodes.items()
            },
            "preallocated": loads.node_of_preallocated,
        }
        for loads in fold_steps(given)
    ]


def broker_load_ema(given: Document) -> list[list[float]]:
    """BrokerLoadData.update and clear."""
    node, rule = NO_MEASUREMENT, settings(SmoothingSettings, given, EXTENSIBLE)
    out = []
    for step in given["steps"]:
        node = (
            NO_MEASUREMENT
            if step.get("clear")
            else smoothed(node, _resources(step), traffic(step), (0, 0), rule, NOW_MS)
        )
        out.append([node.greatest_usage, node.smoothed_usage, node.smoothed_bytes_per_s])
    return out


def compare(given: Document) -> list[int]:
    """The compareTo of NamespaceBundleStats and of BundleData."""
    if given["kind"] == "stats":
        near_ties = settings(TopBundlesSettings, given, EXTENSIBLE).near_ties
        return [by_stats([bundle_load("", each) for each in pair], near_ties)(0, 1) for pair in given["pairs"]]
    near_ties = settings(FoldSettings, given).near_ties
    return [by_history([history(each) for each in pair], near_ties)(0, 1) for pair in given["pairs"]]


def partition_sort_(given: Document) -> list[str]:
    """TopKBundles.partitionSort over BundleData."""
    order = by_history([history(each) for each in given["bundles"]], settings(FoldSettings, given).near_ties)
    return [given["bundles"][each]["name"] for each in partition_sort(len(given["bundles"]), given["k"], order)]


def topk(given: Document) -> list[str]:
    """TopKBundles.update."""
    policies = isolation_policies(given.get("policies"))
    chosen = top_bundles(
        [bundle_load(name, each) for name, each in given["stats"].items()],
        settings(TopBundlesSettings, given, EXTENSIBLE, loadBalancerMaxNumberOfBundlesInBundleLoadReport=given["k"]),
        is_isolated=lambda namespace: policies.of(namespace) is not None,
        groups=given.get("groups") or {},
    )
    return [each.bundle_id for each in chosen]


def defaults(given: Document) -> Document:
    """ServiceConfiguration's class defaults, of the knobs that are recorded."""
    return {
        name: _as_recorded(name, value)
        for name, value in composed(given or {}).knobs().items()
        if name not in _NOT_RECORDED
    }


_NOT_RECORDED: Final = frozenset(
    {
        "brokerShutdownTimeoutMs",
        "enablePersistentTopics",
        "enableNonPersistentTopics",
        "zooKeeperSessionTimeoutMillis",
        "zooKeeperOperationTimeoutSeconds",
        "zookeeperSessionExpiredPolicy",
        "nodeFilters",
    }
)
"""The last one is no knob of Pulsar."""


def _as_recorded(name: str, value: object) -> object:
    """A value in the recorded form: a set or a list is a text, and so is an optional value."""
    if name == "loadBalancerOverrideBrokerNicSpeedGbps":
        return "Optional.empty" if value is None else f"Optional[{value}]"
    return f"[{', '.join(map(str, value))}]" if isinstance(value, tuple | frozenset) else value


OPERATIONS: Final[Mapping[str, Callable[[Any], object]]] = {
    "usage": usage,
    "local_update": local_update,
    "need_update": need_update,
    "time_average": time_average,
    "broker_average": broker_average,
    "fold": fold_,
    "broker_load_ema": broker_load_ema,
    "compare": compare,
    "partition_sort": partition_sort_,
    "topk": topk,
    "defaults": defaults,
}
