"""What each decision says that it carried out itself, counted here once more from the tables before and after."""

from controlplane.core.cluster.policy import ClusterPolicy
from controlplane.core.log.apply import apply_all
from controlplane.core.log.decision import CauseKind
from controlplane.core.log.state import State
from tests.helpers.logs import complaints_of
from tests.helpers.world import World

NAMES = ("n1", "n2", "n3", "n4")


def test_without_a_pace_a_decision_carries_out_what_it_plans() -> None:
    """Joins, a death and a process that comes back empty: the certificate's numbers are those of the decision."""
    world = World(ClusterPolicy(slot_count=16))
    world.admit(*NAMES)
    world.run(4_000, NAMES[:3])
    world.join("n1", incarnation=7)
    world.run(1_000, NAMES[:3])
    planned = [each for each in world.decisions if each.certificate is not None]
    assert len(planned) >= 3
    for decision in planned:
        certificate = decision.certificate
        assert certificate is not None
        assert decision.moves_carried_out == certificate.moved
        assert decision.leader_changes_carried_out == certificate.leader_changes
        assert decision.moves_left == 0
    assert complaints_of(world.decisions) == []


def test_with_a_pace_each_decision_counts_what_it_carries_out_itself() -> None:
    """The plan's decision moves nothing yet, the ones that continue it do, and together they move what was planned."""
    world = World(ClusterPolicy(slot_count=16, cool_down_ms=1_000))
    world.admit("n1", "n2", "n3")
    world.admit("n4")
    plan = world.decisions[-1]
    assert plan.certificate is not None
    assert (plan.moves_carried_out, plan.moves_left) == (0, plan.certificate.moved)
    world.run(1_500, NAMES)
    continued = [
        each for each in world.decisions if any(cause.kind is CauseKind.PLAN_CONTINUED for cause in each.causes)
    ]
    assert sum(each.moves_carried_out for each in continued) == plan.certificate.moved
    assert sum(each.leader_changes_carried_out for each in continued) == plan.certificate.leader_changes
    assert continued[-1].moves_left == 0
    assert complaints_of(world.decisions) == []


def test_split_moves_nothing() -> None:
    """Each part begins with the holders of the slot that it was part of."""
    world = World(ClusterPolicy(slot_count=16))
    world.admit("n1", "n2")
    world.ask("change_policy", slot_count="32")
    split = world.decisions[-1]
    assert len(apply_all(State(), [event for each in world.decisions for event in each.events]).slots.table) == 32
    assert (split.moves_carried_out, split.leader_changes_carried_out) == (0, 0)
    assert complaints_of(world.decisions) == []
