"""What leaders do with the bundles that a shedder chose, and for how long these rest."""

from dataclasses import replace

import pytest

from controlplane.core.bundles.leading.unloading import EndedChoice, after_unloads, plan_transfers, plan_unloads
from controlplane.core.bundles.load.leader_fold import LeaderLoads
from controlplane.core.bundles.ownership_channel.record import OwnershipRecord
from controlplane.core.bundles.ownership_channel.table import OwnershipTable, Written
from controlplane.core.bundles.ownership_state import OwnershipState
from controlplane.core.bundles.placement.avg_shedder import PlannedNodePlacement
from controlplane.core.bundles.placement.context import ModularContext, PlacementPolicies, modular_context
from controlplane.core.bundles.placement.isolation import IsolationPolicies, IsolationPolicy
from controlplane.core.bundles.placement.least_message_rate import LeastMessageRate
from controlplane.core.bundles.placement.modular import ModularPlacement, ModularPlacementSettings
from controlplane.core.bundles.placement.round_robin import RoundRobin
from controlplane.core.bundles.placement.shed_checks import ShedCheckSettings, UnloadChecks, UnloadRefusal
from controlplane.core.bundles.shedding.avg_shedder import AvgShedder
from controlplane.core.bundles.shedding.avg_shedder_plan import AvgShedderMemory, PlannedNode
from controlplane.core.bundles.shedding.contract import ShedChoice, ShedReason, UnloadOutcome
from controlplane.core.bundles.shedding.plausible_loads import modular
from controlplane.core.bundles.shedding.recent import RecentlyUnloaded
from controlplane.core.bundles.shedding.transfer import TransferMemory, TransferShedder
from tests.helpers.load_views import bundle_history, loaded_node, traffic, view_of

NOW, MINUTE = 10_000_000, 60_000
UNEVEN = ModularPlacementSettings(distributes_evenly=False)


def choice(bundle_id: str, node_id: str = "busy:1", destination: str | None = None) -> ShedChoice:
    """A shedder's choice."""
    return ShedChoice(node_id, bundle_id, ShedReason.OVERLOADED, 1.0, 1.0, (), destination)


def context(rules: PlacementPolicies | None = None) -> ModularContext:
    """A busy node with three bundles and two idle ones."""
    bundles = {each: bundle_history(1.0) for each in ("t/n/1", "t/n/2", "t/other/1")}
    view = view_of(
        loaded_node("busy:1", 50, traffic(3), *bundles),
        loaded_node("idle:1", 10, traffic(0)),
        loaded_node("spare:1", 10, traffic(0)),
        bundles=bundles,
    )
    return modular_context(LeaderLoads(view.nodes, view.bundles), tuple(view.nodes), rules)


def test_each_chosen_bundle_is_checked_and_gets_a_destination() -> None:
    """The memory of the placement goes on from bundle to bundle: the second choice knows of the first."""
    checks = UnloadChecks(ModularPlacement(RoundRobin(), UNEVEN))
    chosen = [choice("t/n/1"), choice("t/n/2"), choice("t/other/1"), choice("t/n/unknown")]
    found = plan_unloads(chosen, checks, context(), checks.rule.first_memory, [(0.0, 0.0)] * 4)
    assert [(each.choice.bundle_id, each.check.refusal, each.check.destination) for each in found.kept] == [
        ("t/n/1", UnloadRefusal.SAME_NODE, None),
        ("t/n/unknown", UnloadRefusal.SAME_NODE, None),
    ]
    assert [(each.choice.bundle_id, each.check.destination) for each in found.unloads] == [
        ("t/n/2", "idle:1"),
        ("t/other/1", "spare:1"),
    ]
    assert found.memory != checks.rule.first_memory


def test_a_bundle_stays_for_every_reason_of_the_checks() -> None:
    """Each check has the policies of its own namespace."""
    isolation = IsolationPolicies((IsolationPolicy("p", ("t/n",), ("busy",), ()),))
    settings = replace(UNEVEN, excluded_namespaces=frozenset({"t/other"}))
    checks = UnloadChecks(ModularPlacement(LeastMessageRate(), settings))
    chosen = [choice("t/n/1"), choice("t/other/1")]
    seen = context(PlacementPolicies(isolation))
    found = plan_unloads(chosen, checks, seen, checks.rule.first_memory, [(0.0, 0.0)] * 2)
    assert [each.check.refusal for each in found.kept] == [
        UnloadRefusal.NO_OTHER_NODE,
        UnloadRefusal.EXCLUDED_NAMESPACE,
    ]
    assert found.unloads == ()


def test_pulsar_2_unloads_without_a_destination() -> None:
    """Whoever looks for the bundle next has it placed, perhaps on the same node."""
    settings = ShedCheckSettings(asks_policies=False, names_destination=False)
    checks = UnloadChecks(ModularPlacement(LeastMessageRate(), UNEVEN), settings)
    found = plan_unloads([choice("t/n/1")], checks, context(), checks.rule.first_memory, [(0.0, 0.0)])
    assert [each.check.destination for each in found.unloads] == [None]
    assert found.kept == ()


def test_the_plan_of_a_shedder_names_the_destination() -> None:
    """The shedder's memory is the placement's: without it, the bundle could go to any node."""
    rule = PlannedNodePlacement()
    bundles = {"t/n/1": bundle_history(1.0)}
    names = ("busy:1", "idle:1", "spare:1")
    view = view_of(*(loaded_node(name, 10, traffic(0), *bundles) for name in names), bundles=bundles)
    checks = UnloadChecks(ModularPlacement(rule, UNEVEN))
    first = replace(
        checks.rule.first_memory, strategy=AvgShedderMemory(plan={"t/n/1": PlannedNode("spare:1", "t/n/1")})
    )
    chosen = [choice("t/n/1", destination="spare:1")]
    for draw in (0.0, 0.5, 0.9):
        found = plan_unloads(
            chosen, checks, modular_context(LeaderLoads(view.nodes, view.bundles), names), first, [(draw, draw)]
        )
        assert [each.check.destination for each in found.unloads] == ["spare:1"]


def test_every_choice_has_its_random_numbers() -> None:
    """A number that is used twice would make two picks alike."""
    checks = UnloadChecks(ModularPlacement(LeastMessageRate(), UNEVEN))
    with pytest.raises(ValueError, match="zip"):
        plan_unloads([choice("t/n/1")], checks, context(), checks.rule.first_memory, [])


def test_an_unloaded_bundle_rests_for_the_grace_period() -> None:
    """A bundle whose traffic follows it would otherwise wander from node to node."""
    recent = RecentlyUnloaded().with_unloaded(["t/n/1", "t/n/2"], NOW).with_unloaded(["t/n/2"], NOW + 1)
    assert recent.bundle_ids == {"t/n/1", "t/n/2"}
    assert recent.within(NOW + 30 * MINUTE, 30).bundle_ids == {"t/n/1", "t/n/2"}
    assert recent.within(NOW + 30 * MINUTE + 1, 30).bundle_ids == {"t/n/2"}
    assert recent.within(NOW + 30 * MINUTE + 2, 30) == RecentlyUnloaded()


def test_the_extensible_leader_publishes_its_unloads() -> None:
    """With the destination of the shedder if there is one; the table takes the records of bundles that are owned."""
    owned = OwnershipRecord(OwnershipState.OWNED, "busy:1", None, 2)
    chosen = [choice("t/n/1", destination="idle:1"), choice("t/n/2"), choice("t/n/3", "idle:1")]
    table = OwnershipTable(records={"t/n/1": owned, "t/n/2": owned, "t/n/3": owned})
    written = plan_transfers(chosen, table.records, NOW)
    releasing = OwnershipRecord(OwnershipState.RELEASING, None, "busy:1", 3, NOW)
    assert written[:2] == (Written("t/n/1", replace(releasing, destination="idle:1")), Written("t/n/2", releasing))
    _, judged = table.read(written)
    assert [each.verdict.keeps for each in judged] == [False, False, True]


def test_the_extensible_leader_remembers_bundles_and_nodes() -> None:
    """A cycle before the node's next report would shed the same load again; a bundle that stayed changes nothing."""
    former, shedder = RecentlyUnloaded({"t/n/0": NOW - 1}), TransferShedder()
    ended = [
        EndedChoice(choice("t/n/1"), UnloadOutcome.UNLOADED),
        EndedChoice(choice("t/n/2", "idle:1"), UnloadOutcome.UNLOADED),
        EndedChoice(choice("t/n/3", "spare:1"), UnloadOutcome.FAILED),
        EndedChoice(choice("t/n/4", "spare:1"), UnloadOutcome.KEPT),
    ]
    recent, memory = after_unloads(shedder, TransferMemory(3, {"old:1": 5}), former, ended, NOW)
    assert recent == RecentlyUnloaded({"t/n/0": NOW - 1, "t/n/1": NOW, "t/n/2": NOW})
    assert memory == TransferMemory(3, {"old:1": 5, "busy:1": NOW, "idle:1": NOW})
    assert after_unloads(shedder, TransferMemory(3), former, [], NOW) == (former, TransferMemory(3))


def test_the_modular_leader_ends_the_plans_of_bundles_that_left_and_that_stayed() -> None:
    """Else the next request for a bundle would be answered by a plan for a load of long ago."""
    memory = AvgShedderMemory(plan={name: PlannedNode("idle:1", name) for name in ("t/n/1", "t/n/2", "t/n/3")})
    ended = [
        EndedChoice(choice("t/n/1"), UnloadOutcome.UNLOADED),
        EndedChoice(choice("t/n/2"), UnloadOutcome.KEPT),
    ]
    recent, memory = after_unloads(modular(AvgShedder()), memory, RecentlyUnloaded(), ended, NOW)
    assert memory.plan.keys() == {"t/n/3"}
    assert recent.bundle_ids == {"t/n/1"}
