"""The modular selection, its requests, and the checks of bundles to shed."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pytest

from controlplane.core.bundles.load.averages import NO_LOAD, UNSEEN_BUNDLE, MessageLoad, NodeAverages
from controlplane.core.bundles.load.leader_fold import LeaderLoads
from controlplane.core.bundles.load.view import BundleHistory, NodeLoad, NodeView
from controlplane.core.bundles.placement.assignment import Source, assign
from controlplane.core.bundles.placement.context import ModularContext, PlacementPolicies, modular_context
from controlplane.core.bundles.placement.contract import BundleToPlace, Filtering, MissingLoadError
from controlplane.core.bundles.placement.isolation import IsolationPolicies, IsolationPolicy
from controlplane.core.bundles.placement.least_message_rate import LeastMessageRate
from controlplane.core.bundles.placement.least_resource_usage import LeastResourceUsage
from controlplane.core.bundles.placement.modular import RESTORED, ModularPlacement, ModularPlacementSettings
from controlplane.core.bundles.placement.shed_checks import ShedCheckSettings, UnloadChecks, UnloadRefusal
from controlplane.core.bundles.reports import BundleLoad, ResourceUsage

DRAWS = (0.0, 0.0)
UNEVEN = ModularPlacementSettings(distributes_evenly=False)


def bundle(bundle_id: str = "t/n/1") -> BundleToPlace:
    """A bundle without history."""
    return BundleToPlace(bundle_id, BundleHistory(UNSEEN_BUNDLE))


def node(rate: float = 0.0, cpu_percent: float = 10.0, bundles: Sequence[str] = (), **changes: object) -> NodeView:
    """A node that serves these bundles."""
    stats = {each: BundleLoad(each, 0.0, 0.0, 0.0, 0.0, 1, 0, 0, 0) for each in bundles}
    load = NodeLoad("n", cpu=ResourceUsage(cpu_percent, 100), bundles=tuple(bundles), stats=stats)
    load = replace(load, **changes)  # type: ignore[arg-type]
    return NodeView(load, NodeAverages(NO_LOAD, MessageLoad(0.0, 0.0, rate, 0.0)))


def context(rules: PlacementPolicies | None = None, /, **nodes: NodeView) -> ModularContext:
    """Registered nodes with a port each: ``a`` is ``a:1``."""
    named = {f"{name}:1": each for name, each in nodes.items()}
    return modular_context(LeaderLoads(named), tuple(named), rules)


def placed(settings: ModularPlacementSettings, seen: ModularContext, bundle_id: str = "t/n/1") -> str | None:
    """The node that the least message rate gives this bundle."""
    rule = ModularPlacement(LeastMessageRate(), settings)
    return rule.place(bundle(bundle_id), seen, rule.first_memory, DRAWS).node_id


def test_steps_come_in_order_with_their_evidence() -> None:
    """An operator reads from a placement which filter dropped which node."""
    seen = context(a=node(bundles=["t/n/2"]), b=node(topic_count=9), c=node(5), d=node(manager="other"))
    rule = ModularPlacement(
        LeastMessageRate(), ModularPlacementSettings(5, drops_other_managers=True, prefers_later_versions=True)
    )
    found = rule.place(bundle(), seen, rule.first_memory, DRAWS)
    assert [(step.filter_name, [each.node_id for each in step.dropped]) for step in found.steps] == [
        ("isolation", []),
        ("topic-count", ["b:1"]),
        ("anti-affinity", []),
        ("even-distribution", ["a:1"]),
        ("load-manager", ["d:1"]),
        ("version", []),
        (RESTORED, []),
    ]
    assert found.steps[-2].failure is not None
    # The version cannot be compared, so every node of the first step comes back, those of other filters included.
    assert found.steps[-1].kept == ("a:1", "b:1", "c:1", "d:1")
    assert found.picks[0].candidates == found.steps[-1].kept


def test_pipeline_that_leaves_nobody_has_no_effect() -> None:
    """All nodes run another load manager: better such a node than none."""
    seen = context(a=node(5, manager="other"), b=node(1, manager="other"))
    settings = ModularPlacementSettings(drops_other_managers=True)
    assert placed(settings, seen) == "b:1"
    assert placed(settings, context(seen.rules, a=node(5), b=node(1, manager="other"))) == "a:1"
    assert placed(ModularPlacementSettings(), context(a=node(5), b=node(1, manager="other"))) == "b:1"


def test_filter_of_a_user_stands_last_in_the_pipeline() -> None:
    """It sees what the others left, and its name is in the evidence."""

    @dataclass(frozen=True)
    class Only:
        node_id: str
        name: str = "only"

        def keep(self, bundle: BundleToPlace, candidates: Sequence[str], context: ModularContext) -> Filtering:
            return Filtering(self.name, tuple(each for each in candidates if each == self.node_id))

    rule = ModularPlacement(LeastMessageRate(), user_filters=(Only("b:1"),))
    found = rule.place(bundle(), context(a=node(), b=node(9)), rule.first_memory, DRAWS)
    assert found.node_id == "b:1"
    assert found.steps[-1].filter_name == "only"


def test_system_namespace_is_always_spread() -> None:
    """Even where bundles are not distributed evenly."""
    system, others = ["pulsar/system/2"], ["t/n/2"]
    assert placed(UNEVEN, context(a=node(bundles=system), b=node(9)), "pulsar/system/1") == "b:1"
    assert placed(UNEVEN, context(a=node(bundles=others), b=node(9))) == "a:1"
    assert placed(ModularPlacementSettings(), context(a=node(bundles=others), b=node(9))) == "b:1"


def test_overloaded_choice_is_made_again_among_all_allowed_nodes() -> None:
    """The even distribution left an overloaded node; the strategy then finds the healthy one."""
    seen = context(a=node(cpu_percent=86.0), b=node(bundles=["t/n/2"], rate=3))
    rule = ModularPlacement(LeastMessageRate())
    found = rule.place(bundle(), seen, rule.first_memory, DRAWS)
    assert found.node_id == "b:1"
    assert [pick.candidates for pick in found.picks] == [("a:1",), ("a:1", "b:1")]
    assert found.overload == pytest.approx(0.86)
    at_limit = context(a=node(cpu_percent=50.0), b=node(bundles=["t/n/2"]))
    half = ModularPlacement(LeastMessageRate(), ModularPlacementSettings(overloaded_percent=50))
    assert len(half.place(bundle(), at_limit, half.first_memory, DRAWS).picks) == 1


def test_second_choice_takes_its_own_random_number_and_step_of_memory() -> None:
    """Two overloaded nodes: averages advance twice, and the second number decides."""
    seen = context(a=node(cpu_percent=90.0), b=node(cpu_percent=90.0))
    rule = ModularPlacement(LeastMessageRate())
    assert rule.place(bundle(), seen, rule.first_memory, (0.0, 0.9)).node_id == "b:1"
    busy = node(cpu_percent=100.0, bundles=["x"], traffic=MessageLoad(0.0, 0.0, 1.0, 1.0))
    averaging = ModularPlacement(LeastResourceUsage())
    memory = replace(averaging.first_memory, strategy={"a:1": 0.9})
    found = averaging.place(bundle(), context(a=busy), memory, DRAWS)
    assert found.memory.strategy["a:1"] == pytest.approx(1 - 0.1 * 0.9 * 0.9)


def test_excluded_namespaces_take_turns_whatever_the_load() -> None:
    """Only the choice after an overload asks the strategy."""
    settings = replace(UNEVEN, excluded_namespaces=frozenset({"t/n"}))
    rule = ModularPlacement(LeastMessageRate(), settings)
    seen, memory, found = context(a=node(9), b=node(5), c=node(1, cpu_percent=90.0)), rule.first_memory, []
    for _ in range(4):
        placement = rule.place(bundle(), seen, memory, DRAWS)
        memory = placement.memory
        found.append((placement.node_id, len(placement.picks)))
    assert found == [("a:1", 1), ("b:1", 1), ("b:1", 2), ("a:1", 1)]
    assert rule.place(bundle("t/m/1"), seen, memory, DRAWS).memory == memory


def test_turn_at_a_node_without_a_report_fails_unless_loads_are_checked() -> None:
    """Pulsar asks for its usage; ours takes the node as not overloaded."""
    seen = replace(context(a=node()), available=("x:1",))
    settings = replace(UNEVEN, excluded_namespaces=("t/n",))
    isolated = IsolationPolicies((IsolationPolicy("p", ("t/n",), ("x",)),))
    seen = replace(seen, rules=PlacementPolicies(isolated))
    with pytest.raises(MissingLoadError):
        placed(replace(settings, checks_loads=False), seen)
    assert placed(settings, seen) == "x:1"


def test_nobody_is_chosen_if_policies_allow_nobody() -> None:
    """Neither the pipeline nor an overload brings back a node that the isolation policies forbid."""
    rules = PlacementPolicies(IsolationPolicies((IsolationPolicy("p", ("t/n",), ("p.*",)),)))
    seen = context(rules, a=node())
    assert placed(ModularPlacementSettings(), seen) is None
    assert placed(ModularPlacementSettings(), seen, "t/other/1") == "a:1"


def test_request_preallocates_and_the_next_one_gets_the_same_node() -> None:
    """Until a fold of reports clears it; the load of the bundle counts at once."""
    rule = ModularPlacement(LeastMessageRate(), UNEVEN)
    first = assign(rule, bundle(), context(a=node(), b=node(50)), rule.first_memory, DRAWS)
    assert (first.node_id, first.source) == ("a:1", Source.PLACED)
    assert first.context.view.nodes["a:1"].preallocated == {"t/n/1": bundle().history}
    assert first.context.served.count("a:1", "t/n") == 1
    again = assign(rule, bundle(), first.context, first.memory, DRAWS)
    assert (again.node_id, again.source, again.placement) == ("a:1", Source.PREALLOCATED, None)
    assert again.context is first.context
    # 100 messages per second of the first bundle are assumed on node a, so node b is the lesser one.
    assert assign(rule, bundle("t/n/2"), first.context, first.memory, DRAWS).node_id == "b:1"


def test_preallocation_to_a_missing_node_is_followed_only_in_pulsar() -> None:
    """The node has died, and the next fold of reports has not come yet."""
    quirk = replace(UNEVEN, follows_preallocation_to_missing_node=True)
    for settings, found in ((UNEVEN, ("a:1", Source.PLACED)), (quirk, ("dead:1", Source.PREALLOCATED))):
        rule = ModularPlacement(LeastMessageRate(), settings)
        seen = context(a=node(), dead=node()).with_preallocated("dead:1", bundle())
        seen = replace(seen, available=("a:1",))
        assigned = assign(rule, bundle(), seen, rule.first_memory, DRAWS)
        assert (assigned.node_id, assigned.source) == found
        holders = [name for name, each in assigned.context.view.nodes.items() if each.preallocated]
        assert holders == [*assigned.context.loads.node_of_preallocated.values()] == [found[0]]


@pytest.mark.parametrize("by_range", [True, False])
def test_named_destination_is_used_once_before_any_selection(by_range: bool) -> None:
    """Quirk E: the key is the range alone, so another namespace's bundle can take it."""
    rule = ModularPlacement(LeastMessageRate(), replace(UNEVEN, shares_named_nodes_by_range=by_range))
    affinities = rule.first_memory.affinities.remember("t/n/1", "z:1")
    memory, seen = replace(rule.first_memory, affinities=affinities), context(a=node())
    other = assign(rule, bundle("t/other/1"), seen, memory, DRAWS)
    assert other.node_id == ("z:1" if by_range else "a:1")
    named = assign(rule, bundle(), seen, memory, DRAWS)
    assert (named.node_id, named.source, named.context) == ("z:1", Source.AFFINITY, seen)
    assert assign(rule, bundle(), seen, named.memory, DRAWS).node_id == "a:1"
    assert assign(rule, bundle(), seen, other.memory, DRAWS).node_id == ("a:1" if by_range else "z:1")


def checked(
    seen: ModularContext, settings: ModularPlacementSettings = UNEVEN, checks: ShedCheckSettings | None = None
) -> tuple[UnloadRefusal | None, str | None]:
    """Whether ``t/n/1`` leaves node ``a:1``, and for which node."""
    rule = ModularPlacement(LeastMessageRate(), settings)
    asked = UnloadChecks(rule, checks or ShedCheckSettings())
    found = asked.check(bundle(), "a:1", seen, rule.first_memory, DRAWS)
    return found.refusal, found.destination


def test_bundle_leaves_for_the_node_that_placement_chooses() -> None:
    """The destination is known before the bundle leaves, and nothing is preallocated."""
    assert checked(context(a=node(9), b=node(5))) == (None, "b:1")


def test_bundle_stays_if_placement_would_choose_its_node() -> None:
    """A bundle that comes back at once has been interrupted for nothing."""
    assert checked(context(a=node(1), b=node(5))) == (UnloadRefusal.SAME_NODE, None)


def test_bundle_of_an_excluded_namespace_stays() -> None:
    """Before any other check."""
    settings = replace(UNEVEN, excluded_namespaces=("t/n",))
    assert checked(context(a=node(9), b=node(5)), settings) == (UnloadRefusal.EXCLUDED_NAMESPACE, None)


def test_bundle_stays_if_policies_allow_no_other_node() -> None:
    """Pulsar 2 does not ask them, and names no destination."""
    rules = PlacementPolicies(IsolationPolicies((IsolationPolicy("p", ("t/n",), ("a",)),)))
    seen = context(rules, a=node(9), b=node(5))
    assert checked(seen) == (UnloadRefusal.NO_OTHER_NODE, None)
    assert checked(seen, checks=ShedCheckSettings(asks_policies=False)) == (UnloadRefusal.SAME_NODE, None)
    pulsar_2 = ShedCheckSettings(asks_policies=False, names_destination=False)
    assert checked(seen, checks=pulsar_2) == (None, None)


def test_bundle_stays_if_no_node_may_take_it() -> None:
    """The policies allow nobody, and are not asked before."""
    rules = PlacementPolicies(IsolationPolicies((IsolationPolicy("p", ("t/n",), ("z",)),)))
    checks = ShedCheckSettings(asks_policies=False)
    assert checked(context(rules, a=node(9)), checks=checks) == (UnloadRefusal.NO_DESTINATION, None)


def test_bundle_stays_if_its_group_is_spread_as_well_as_can_be() -> None:
    """Pulsar 2 asks this too. Only nodes that the policies allow are compared."""
    groups = {"t/n": "g", "t/m": "g"}
    seen = context(PlacementPolicies(groups=groups), a=node(9, bundles=["t/n/1"]), b=node(5, bundles=["t/m/1"]))
    assert checked(seen) == (UnloadRefusal.ANTI_AFFINITY, None)
    pulsar_2 = ShedCheckSettings(asks_policies=False, names_destination=False)
    assert checked(seen, checks=pulsar_2) == (UnloadRefusal.ANTI_AFFINITY, None)
    reserved = IsolationPolicies((IsolationPolicy("p", ("t/other",), ("c",)),))
    busy = {"a": node(9, bundles=["t/n/1"]), "b": node(5, bundles=["t/m/1"]), "c": node(1)}
    assert checked(context(PlacementPolicies(groups=groups), **busy)) == (None, "c:1")
    assert checked(context(PlacementPolicies(reserved, groups), **busy)) == (UnloadRefusal.ANTI_AFFINITY, None)
