"""Bundles and nodes that shedding leaves alone: internal and excluded namespaces, and loads that cannot be true."""

import math
from dataclasses import replace

import pytest

from controlplane.core.bundles.load.averages import BundleAverages, MessageLoad
from controlplane.core.bundles.load.plausible import Implausible, plausible
from controlplane.core.bundles.load.view import UNKNOWN_USAGE, BundleHistory, NodeView
from controlplane.core.bundles.names import serves_health_checks
from controlplane.core.bundles.reports import ResourceUsage
from controlplane.core.bundles.shedding.sheddable import (
    SheddableBundles,
    TrafficBundle,
    throughput,
    until_target,
)
from tests.helpers.load_views import bundle_history, loaded_node, traffic, view_of


@pytest.mark.parametrize(
    ("namespace", "internal"),
    [
        ("pulsar/broker-1.example:8080", True),
        ("sla-monitor/10.0.0.1:8443", True),
        ("pulsar/standalone/broker:8080", False),
        ("sla-monitor/c1/broker:8080", False),
        ("pulsar/::1:8080", False),
        ("pulsar/system", False),
        ("pulsar/broker:", False),
        ("pulsar/broker:80a", False),
        ("pulsar/broker:\N{FULLWIDTH DIGIT EIGHT}", False),
        ("my-pulsar/broker:8080", False),
        ("", False),
    ],
)
def test_internal_namespaces(namespace: str, *, internal: bool) -> None:
    """Only the names of two parts, with a host without a colon and a port of digits."""
    assert serves_health_checks(namespace) is internal


def test_sheddable_bundles_are_known_rested_and_not_internal() -> None:
    """The busiest first; ties in the order of the view; a bundle that a node names twice counts once."""
    bundles = {
        "t/n/c": bundle_history(5),
        "t/n/a": bundle_history(5),
        "t/n/b": bundle_history(9),
        "t/n/recent": bundle_history(9),
        "pulsar/h:1/x": bundle_history(9),
        "t/n/elsewhere": bundle_history(9),
    }
    sheddable = SheddableBundles(view_of(bundles=bundles, recent=frozenset({"t/n/recent"})))
    mine = ["t/n/a", "t/n/unknown", "t/n/b", "pulsar/h:1/x", "t/n/recent", "t/n/c", "t/n/a"]
    assert [each.bundle_id for each in sheddable.of(mine, throughput)] == ["t/n/b", "t/n/c", "t/n/a"]


def test_short_term_decides_which_bundle_is_the_busiest() -> None:
    """A bundle that was busy long ago relieves its node of nothing."""
    averages = BundleAverages(bundle_history(1).averages.short_term, bundle_history(9).averages.long_term)
    bundles = {"t/n/past": BundleHistory(averages), "t/n/now": bundle_history(5)}
    sheddable = SheddableBundles(view_of(bundles=bundles))
    assert [each.bundle_id for each in sheddable.of(bundles, throughput)] == ["t/n/now", "t/n/past"]


def test_nothing_is_taken_beyond_a_target_that_is_reached_exactly() -> None:
    """The first bundle always, the next ones while less than the target is chosen."""
    bundles = [TrafficBundle(str(amount), bundle_history(amount), amount) for amount in (30.0, 20.0, 10.0)]
    assert [len(until_target(bundles, target)) for target in (0.0, 30.0, 30.1, 50.0, 50.1, 99.0)] == [1, 1, 2, 2, 3, 3]


GOOD = loaded_node("good", 50, traffic(10), "t/n/a", "t/n/b")


def broken(**fields: object) -> NodeView:
    """The node with other fields."""
    return NodeView(replace(loaded_node("bad", 50, traffic(10), "t/n/a").load, **fields))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("node", "name"),
    [
        (broken(cpu=ResourceUsage(math.nan, 100.0)), "cpu"),
        (broken(memory=ResourceUsage(-1.0, 100.0)), "memory"),
        (broken(direct_memory=ResourceUsage(1.0, math.nan)), "direct_memory"),
        (broken(bandwidth_in=ResourceUsage(math.inf, 100.0)), "bandwidth_in"),
        (broken(bandwidth_out=ResourceUsage(10_001.0, 100.0)), "bandwidth_out"),
        (broken(bandwidth_out=ResourceUsage(1.0, math.inf)), "bandwidth_out"),
        (broken(traffic=MessageLoad(math.nan, 0.0, 0.0, 0.0)), "throughput_in_bytes_per_s"),
        (broken(traffic=MessageLoad(0.0, -1.0, 0.0, 0.0)), "throughput_out_bytes_per_s"),
        (broken(traffic=MessageLoad(0.0, 0.0, math.inf, 0.0)), "message_rate_in_per_s"),
        (broken(traffic=MessageLoad(0.0, 0.0, 0.0, 1e300)), "message_rate_out_per_s"),
    ],
)
def test_a_node_that_reports_the_impossible_is_left_out(node: NodeView, name: str) -> None:
    """It neither sheds nor counts in a mean; the value is named."""
    view, found = plausible(view_of(GOOD, node, bundles={}))
    assert list(view.nodes) == ["good"]
    assert [(each.node_id, each.bundle_id, each.name) for each in found] == [("bad", "", name)]


def test_unknown_resources_are_plausible() -> None:
    """A resource without a limit is one that the node does not measure."""
    view = view_of(GOOD, broken(cpu=UNKNOWN_USAGE, memory=ResourceUsage(math.nan, 0.0)), bundles={})
    assert plausible(view) == (view, ())


def test_a_bundle_with_impossible_averages_stays_where_it_is() -> None:
    """It is not among the known bundles."""
    bundles = {"t/n/a": bundle_history(math.nan), "t/n/b": bundle_history(3)}
    view, found = plausible(view_of(GOOD, bundles=bundles))
    assert list(view.bundles) == ["t/n/b"]
    assert list(view.nodes) == ["good"]
    ((node_id, bundle_id, name, value, limit),) = found
    assert (node_id, bundle_id, name) == ("", "t/n/a", "throughput_in_bytes_per_s")
    assert (math.isnan(value), limit) == (True, 0.0)
    assert isinstance(found[0], Implausible)


def test_the_long_term_counts_as_well() -> None:
    """A rule that sums it would be as wrong, and for longer."""
    known = bundle_history(3)
    history = replace(known, averages=replace(known.averages, long_term=bundle_history(-1).averages.long_term))
    view, found = plausible(view_of(GOOD, bundles={"t/n/a": history}))
    assert not view.bundles
    assert [each.bundle_id for each in found] == ["t/n/a"]


@pytest.mark.parametrize(
    ("node", "value", "limit"),
    [
        (broken(cpu=ResourceUsage(20_000.0, 2.0)), 20_000.0, 200.0),
        (broken(cpu=ResourceUsage(-1.0, 2.0)), -1.0, 0.0),
        (broken(memory=ResourceUsage(1.0, 2e15)), 2e15, 1e15),
        (broken(traffic=MessageLoad(0.0, 0.0, math.inf, 0.0)), math.inf, 1e15),
    ],
)
def test_what_cannot_be_true_is_named_with_the_bound_that_it_is_beyond(
    node: NodeView, value: float, limit: float
) -> None:
    """An operator who checks the comparison gets the same result."""
    (found,) = plausible(view_of(GOOD, node, bundles={}))[1]
    assert (found.value, found.limit) == (value, limit)
