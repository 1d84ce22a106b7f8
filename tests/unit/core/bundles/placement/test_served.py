"""The index of served bundles by node and namespace."""

from dataclasses import replace

from controlplane.core.bundles.load.leader_fold import LeaderLoads
from controlplane.core.bundles.placement.context import modular_context
from controlplane.core.bundles.placement.served import ServedBundles, served_bundles
from controlplane.core.bundles.reports import BundleLoad
from tests.helpers.load_views import bundle_history, loaded_node, traffic


def test_a_bundle_that_is_added_is_one_more() -> None:
    """A strategy that places several bundles of one namespace counts those that it placed before."""
    index = served_bundles({"a": ["t/n/0x00_0x10"]})
    for bundle_id in ("t/n/0x10_0x20", "t/n/0x10_0x20", "t/m/0x00_0x10"):
        index = index.add("a", bundle_id)
    index = index.add("b", "t/n/0x20_0x30")
    assert {node: (index.count(node, "t/n"), index.count(node, "t/m")) for node in "abc"} == {
        "a": (2, 1),
        "b": (1, 0),
        "c": (0, 0),
    }
    assert (*index.namespaces("a"),) == ("t/n", "t/m")
    assert not ServedBundles().namespaces("a")


def test_a_node_serves_what_it_reports_and_what_it_has_not_reported_yet() -> None:
    """Otherwise a second bundle would be placed on a node as if the first had not been."""
    node = loaded_node("a", 10, traffic(1))
    sample = BundleLoad("t/n/0x00_0x10", 0, 0, 0, 0, 0, 0, 0, 0)
    load = replace(node.load, stats={sample.bundle_id: sample})
    node = replace(node, load=load, preallocated={"t/n/0x10_0x20": bundle_history(1)})
    served = modular_context(LeaderLoads({"a": node}), ("a",)).served
    assert served.count("a", "t/n") == 2
