"""The load rules against recorded answers of the real broker (org.apache.pulsar:pulsar-broker 4.2.4).

``tests/golden/pulsar/load.jsonl.gz`` holds one case a line: ``op``, what went in, what came out. Lists stand in the
order in which the broker walked its maps, so every sum and every tie has to come out bit for bit.
"""

import gzip
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from controlplane.core.bundles.load.averages import NO_LOAD, BundleAverages, MessageLoad, TimeAverage, node_averages
from controlplane.core.bundles.load.resource_usage import ResourceWeights, percent_usage, weighted_usage
from controlplane.core.bundles.reports import ResourceUsage
from controlplane.core.bundles.splitting.limits import MeasuredBundle, SplitSettings, choose_splits
from tests.conformance.pulsar.numbers import same
from tests.conformance.pulsar.shedding import threshold_shed

VECTORS = Path(__file__).parents[1] / "golden" / "pulsar" / "load.jsonl.gz"
RESOURCES = {
    "cpu": "cpu",
    "mem": "memory",
    "dmem": "direct_memory",
    "bwin": "bandwidth_in",
    "bwout": "bandwidth_out",
}


def cases(operation: str) -> list[Any]:
    """The recorded cases of one operation."""
    with gzip.open(VECTORS, "rt", encoding="utf-8") as lines:
        parsed = [json.loads(line) for line in lines]
    chosen = [pytest.param(case["in"], case["out"], id=case["id"]) for case in parsed if case["op"] == operation]
    assert chosen, f"{VECTORS} holds no case of {operation}"
    return chosen


def load_of(values: list[Any]) -> MessageLoad:
    """Throughput in and out, rate in and out, as recorded."""
    return MessageLoad(*(float(value) for value in values[:4]))


def time_average(values: list[Any], default_samples: int) -> TimeAverage:
    """A recorded average; the number of samples may be left out."""
    count = values[4] if len(values) > 4 else default_samples
    most = values[5] if len(values) > 5 else default_samples
    return TimeAverage(most, min(count, most), load_of(values))


def averages_of(bundle: dict[str, Any]) -> BundleAverages:
    """A recorded bundle's averages; a missing long one equals the short one."""
    return BundleAverages(time_average(bundle["short"], 10), time_average(bundle.get("long", bundle["short"]), 1_000))


def resources_of(broker: dict[str, Any]) -> SimpleNamespace:
    """A recorded broker's resources by our names."""
    return SimpleNamespace(
        **{
            ours: ResourceUsage(*(float(part) for part in broker.get(theirs, (-1, -1))))
            for theirs, ours in RESOURCES.items()
        }
    )


def weights_of(conf: dict[str, Any]) -> ResourceWeights:
    """The resource weights that a configuration means."""
    bandwidth_in = conf.get("loadBalancerBandwidthInResourceWeight", 1.0)
    if bandwidth_in == 1.0:  # the former, misspelt setting counts where the new one has its default
        bandwidth_in = conf.get("loadBalancerBandwithInResourceWeight", 1.0)
    return ResourceWeights(
        cpu=conf.get("loadBalancerCPUResourceWeight", 1.0),
        direct_memory=conf.get("loadBalancerDirectMemoryResourceWeight", 0.0),
        bandwidth_in=bandwidth_in,
        bandwidth_out=conf.get("loadBalancerBandwidthOutResourceWeight", 1.0),
    )


@pytest.mark.parametrize(("given", "expected"), cases("time_average"))
def test_time_average(given: dict[str, Any], expected: list[list[float]]) -> None:
    """Every running mean, also beyond its maximum of samples, has the broker's bits."""
    default = load_of(given.get("default", NO_LOAD))
    average = TimeAverage(given["max"], given.get("num_samples", 0), default)
    answers = [[*average.load, average.sample_count]]
    updates = given.get("updates", len(given["samples"]))
    for update in range(1, updates + 1):
        average = average.add(load_of(given["samples"][(update - 1) % len(given["samples"])]))
        if update % given.get("every", 1) == 0 or update == updates:
            answers.append([*average.load, average.sample_count])
    assert answers == expected


@pytest.mark.parametrize(("given", "expected"), cases("broker_average"))
def test_broker_average(given: dict[str, Any], expected: list[float]) -> None:
    """A node's sums have the broker's bits, unknown bundles counted with the defaults."""
    known = {bundle["name"]: averages_of(bundle) for bundle in given["data"]}
    sums = node_averages(given["bundles"], known)
    assert [*sums.short_term, *sums.long_term] == expected


@pytest.mark.parametrize(("given", "expected"), cases("usage"))
def test_resource_usage(given: dict[str, Any], expected: dict[str, Any]) -> None:
    """Percentages keep the 32-bit rounding, and the weighted maximum ignores memory."""
    node = resources_of(given["broker"])
    percents = {theirs: percent_usage(getattr(node, ours)) for theirs, ours in RESOURCES.items()}
    assert percents == expected["percent"]
    assert weighted_usage(node, weights_of(given["conf"])) == expected["weighted"]


@pytest.mark.parametrize(("given", "expected"), cases("bundle_split"))
def test_split(given: dict[str, Any], expected: dict[str, Any]) -> None:
    """The same bundles are split, at every edge of the thresholds and of the namespace's cap."""
    conf = given["conf"]
    defaults = SplitSettings()
    settings = SplitSettings(
        max_topics=conf.get("loadBalancerNamespaceBundleMaxTopics", defaults.max_topics),
        max_sessions=conf.get("loadBalancerNamespaceBundleMaxSessions", defaults.max_sessions),
        max_message_rate_per_s=conf.get("loadBalancerNamespaceBundleMaxMsgRate", defaults.max_message_rate_per_s),
        max_bandwidth_mib_per_s=conf.get(
            "loadBalancerNamespaceBundleMaxBandwidthMbytes", defaults.max_bandwidth_mib_per_s
        ),
        max_bundles_per_namespace=conf.get("loadBalancerNamespaceMaximumBundles", defaults.max_bundles_per_namespace),
        min_nodes=0,  # the recorded class is asked directly, past the guard that wants two brokers
    )
    known = {bundle["name"]: averages_of(bundle).long_term.load for bundle in given["bundles"]}
    bundles = [
        MeasuredBundle(
            bundle_id=name,
            namespace=name.rpartition("/")[0],
            node_id=broker["name"],
            topic_count=stats.get("topics", 0),
            session_count=stats.get("consumers", 0) + stats.get("producers", 0),
            message_rate_per_s=known[name].message_rate_per_s if name in known else 0.0,
            throughput_bytes_per_s=known[name].throughput_bytes_per_s if name in known else 0.0,
        )
        for broker in given["brokers"]
        for name, stats in broker["stats"].items()
    ]
    counts = {namespace: count for namespace, count in given["bundle_counts"].items() if count is not None}
    choices = choose_splits(bundles, counts, len(given["brokers"]), settings)
    assert {choice.bundle.bundle_id: choice.bundle.node_id for choice in choices} == expected["split"]


@pytest.mark.parametrize(("given", "expected"), cases("threshold_shed"))
def test_threshold_shed(given: dict[str, Any], expected: dict[str, Any]) -> None:
    """Tick by tick the same bundles are given away in the same order, and the smoothed usages have the same bits."""
    assert same(threshold_shed(given), expected)
