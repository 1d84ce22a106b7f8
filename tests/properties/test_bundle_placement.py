"""What always holds for the placement of bundles, whatever the loads and the order of arrival."""

import math
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from controlplane.core.bundles.load.averages import NO_LOAD, UNSEEN_BUNDLE, MessageLoad, NodeAverages
from controlplane.core.bundles.load.leader_fold import LeaderLoads
from controlplane.core.bundles.load.view import BundleHistory, LoadView, NodeLoad, NodeView
from controlplane.core.bundles.placement.anti_affinity import AntiAffinityFilter, allows_unload
from controlplane.core.bundles.placement.assignment import assign
from controlplane.core.bundles.placement.context import PlacementPolicies, modular_context
from controlplane.core.bundles.placement.contract import BundleToPlace
from controlplane.core.bundles.placement.filters import EvenDistributionFilter, TopicCountFilter
from controlplane.core.bundles.placement.isolation import IsolationFilter, IsolationPolicies, IsolationPolicy
from controlplane.core.bundles.placement.least_message_rate import LeastMessageRate, LeastMessageRateSettings
from controlplane.core.bundles.placement.least_resource_usage import LeastResourceUsage, LeastResourceUsageSettings
from controlplane.core.bundles.placement.modular import ModularPlacement, ModularPlacementSettings
from controlplane.core.bundles.placement.round_robin import RoundRobin
from controlplane.core.bundles.placement.version import VersionFilter
from controlplane.core.bundles.reports import BundleLoad, ResourceUsage

NAMES = tuple(f"n{index}:1" for index in range(6))
NAMESPACES = ("t/a", "t/b", "t/c")
any_figures = st.floats(allow_nan=True, allow_infinity=True)
bundle_ids = st.builds("{}/{}".format, st.sampled_from(NAMESPACES), st.integers(0, 3))
policies = st.builds(
    IsolationPolicy,
    st.just("p"),
    st.lists(st.sampled_from((*NAMESPACES, "t/.*")), min_size=1).map(tuple),
    st.lists(st.sampled_from(("n0", "n[1-3]", "n.*")), min_size=1).map(tuple),
    st.lists(st.sampled_from(("n4", "n[3-5]"))).map(tuple),
    st.integers(0, 5),
)
rules = st.builds(
    PlacementPolicies,
    st.lists(policies, max_size=2).map(tuple).map(IsolationPolicies),
    st.dictionaries(st.sampled_from(NAMESPACES), st.sampled_from(("g", "G", "h", ""))),
    st.dictionaries(st.sampled_from(NAMES), st.sampled_from(("east", "west"))),
)


@st.composite
def node_views(draw: st.DrawFn, figures: st.SearchStrategy[float]) -> NodeView:
    """A node with any load."""
    served = draw(st.lists(bundle_ids, unique=True, max_size=4))
    load = NodeLoad(
        "n",
        cpu=ResourceUsage(draw(figures), 100.0),
        bundles=tuple(served),
        stats={each: BundleLoad(each, 0.0, 0.0, 0.0, 0.0, 1, 0, 0, 0) for each in served},
        topic_count=draw(st.integers(0, 12)),
        takes_persistent_topics=draw(st.booleans()),
        version=draw(st.sampled_from(("1.0.0", "1.0.1", "bad"))),
    )
    return NodeView(load, NodeAverages(NO_LOAD, MessageLoad(0.0, 0.0, draw(figures), 0.0)))


def views(figures: st.SearchStrategy[float]) -> st.SearchStrategy[LoadView]:
    """Some nodes, in any order."""
    return st.dictionaries(st.sampled_from(NAMES), node_views(figures), min_size=1).map(LoadView)


def to_place(bundle_id: str) -> BundleToPlace:
    """A bundle without history."""
    return BundleToPlace(bundle_id, BundleHistory(UNSEEN_BUNDLE))


@given(views(any_figures), st.randoms(use_true_random=False), st.booleans())
def test_arrival_order_decides_nothing(view: LoadView, random: object, checks_loads: bool) -> None:
    """Ties go to a random pick from the same set, in whatever order nodes registered."""
    names = list(view.nodes)
    shuffled = sorted(names, key=lambda _: random.random())  # type: ignore[attr-defined]
    strategy = LeastMessageRate(LeastMessageRateSettings(checks_loads=checks_loads))
    bundle = to_place("t/a/0")
    best = strategy.select(bundle, names, view, None).best
    assert set(best) == set(strategy.select(bundle, shuffled, view, None).best)
    assert best
    assert set(best) <= set(names)


@given(views(any_figures))
def test_strategies_choose_among_the_candidates_whatever_loads_are(view: LoadView) -> None:
    """No figure makes a strategy fail, choose a stranger, or leave a bundle without a node."""
    names, bundle = tuple(view.nodes), to_place("t/a/0")
    for strategy in (LeastMessageRate(), LeastMessageRate(LeastMessageRateSettings(checks_loads=False))):
        assert {*strategy.select(bundle, names, view, None).best} & {*names}
    averaged = LeastResourceUsage(LeastResourceUsageSettings(checks_loads=False)).select(bundle, names, view, {})
    assert averaged.best
    assert {*averaged.best} <= {*names} == {*averaged.memory}


@given(views(st.floats(0, 200)), rules, bundle_ids, st.integers(0, 12))
def test_filters_divide_candidates_into_kept_and_dropped(
    view: LoadView, given_rules: PlacementPolicies, bundle_id: str, max_topics: int
) -> None:
    """Every candidate is named once, in order: evidence that loses a node explains nothing."""
    names = tuple(view.nodes)
    context = modular_context(LeaderLoads(view.nodes, view.bundles), names, given_rules)
    for each in (
        IsolationFilter(),
        TopicCountFilter(max_topics),
        TopicCountFilter(max_topics, drops_at_limit=True, keeps_all_if_none=False),
        AntiAffinityFilter(uses_domains=True),
        EvenDistributionFilter(),
        VersionFilter(),
    ):
        found = each.keep(to_place(bundle_id), names, context)
        dropped = [one.node_id for one in found.dropped]
        assert sorted((*found.kept, *dropped)) == sorted(names)
        assert list(found.kept) == [name for name in names if name in found.kept]


@given(
    views(st.floats(0, 200)),
    rules,
    st.lists(bundle_ids, max_size=8),
    st.tuples(st.floats(0, 1, exclude_max=True), st.floats(0, 1, exclude_max=True)),
    st.booleans(),
)
def test_assignments_are_allowed_repeatable_and_remembered(
    view: LoadView,
    given_rules: PlacementPolicies,
    requested: Sequence[str],
    draws: tuple[float, float],
    prefers_later: bool,
) -> None:
    """A node that the policies allow, the same for the same inputs, with its load raised by what it got."""
    rule = ModularPlacement(LeastMessageRate(), ModularPlacementSettings(prefers_later_versions=prefers_later))
    start = modular_context(LeaderLoads(view.nodes, view.bundles), tuple(view.nodes), given_rules)
    context, preallocated, memory = start, dict[str, str](), rule.first_memory
    for bundle_id in requested:
        bundle = to_place(bundle_id)
        allowed = rule.allowed(bundle, context).kept
        assigned = assign(rule, bundle, context, memory, draws)
        assert assigned == assign(rule, bundle, context, memory, draws)
        assert (assigned.node_id in allowed) if allowed else (assigned.node_id is None)
        if assigned.node_id is not None:
            preallocated.setdefault(bundle_id, assigned.node_id)
        context, memory = assigned.context, assigned.memory
    held = {(name, each) for name, node in context.view.nodes.items() for each in node.preallocated}
    assert held == {(name, bundle_id) for bundle_id, name in preallocated.items()}
    assert context.loads.node_of_preallocated == preallocated
    assert start == modular_context(LeaderLoads(view.nodes, view.bundles), tuple(view.nodes), given_rules)


@given(
    st.dictionaries(st.sampled_from(NAMES), st.integers(0, 3)), st.sampled_from(NAMES), st.sets(st.sampled_from(NAMES))
)
def test_refused_unload_could_not_have_helped(counts: dict[str, int], current: str, candidates: set[str]) -> None:
    """Whenever a candidate serves less of the group than the current one, the bundle may leave."""
    better = any(counts.get(each, 0) < counts.get(current, 0) for each in candidates)
    if current in candidates and better:
        assert allows_unload(counts, current, sorted(candidates))


@given(st.integers(1, 6), st.integers(1, 5), st.integers(0, 2**31 - 1))
def test_turns_are_fair(size: int, rounds: int, start: int) -> None:
    """With the same candidates, every node gets the same number of bundles, unless the counter starts again between."""
    names, strategy = NAMES[:size], RoundRobin()
    memory = strategy.first_memory._replace(selection_count=min(start, 2**31 - 1 - size * rounds))
    picks: list[str] = []
    for _ in range(size * rounds):
        found = strategy.select(to_place("t/a/0"), names, None, memory)
        memory = found.memory
        picks += found.best
    assert {name: picks.count(name) for name in names} == dict.fromkeys(names, rounds)


@given(st.floats(0, 1, exclude_max=True), st.integers(1, 100))
def test_every_number_below_one_picks_a_node(draw: float, size: int) -> None:
    """The last number before 1 does not reach behind the last node."""
    selection = LeastMessageRate().select(
        to_place("t/a/0"),
        [str(index) for index in range(size)],
        LoadView({str(index): NodeView(NodeLoad("n")) for index in range(size)}),
        None,
    )
    assert selection.pick(draw) == str(math.floor(draw * size))
