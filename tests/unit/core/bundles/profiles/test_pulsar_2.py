"""What the profile of Pulsar 2 decides otherwise than that of Pulsar 4.2, difference by difference."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from controlplane.core.bundles.load.averages import UNSEEN_BUNDLE
from controlplane.core.bundles.load.leader_fold import FoldSettings, LeaderLoads, fold
from controlplane.core.bundles.load.report_rule import ReportSettings, need_report
from controlplane.core.bundles.load.view import BundleHistory, LoadView, NodeLoad, NodeView
from controlplane.core.bundles.names import check_namespace_name
from controlplane.core.bundles.placement.context import PlacementPolicies, modular_context
from controlplane.core.bundles.placement.contract import BundleToPlace
from controlplane.core.bundles.placement.isolation import IsolationPolicies, IsolationPolicy
from controlplane.core.bundles.placement.modular import ModularPlacement, ModularPlacementSettings
from controlplane.core.bundles.placement.shed_checks import ShedCheckSettings, UnloadChecks
from controlplane.core.bundles.profiles.chosen_rules import chosen_rules
from controlplane.core.bundles.profiles.composition import Composition, compose
from controlplane.core.bundles.profiles.values import PULSAR_2_MODULAR, PULSAR_4_2_MODULAR
from controlplane.core.bundles.ranges import HashRange, equal_boundaries
from controlplane.core.bundles.reports import BundleLoad, ResourceUsage
from controlplane.core.bundles.settings.manager_settings import NamespaceSettings
from controlplane.core.bundles.splitting.contract import SplitRequest
from controlplane.core.bundles.splitting.execution import SplitExecutionSettings, SplitPlan, UnloadConsent, plan_split
from controlplane.core.bundles.splitting.leader_task import bundles_to_split
from controlplane.core.bundles.splitting.limits import SplitSettings
from controlplane.errors import ConfigurationError
from tests.helpers.load_views import bundle_history, loaded_node, traffic, view_of

OLD, NEW = compose(PULSAR_2_MODULAR), compose(PULSAR_4_2_MODULAR)
OVERLOADED: Mapping[str, object] = {"loadBalancerLoadSheddingStrategy": "OverloadShedder"}
DRAWS = (0.0, 0.0)


def sample(bundle_id: str, topics: int = 2, sessions: int = 0) -> BundleLoad:
    """A bundle's sample without traffic."""
    return BundleLoad(bundle_id, 0.0, 0.0, 0.0, 0.0, topics, sessions, 0, 0)


def shed(profile: Composition, view: LoadView) -> dict[str, list[str]]:
    """The bundles that the profile's shedder chooses."""
    shedder: Any = profile.make(profile.shedder_rule)
    chosen: dict[str, list[str]] = shedder.shed(view, shedder.first_memory).bundles_by_node()
    return chosen


def split(profile: Composition, *samples: BundleLoad, nodes: int = 2, count: int = 4) -> list[str]:
    """The bundles that the profile splits, of a namespace ``t/n``, all of them on one node."""
    empty = {f"empty-{number}": NodeView(NodeLoad(f"empty-{number}")) for number in range(nodes - 1)}
    busy = NodeView(NodeLoad("a", stats={each.bundle_id: each for each in samples}))
    chosen = bundles_to_split(LoadView({"a": busy, **empty}), {"t/n": count}, profile.settings(SplitSettings))
    return [each.bundle.bundle_id for each in chosen]


def test_the_shedder_is_the_one_for_overload() -> None:
    """Version 4 sheds above the mean of all nodes: with every node equally overloaded it sheds nothing."""
    histories = {"t/n/a": bundle_history(80), "t/n/b": bundle_history(20)}
    nodes = [loaded_node(name, 95, traffic(100), "t/n/a", "t/n/b") for name in ("x", "y")]
    view = view_of(*nodes, bundles=histories)
    assert [each.shedder_rule.short_name for each in (OLD, NEW)] == ["OverloadShedder", "ThresholdShedder"]
    assert shed(OLD, view) == {"x": ["t/n/a"], "y": ["t/n/a"]}
    assert shed(NEW, view) == {}


def test_usage_is_the_greatest_of_all_resources() -> None:
    """A full heap, which weights leave out since, overloads a node."""
    node = loaded_node("x", 10, traffic(100), "t/n/a", "t/n/b", memory_percent=95)
    view = view_of(node, bundles={"t/n/a": bundle_history(80), "t/n/b": bundle_history(20)})
    assert shed(OLD, view) == {"x": ["t/n/a"]}
    assert shed(compose(PULSAR_4_2_MODULAR, OVERLOADED), view) == {}


def test_usage_in_placement_and_in_reports_is_the_greatest_too() -> None:
    """The node with the full heap is avoided, and its node reports the change."""
    full = loaded_node("a:1", 10, traffic(1), memory_percent=95)
    idle = loaded_node("b:1", 10, traffic(1), memory_percent=5)
    view = view_of(full, idle, bundles={})
    bundle = BundleToPlace("t/n/0x00000000_0xffffffff", BundleHistory(UNSEEN_BUNDLE))
    nodes = []
    needs = []
    for profile in (OLD, NEW):
        strategy: Any = profile.make(profile.placement_rule)
        rule = ModularPlacement(strategy, profile.settings(ModularPlacementSettings))
        seen = modular_context(LeaderLoads(view.nodes, view.bundles), ("a:1", "b:1"))
        nodes.append(rule.place(bundle, seen, rule.first_memory, DRAWS).node_id)
        needs.append(need_report(idle.load, full.load, 0, profile.settings(ReportSettings)).changes.usage)
    assert nodes == ["b:1", "a:1"]
    assert needs == [pytest.approx(85), 0.0]


def test_every_known_bundle_is_a_candidate() -> None:
    """An overloaded node is told to unload the busiest bundle of the cluster, which another node serves."""
    histories = {"t/n/a": bundle_history(1), "t/n/b": bundle_history(1), "t/n/elsewhere": bundle_history(99)}
    busy, other = loaded_node("x", 95, traffic(2), "t/n/a", "t/n/b"), loaded_node("y", 5, traffic(99), "t/n/elsewhere")
    view = view_of(busy, other, bundles=histories)
    assert shed(OLD, view) == {"x": ["t/n/elsewhere"]}
    assert shed(compose(PULSAR_4_2_MODULAR, OVERLOADED), view) == {"x": ["t/n/a"]}


def test_bundles_are_always_distributed_evenly() -> None:
    """Version 4 does so by default, with a knob to switch it off."""
    assert OLD.settings(ModularPlacementSettings).distributes_evenly
    assert NEW.settings(ModularPlacementSettings).distributes_evenly


def test_no_destination_is_named_and_isolation_is_not_asked() -> None:
    """A bundle whose policy allows no other node is unloaded all the same, and comes back."""
    rules = PlacementPolicies(IsolationPolicies((IsolationPolicy("p", ("t/n",), ("a",)),)))
    view = view_of(loaded_node("a:1", 50, traffic(9)), loaded_node("b:1", 5, traffic(1)), bundles={})
    context = modular_context(LeaderLoads(view.nodes, view.bundles), ("a:1", "b:1"), rules)
    bundle = BundleToPlace("t/n/0x00000000_0xffffffff", BundleHistory(UNSEEN_BUNDLE))
    leaves = []
    for profile in (OLD, NEW):
        strategy: Any = profile.make(profile.placement_rule)
        rule = ModularPlacement(strategy, profile.settings(ModularPlacementSettings))
        checks = UnloadChecks(rule, profile.settings(ShedCheckSettings))
        found = checks.check(bundle, "a:1", context, rule.first_memory, DRAWS)
        leaves.append((found.refusal is None, found.destination, found.placement is None))
    assert leaves == [(True, None, True), (False, None, True)]


def test_a_bundle_with_one_topic_is_split() -> None:
    """Again and again, until its range is too narrow."""
    hot = sample("t/n/0x00000000_0x40000000", topics=1, sessions=1_001)
    assert split(OLD, hot) == [hot.bundle_id]
    assert split(NEW, hot) == []


def test_sessions_cannot_be_left_out() -> None:
    """A limit of 0 splits every bundle with a session; since version 4 it means no limit."""
    knobs = {"loadBalancerNamespaceBundleMaxSessions": 0}
    busy = sample("t/n/0x00000000_0x40000000", sessions=1)
    assert split(compose(PULSAR_2_MODULAR, knobs), busy) == [busy.bundle_id]
    assert split(compose(PULSAR_4_2_MODULAR, knobs), busy) == []


def test_splits_of_the_same_round_do_not_count() -> None:
    """A namespace with room for one more bundle gets two more."""
    busy = [sample(f"t/n/{number}", topics=1_001) for number in range(2)]
    assert split(OLD, *busy, count=127) == ["t/n/0", "t/n/1"]
    assert split(NEW, *busy, count=127) == ["t/n/0"]


def test_the_only_node_splits_too() -> None:
    """Since version 4 there has to be another node that can take a half."""
    busy = sample("t/n/0x00000000_0x40000000", topics=1_001)
    assert split(OLD, busy, nodes=1) == [busy.bundle_id]
    assert split(NEW, busy, nodes=1) == []


@pytest.mark.parametrize("unloads", [True, False])
def test_parts_of_a_split_are_unloaded_by_the_knob_alone(unloads: bool) -> None:
    """Since version 4 the policies have to agree as well."""
    knobs = {"loadBalancerAutoUnloadSplitBundlesEnabled": unloads}
    request = SplitRequest(HashRange(0, 0x40000000))
    refused = UnloadConsent(isolation=False, anti_affinity=False)
    found = []
    for name in (PULSAR_2_MODULAR, PULSAR_4_2_MODULAR):
        settings = compose(name, knobs).settings(SplitExecutionSettings)
        algorithms = chosen_rules(compose(name, knobs)).split_algorithms
        plan = plan_split(equal_boundaries(4), request, algorithms, "range_equally_divide", refused, settings)
        assert isinstance(plan, SplitPlan)
        found.append(plan.unloads_children)
    assert found == [unloads, False]


def test_preallocations_end_together_when_one_is_reported() -> None:
    """Those that have a history: a node that reports one of its new bundles loses the others from its account."""
    history = bundle_history(1)
    before = NodeView(
        NodeLoad("a"), preallocated={"t/n/1": history, "t/n/2": history, "t/n/3": BundleHistory(UNSEEN_BUNDLE)}
    )
    other = NodeLoad("b", stats={"t/n/2": sample("t/n/2")}, updated_at_ms=1)
    to_node = dict.fromkeys(before.preallocated, "a")
    loads = LeaderLoads({"a": before}, {"t/n/1": history, "t/n/2": history}, to_node)
    report = NodeLoad("a", bundles=("t/n/1",), stats={"t/n/1": sample("t/n/1")}, updated_at_ms=1)
    kept = []
    for profile in (OLD, NEW):
        after = fold(loads, {"a": report, "b": other}, profile.settings(FoldSettings)).loads
        assert after.node_of_preallocated == {}
        kept.append([*after.nodes["a"].preallocated])
    # Version 4.2 asks whether the leader's own process serves the bundle: of another node's bundles none is kept.
    assert kept == [["t/n/3"], []]
    silent = replace(report, bundles=(), stats={})
    after = fold(loads, {"a": silent, "b": other}, OLD.settings(FoldSettings)).loads
    assert [*after.nodes["a"].preallocated] == ["t/n/1", "t/n/2", "t/n/3"]
    assert after.node_of_preallocated == {}


def test_bundles_that_nobody_reports_stay_known() -> None:
    """Version 4 forgets them with the fold."""
    loads = LeaderLoads({}, {"t/n/1": bundle_history(1)})
    assert [[*fold(loads, {}, profile.settings(FoldSettings)).loads.bundles] for profile in (OLD, NEW)] == [
        ["t/n/1"],
        [],
    ]


def test_a_node_with_another_load_manager_is_not_dropped() -> None:
    """There is one load manager only."""
    assert not OLD.settings(ModularPlacementSettings).drops_other_managers
    assert NEW.settings(ModularPlacementSettings).drops_other_managers


def test_namespaces_may_name_a_cluster() -> None:
    """Version 4 refuses the three parts, and neither knows a namespace without a tenant."""
    check_namespace_name("tenant/cluster/orders", OLD.settings(NamespaceSettings).name_part_counts)
    with pytest.raises(ConfigurationError, match="take tenant/namespace, each part"):
        check_namespace_name("tenant/cluster/orders", NEW.settings(NamespaceSettings).name_part_counts)
    with pytest.raises(ConfigurationError, match="take tenant/namespace or tenant/cluster/namespace"):
        check_namespace_name("orders", OLD.settings(NamespaceSettings).name_part_counts)


def test_memory_of_a_node_is_a_resource_of_its_own() -> None:
    """The heap counts at its own limit."""
    node = NodeLoad("a", memory=ResourceUsage(900, 1_000))
    shedder: Any = OLD.make(OLD.shedder_rule)
    assert shedder.usage(node) == pytest.approx(0.9)
