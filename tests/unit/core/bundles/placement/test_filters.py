"""Filters by topics, versions, load manager and anti-affinity, where the two load managers differ or fail."""

from itertools import pairwise

import pytest

from controlplane.core.bundles.load.averages import UNSEEN_BUNDLE
from controlplane.core.bundles.load.leader_fold import LeaderLoads
from controlplane.core.bundles.load.stored_load import StoredLoad
from controlplane.core.bundles.load.view import BundleHistory, NodeLoad, NodeView
from controlplane.core.bundles.placement.anti_affinity import AntiAffinityFilter, allows_unload, group_of
from controlplane.core.bundles.placement.context import (
    ExtensibleContext,
    ModularContext,
    PlacementPolicies,
    RegisteredNode,
    modular_context,
)
from controlplane.core.bundles.placement.contract import BundleToPlace, Dropped
from controlplane.core.bundles.placement.filters import EvenDistributionFilter, ManagerFilter, TopicCountFilter
from controlplane.core.bundles.placement.served import served_bundles
from controlplane.core.bundles.placement.version import (
    VersionFilter,
    compare_builds,
    compare_releases,
    parse_version,
)

BUNDLE = BundleToPlace("t/n/0x00000000_0xffffffff", BundleHistory(UNSEEN_BUNDLE))
ASCENDING = (
    "1.0.0-alpha",
    "1.0.0-alpha.1",
    "1.0.0-beta",
    "1.0.0-beta.2",
    "1.0.0-beta.11",
    "1.0.0-rc.1",
    "1.0.0",
    "1.0.0+1",
    "1.0.0+1.a",
    "1.0.0+2",
    "1.0.1-x",
    "1.0.10",
    "1.1.0",
    "2.0.0",
)


def with_versions(*versions: str) -> ExtensibleContext:
    """Nodes 0, 1, ... with these versions."""
    return ExtensibleContext({str(index): RegisteredNode(each, "m") for index, each in enumerate(versions)})


def test_topic_limit_is_inclusive_for_the_modular_manager_alone() -> None:
    """Exactly as many topics as allowed: the modular filter keeps the node, the extensible one drops it."""
    context = ExtensibleContext({}, {"a": StoredLoad(0.1, 99), "b": StoredLoad(0.1, 100), "c": StoredLoad(0.1, 101)})
    names = ("a", "b", "c", "without-load")
    assert TopicCountFilter(100).keep(BUNDLE, names, context).kept == ("a", "b", "without-load")
    extensible = TopicCountFilter(100, drops_at_limit=True, keeps_all_if_none=False)
    found = extensible.keep(BUNDLE, names, context)
    assert found.kept == ("a", "without-load")
    assert found.dropped == (Dropped("b", 100, 100), Dropped("c", 101, 100))


def test_only_the_modular_manager_keeps_all_if_no_node_has_few_topics() -> None:
    """An overfull node is better than none, says the modular filter; the extensible one leaves nobody."""
    context = ExtensibleContext({}, {"a": StoredLoad(0.1, 7), "b": StoredLoad(0.1, 9)})
    assert TopicCountFilter(5).keep(BUNDLE, ("a", "b"), context).kept == ("a", "b")
    assert TopicCountFilter(5, keeps_all_if_none=False).keep(BUNDLE, ("a", "b"), context).kept == ()


def test_preallocated_topics_count() -> None:
    """Bundles on their way to a node will bring their topics."""
    coming = {"t/n/1": BundleHistory(UNSEEN_BUNDLE, topic_count=3)}
    nodes = {
        "a": NodeView(NodeLoad("a", topic_count=8), preallocated=coming),
        "b": NodeView(NodeLoad("b", topic_count=8)),
    }
    assert TopicCountFilter(10).keep(BUNDLE, ("a", "b"), modular_context(LeaderLoads(nodes), ())).kept == ("b",)


def test_load_manager_of_an_unknown_node_is_no_reason_to_drop_it() -> None:
    """The modular filter walks over loads, so a node without one stays; a registered node without a name goes."""
    nodes = {"a": NodeView(NodeLoad("a", manager="x")), "b": NodeView(NodeLoad("b", manager="y"))}
    found = ManagerFilter("x").keep(BUNDLE, ("a", "b", "c"), modular_context(LeaderLoads(nodes), ()))
    assert found.kept == ("a", "c")
    assert found.dropped == (Dropped("b", "y", "x"),)
    registered = ExtensibleContext({"a": RegisteredNode("1.0.0", ""), "b": RegisteredNode("1.0.0", "x")})
    assert ManagerFilter("x").keep(BUNDLE, ("a", "b"), registered).kept == ("b",)


def test_versions_are_ordered_by_release_then_build() -> None:
    """Numbers count as numbers, a pre-release comes before its release, a build after it."""
    versions = [version for text in ASCENDING if (version := parse_version(text)) is not None]
    assert len(versions) == len(ASCENDING)
    for earlier, later in pairwise(versions):
        assert compare_builds(earlier, later) < 0 < compare_builds(later, earlier)
        assert compare_builds(earlier, earlier) == 0
        same_release = earlier[:2] == later[:2]
        assert (compare_releases(earlier, later) == 0) is same_release


@pytest.mark.parametrize(
    "text", ["", "1", "1.2", "1.2.3.4", "01.2.3", "1.2.3-", "1.2.3-01", "1.2.3+", "v1.2.3", "1.2.3 ", "1.2.2147483648"]
)
def test_text_that_is_no_semantic_version_fails_the_filter(text: str) -> None:
    """A filter that guessed could drop every good node."""
    assert parse_version(text) is None
    found = VersionFilter().keep(BUNDLE, ("0", "1"), with_versions("1.0.0", text))
    assert found.failure is not None
    assert "node 1" in found.failure
    assert found.kept == ("0", "1")


def test_builds_of_the_latest_version_are_all_kept() -> None:
    """Builds are looked at to find the latest version, and not when nodes are compared with it."""
    found = VersionFilter().keep(BUNDLE, ("0", "1", "2", "3"), with_versions("1.1.0", "1.1.0+9", "1.0.9", "1.1.0-rc"))
    assert found.kept == ("0", "1")
    assert found.dropped == (Dropped("2", "1.0.9", "1.1.0+9"), Dropped("3", "1.1.0-rc", "1.1.0+9"))


def test_version_of_an_unknown_node_and_of_nobody_fails_the_filter() -> None:
    """Nothing is known, so nothing can be the latest."""
    assert VersionFilter().keep(BUNDLE, ("0", "x"), with_versions("1.0.0")).failure is not None
    assert VersionFilter().keep(BUNDLE, (), with_versions("1.0.0")).failure is not None


def test_even_distribution_keeps_the_least_of_this_namespace() -> None:
    """Bundles of other namespaces do not count, and the evidence names both counts."""
    served = served_bundles({"a": ["t/n/1", "t/n/2"], "b": ["t/n/3"], "c": ["t/m/1", "t/n/4", "t/m/2"]})
    context = ModularContext(LeaderLoads(), (), served)
    found = EvenDistributionFilter().keep(BUNDLE, ("a", "b", "c"), context)
    assert found.kept == ("b", "c")
    assert found.dropped == (Dropped("a", 2, 1),)
    assert EvenDistributionFilter().keep(BUNDLE, ("a", "b", "new"), context).kept == ("new",)


def test_managers_count_groups_differently() -> None:
    """A namespace with two bundles counts once for the modular manager and twice for the extensible one."""
    rules = PlacementPolicies(groups={"t/n": "g", "t/m": "G", "t/k": "g"})
    modular = ModularContext(
        LeaderLoads(), (), served_bundles({"a": ["t/m/1", "t/m/2"], "b": ["t/m/3", "t/k/1"]}), rules
    )
    assert AntiAffinityFilter().keep(BUNDLE, ("a", "b"), modular).kept == ("a",)
    owners = {"t/m/1": "a", "t/m/2": "a", "t/m/4": "a", "t/m/3": "b", "t/k/1": "b"}
    extensible = ExtensibleContext({}, {}, owners, rules)
    assert AntiAffinityFilter().keep(BUNDLE, ("a", "b"), extensible).kept == ("b",)


def test_domains_are_compared_before_nodes_and_only_if_asked() -> None:
    """The idle node of a busy domain loses against the node of an idle domain; nodes without a domain share one."""
    rules = PlacementPolicies(groups={"t/n": "g", "t/m": "g", "t/k": "g"}, domains={"a": "east", "b": "east"})
    context = ModularContext(LeaderLoads(), (), served_bundles({"a": ["t/m/1", "t/k/1"], "c": ["t/m/2"]}), rules)
    assert AntiAffinityFilter().keep(BUNDLE, ("a", "b", "c"), context).kept == ("b",)
    found = AntiAffinityFilter(uses_domains=True).keep(BUNDLE, ("a", "b", "c"), context)
    assert found.kept == ("c",)
    assert found.dropped == (Dropped("a", 2, 1), Dropped("b", 2, 1))
    assert AntiAffinityFilter(uses_domains=True).keep(BUNDLE, ("a", "b", "c", "d"), context).kept == ("d",)


@pytest.mark.parametrize("blank", ["", " ", "\t\n"])
def test_blank_group_is_no_group(blank: str) -> None:
    """Operators clear a group by writing nothing into it."""
    assert group_of("t/n", {"t/n": blank, "t/m": blank}) is None
    assert group_of("t/x", {"t/m": "g"}) is None
    assert group_of("t/n", {"t/n": "Grün", "t/m": "gRÜN", "t/k": "grun"}) == frozenset({"t/n", "t/m"})


@pytest.mark.parametrize(
    ("counts", "current", "candidates", "expected"),
    [
        (None, "a", ("a", "b"), True),
        ({}, "a", ("a", "b"), True),
        ({"a": 1}, "a", ("a", "b"), True),
        ({"a": 2, "b": 1}, "a", ("a", "b"), True),
        ({"a": 1, "b": 1}, "a", ("a", "b"), False),
        ({"a": 1, "b": 2}, "a", ("a", "b"), True),
        ({"a": 3, "b": 1, "c": 1}, "a", ("b", "c"), False),
        ({"a": 1}, "a", (), False),
        ({"gone": 1}, "a", ("a", "b"), True),
    ],
)
def test_unload_is_refused_only_if_no_move_can_help(
    counts: dict[str, int] | None, current: str, candidates: tuple[str, ...], expected: bool
) -> None:
    """Every candidate serves as much of the group, at least something, as the current node."""
    assert allows_unload(counts, current, candidates) is expected
