"""The memories of the rules for bundles can be stored and read again."""

from dataclasses import replace
from typing import Any

import pytest

from controlplane.core.bundles.leading.manager_tasks import TaskFacts, TaskMemory, TaskSettings, due_tasks
from controlplane.core.bundles.load.leader_fold import FoldSettings, LeaderLoads, fold
from controlplane.core.bundles.load.measured_node import measured
from controlplane.core.bundles.load.view import NodeLoad, Resources
from controlplane.core.bundles.placement.affinity import Affinities
from controlplane.core.bundles.placement.least_resource_usage import LeastResourceUsage
from controlplane.core.bundles.placement.modular import ModularPlacement
from controlplane.core.bundles.placement.round_robin import RoundRobinMemory
from controlplane.core.bundles.reports import BundleLoad
from controlplane.core.bundles.shedding.avg_shedder import AvgShedder, AvgShedderSettings
from controlplane.core.bundles.shedding.avg_shedder_plan import AvgShedderMemory, PlannedNode
from controlplane.core.bundles.shedding.recent import RecentlyUnloaded
from controlplane.core.bundles.shedding.threshold import ThresholdMemory
from controlplane.core.bundles.shedding.transfer import TransferMemory
from controlplane.core.values.canonical import canonical_bytes, from_canonical, to_canonical
from controlplane.core.values.encodable import unencodable
from tests.helpers.load_views import bundle_history, view_of

HISTORY = bundle_history(1.5)
SAMPLE = BundleLoad("t/n/1", 1.0, 2.0, 3.0, 4.0, 5, 6, 7, 8)
REPORT = replace(measured(NodeLoad("a:1"), Resources(), [SAMPLE]), updated_at_ms=1)
LOADS = fold(LeaderLoads(), {"a:1": REPORT}, FoldSettings()).loads.preallocated("t/n/2", "a:1", HISTORY)
BY_AVERAGES = AvgShedder(AvgShedderSettings(plans_by_averages=True))
MEMORIES: dict[str, Any] = {
    "leader fold": LOADS,
    "threshold": ThresholdMemory({"a:1": 0.5}),
    "avg, plan by name": AvgShedderMemory({"a:1": 1}, {"b:1": 2}, {"t/n/1": PlannedNode("a:1", "t/n/1")}),
    "avg, plan by averages": BY_AVERAGES.after_pick(
        "t/n/1", "a:1", view_of(bundles={"t/n/1": HISTORY}), AvgShedderMemory()
    ),
    "transfer": TransferMemory(2).with_unloaded("a:1", 7),
    "recently unloaded": RecentlyUnloaded().with_unloaded(["t/n/1"], 7),
    "round robin": RoundRobinMemory(3, ("a:1", "b:1")),
    "named nodes": Affinities(keyed_by_range_only=False).remember("t/n/1", "a:1"),
    "manager's tasks": due_tasks(TaskSettings(), TaskMemory(), 5, TaskFacts(True, 2, 2)).memory,
}


@pytest.mark.parametrize("name", MEMORIES)
def test_a_memory_is_read_again_as_it_was(name: str) -> None:
    """Equal memories have equal bytes, whatever the order in which their entries came."""
    memory = MEMORIES[name]
    assert unencodable(memory, name) is None
    read = from_canonical(type(memory), to_canonical(memory))
    assert read == memory
    assert canonical_bytes(read) == canonical_bytes(memory)


def test_the_memory_of_a_selection_can_be_stored() -> None:
    """It has its strategy's memory, whose class the rule knows."""
    rule = ModularPlacement(LeastResourceUsage())
    memory = replace(rule.first_memory, strategy={"a:1": 0.5})
    assert unencodable(memory, "memory") is None
