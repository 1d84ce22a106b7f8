"""Strategies: ties, overload, missing and impossible loads."""

import math
from dataclasses import replace

import pytest

from controlplane.core.bundles.load.averages import NO_LOAD, UNSEEN_BUNDLE, MessageLoad, NodeAverages, TimeAverage
from controlplane.core.bundles.load.resource_usage import measured_usage
from controlplane.core.bundles.load.stored_load import StoredLoad
from controlplane.core.bundles.load.view import BundleHistory, LoadView, NodeLoad, NodeView
from controlplane.core.bundles.placement.context import ExtensibleContext
from controlplane.core.bundles.placement.contract import BundleToPlace, MissingLoadError, Selection
from controlplane.core.bundles.placement.least_message_rate import LeastMessageRate, LeastMessageRateSettings
from controlplane.core.bundles.placement.least_resource_usage import (
    LeastResourceUsage,
    LeastResourceUsageSettings,
    LeastStoredUsage,
)
from controlplane.core.bundles.placement.round_robin import RoundRobin, RoundRobinMemory
from controlplane.core.bundles.reports import ResourceUsage
from controlplane.errors import ConfigurationError, InvariantViolationError

BUNDLE = BundleToPlace("t/n/0x00000000_0xffffffff", BundleHistory(UNSEEN_BUNDLE))
OWN = LeastMessageRateSettings()
PULSAR = LeastMessageRate(LeastMessageRateSettings(checks_loads=False))
PULSAR_USAGE = LeastResourceUsage(LeastResourceUsageSettings(checks_loads=False))
PULSAR_STORED = LeastStoredUsage(LeastResourceUsageSettings(checks_loads=False))
BUSY = MessageLoad(0.0, 0.0, 1.0, 1.0)


def node(cpu_percent: float = 10.0, rate: float = 0.0) -> NodeView:
    """A node with one bundle."""
    load = NodeLoad("n", cpu=ResourceUsage(cpu_percent, 100), traffic=BUSY, bundles=("b",))
    return NodeView(load, NodeAverages(NO_LOAD, MessageLoad(0.0, 0.0, rate, 0.0)))


def least(strategy: LeastMessageRate, **nodes: NodeView) -> Selection[None]:
    """The selection among these nodes."""
    return strategy.select(BUNDLE, tuple(nodes), LoadView(nodes), None)


def test_preallocated_bundles_count_as_load() -> None:
    """Two assignments in a row do not both go to the node that was idle before the first one."""
    recently_idle = BundleHistory(replace(UNSEEN_BUNDLE, short_term=TimeAverage(10, 1, NO_LOAD)))
    view = replace(node(rate=10), preallocated={"t/n/1": recently_idle})
    found = least(LeastMessageRate(), a=view, b=node(rate=100), c=node(rate=110))
    assert found.scores == {"a": 110.0, "b": 100.0, "c": 110.0}
    assert found.best == ("b",)
    assert found.limit == 100.0


def test_node_at_the_threshold_is_not_overloaded() -> None:
    """85 percent of 85 percent is the last usage that counts as healthy."""
    found = least(LeastMessageRate(), a=node(85.0, rate=5), b=node(86.0, rate=1))
    assert found.best == ("a",)
    assert found.scores["b"] == math.inf


def test_overloaded_nodes_are_chosen_if_there_are_no_others() -> None:
    """A bundle without a node is worse than one on a busy node."""
    found = least(LeastMessageRate(), a=node(90.0, rate=5), b=node(95.0, rate=1))
    assert found.best == ("a", "b")
    assert found.limit is None


def test_score_that_is_not_a_number_is_never_least() -> None:
    """Pulsar compares it with nothing; ours counts such a node as overloaded."""
    nodes = {"a": node(rate=math.nan), "b": node(rate=7)}
    assert least(PULSAR, **nodes).best == ("b",)
    assert least(PULSAR, a=node(rate=math.nan), b=node(90.0)).best == ("b",)
    assert least(PULSAR, a=node(rate=math.nan)).best == ("a",)
    assert least(LeastMessageRate(OWN), a=node(rate=math.nan), b=node(90.0)).best == ("a", "b")


@pytest.mark.parametrize("rate", [-1.0, -math.inf])
def test_impossible_rate_attracts_no_bundles_under_our_settings(rate: float) -> None:
    """A node that reports a negative rate would take every bundle of Pulsar's."""
    assert least(PULSAR, a=node(rate=rate), b=node()).best == ("a",)
    assert least(LeastMessageRate(OWN), a=node(rate=rate), b=node()).best == ("b",)


def test_missing_report_is_an_error_or_an_overload() -> None:
    """Pulsar fails; ours prefers every node whose load it knows."""
    view = LoadView({"a": node()})
    with pytest.raises(MissingLoadError, match="node x"):
        PULSAR.select(BUNDLE, ("a", "x"), view, None)
    assert LeastMessageRate(OWN).select(BUNDLE, ("a", "x"), view, None).best == ("a",)
    assert LeastMessageRate(OWN).select(BUNDLE, ("x",), view, None).best == ("x",)
    with pytest.raises(MissingLoadError):
        PULSAR_USAGE.select(BUNDLE, ("a", "x"), view, {})


def test_pulsar_2_knows_no_weights() -> None:
    """Heap memory counts there, so a full heap makes a node overloaded; the result has 32 bits."""
    full = replace(node(), load=replace(node().load, memory=ResourceUsage(99, 100)))
    assert least(LeastMessageRate(), a=full, b=node(rate=1)).best == ("a",)
    assert least(
        LeastMessageRate(LeastMessageRateSettings(compares_unweighted_usage=True)), a=full, b=node(rate=1)
    ).best == ("b",)
    usage = measured_usage(full.load, OWN.weights, unweighted=True)
    assert usage != 0.99
    assert usage == pytest.approx(0.99, abs=1e-7)


def test_usage_is_smoothed_once_a_selection() -> None:
    """The average advances with every request, not with time; idle or empty nodes start again."""
    strategy = LeastResourceUsage()
    view = LoadView({"a": node(100.0), "b": node(0.0)})
    memory = strategy.select(BUNDLE, ("a", "b"), view, {"a": 0.0, "b": 0.0, "c": 0.5}).memory
    assert memory == {"a": pytest.approx(0.1), "b": 0.0, "c": 0.5}
    for changed in ({"bundles": ()}, {"traffic": NO_LOAD}):
        idle = LoadView({"a": replace(node(100.0), load=replace(node(100.0).load, **changed))})
        assert strategy.select(BUNDLE, ("a",), idle, memory).memory["a"] == 1.0
    one_way = replace(node(100.0), load=replace(node(100.0).load, traffic=MessageLoad(0.0, 0.0, 0.0, 3.0)))
    assert strategy.select(BUNDLE, ("a",), LoadView({"a": one_way}), {"a": 0.0}).memory["a"] == pytest.approx(0.1)
    assert strategy.retain(memory, {"b", "c", "d"}) == {"b": 0.0, "c": 0.5}


def test_node_exactly_so_far_below_the_mean_is_good() -> None:
    """25 and 75 percent, and a difference of 25 points: the first node is at the limit, and good."""
    view = LoadView({"a": node(25.0), "b": node(75.0)})
    settings = LeastResourceUsageSettings(difference_percent=25)
    found = LeastResourceUsage(settings).select(BUNDLE, ("a", "b"), view, {})
    assert (found.best, found.limit) == (("a",), 0.25)
    stored = ExtensibleContext({}, {"a": StoredLoad(0.25), "b": StoredLoad(0.75)})
    assert LeastStoredUsage(settings).select(BUNDLE, ("a", "b"), stored, None).best == ("a",)
    # The difference is added to the usage; taken from the mean, 0.11 - 0.1 would be below 0.01.
    rounded = ExtensibleContext({}, {"a": StoredLoad(0.01), "b": StoredLoad(0.21)})
    assert LeastStoredUsage().select(BUNDLE, ("a", "b"), rounded, None).best == ("a",)
    # The mean of the usages in their order is 0.2; in the reverse order it would be less.
    in_order = ExtensibleContext({}, {"a": StoredLoad(0.1), "b": StoredLoad(0.1), "c": StoredLoad(0.4)})
    assert LeastStoredUsage().select(BUNDLE, ("a", "b", "c"), in_order, None).best == ("a", "b")
    more = replace(settings, difference_percent=26)
    assert LeastResourceUsage(more).select(BUNDLE, ("a", "b"), view, {}).best == ("a", "b")


def test_node_without_a_stored_load_counts_in_no_mean() -> None:
    """It is chosen only where every candidate is as good as another."""
    stored = ExtensibleContext({}, {"a": StoredLoad(0.1), "b": StoredLoad(0.5)})
    strategy = PULSAR_STORED
    assert strategy.select(BUNDLE, ("a", "b", "x"), stored, None).best == ("a",)
    assert strategy.select(BUNDLE, ("b", "x"), stored, None).best == ("b", "x")
    own = LeastStoredUsage()
    assert own.select(BUNDLE, ("b", "x"), stored, None).best == ("b",)
    assert own.select(BUNDLE, ("x", "y"), stored, None).best == ("x", "y")


@pytest.mark.parametrize("bad", [math.nan, math.inf, -1.0])
def test_impossible_usage_spoils_no_mean_under_our_settings(bad: float) -> None:
    """With it in the mean, every node or no node would be good."""
    stored = ExtensibleContext({}, {"a": StoredLoad(0.1), "b": StoredLoad(0.5), "x": StoredLoad(bad)})
    own = LeastStoredUsage()
    assert own.select(BUNDLE, ("a", "b", "x"), stored, None).best == ("a",)


def test_turn_goes_on_while_candidates_change() -> None:
    """The counter runs on over lists of any length, and starts again after the greatest 32-bit number."""
    strategy, memory = RoundRobin(), RoundRobinMemory(2**31 - 1)
    picks = []
    for candidates in (("a", "b"), ("a", "b"), ("b", "a"), (), ("c", "a"), ("a", "b", "c")):
        found = strategy.select(BUNDLE, candidates, None, memory)
        memory = found.memory
        picks.append(found.pick(0.5))
    # The third and the fifth list arrive in another order or with another node; the positions of the first one hold.
    assert picks == ["b", "a", "b", None, "a", "a"]
    assert memory == RoundRobinMemory(4, ("a", "b", "c"))
    assert strategy.select(BUNDLE, ("b", "c", "d"), None, RoundRobinMemory(0, ("a", "b", "c"))).best == ("b",)


def test_random_number_picks_every_best_node_alike() -> None:
    """The set is divided into equal parts, and no number below 1 falls outside."""
    selection = Selection(("a", "b", "c", "d"), None)
    assert [selection.pick(draw) for draw in (0.0, 0.2499, 0.25, 0.75, 1 - 2**-53)] == ["a", "a", "b", "d", "d"]
    assert Selection((), None).pick(0.5) is None
    for draw in (-0.1, 1.0, math.nan):
        with pytest.raises(InvariantViolationError):
            selection.pick(draw)


@pytest.mark.parametrize("changes", [{"history_weight": 1.1}, {"history_weight": math.nan}, {"difference_percent": -1}])
def test_settings_that_make_no_sense_are_refused(changes: dict[str, float]) -> None:
    """A weight above 1 would make averages diverge."""
    with pytest.raises(ConfigurationError):
        LeastResourceUsageSettings(**changes)  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError):
        LeastMessageRateSettings(overloaded_percent=math.nan)
