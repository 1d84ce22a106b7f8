"""Controllers and the slot policy of their cluster: who does not know it never leads, and a wrong one stops nobody."""

import time
from dataclasses import dataclass, field

import pytest
from structlog.testing import capture_logs

from controlplane.core.cluster.policy import ClusterPolicy
from controlplane.core.log.decision import CauseKind
from controlplane.core.slots.policies import BUILT_IN_POLICIES
from controlplane.core.slots.policies.minimal import MinimalPolicy
from controlplane.core.slots.policy_contract import SlotAnswer, SlotRequest
from controlplane.errors import ConfigurationError, StopError, UnknownSlotPolicyError
from controlplane.testing.memory_controllers import RunningController
from tests.helpers.logs import complaints_of
from tests.helpers.memory_cluster import ObservedCluster
from tests.helpers.polling import poll_until


@dataclass(frozen=True)
class Mine(MinimalPolicy):
    """A user's policy that fails when it is told to."""

    name = "mine"
    failing: list[bool] = field(default_factory=list)

    def plan(self, request: SlotRequest) -> SlotAnswer:
        """See :class:`controlplane.core.slots.policy_contract.SlotPolicy`."""
        if self.failing:
            raise ValueError("it does not work today")
        return SlotAnswer(super().plan(request).slots)


KNOWING = {**BUILT_IN_POLICIES, "mine": Mine()}


@pytest.fixture
def world() -> ObservedCluster:
    """A cluster whose first controller chooses the policy ``mine``; nobody runs yet."""
    world = ObservedCluster()
    world.policy = ClusterPolicy(slot_count=8, join_linger_ms=50, silence_limit_ms=800, slot_policy="mine")
    return world


def failure_of(controller: RunningController, kind: type[Exception]) -> str:
    """Why a controller ended."""
    poll_until(lambda: not controller.alive)
    assert isinstance(controller.failure, kind)
    return str(controller.failure)


def test_a_controller_that_does_not_know_the_policy_ends_and_disturbs_nobody(world: ObservedCluster) -> None:
    """It would fence a leader that can decide, for nothing; an observer needs no policy."""
    with world:
        world.start("knowing", slot_policies=KNOWING)
        world.join("n1", "n2")
        world.wait_until(lambda: set(world.owners().values()) == {"n1", "n2"})
        observer = world.start("observer", follow_only=True)
        unknowing = world.start("unknowing")
        assert "slot policy 'mine' is not known here; known are" in failure_of(unknowing, UnknownSlotPolicyError)
        world.controllers.remove(unknowing)
        world.join("n3")
        world.wait_until(lambda: set(world.owners().values()) == {"n1", "n2", "n3"})
        assert observer.alive
        assert {(decision.term, decision.controller_id) for decision in world.decisions()} == {(1, "knowing")}
        assert complaints_of(world.decisions()) == []


def test_a_controller_that_does_not_know_the_policy_never_opens_a_term(world: ObservedCluster) -> None:
    """Also where nobody else could: the lease is free, the log is whole, and it ends."""
    with world:
        first = world.start("knowing", slot_policies=KNOWING)
        world.wait_until(world.decisions)
        first.end()
        before = world.decisions()
        failure_of(world.start("unknowing"), UnknownSlotPolicyError)
        assert world.decisions() == before


@pytest.mark.parametrize(
    ("policy", "kind"),
    [
        (ClusterPolicy(slot_count=8, slot_policy="theirs"), UnknownSlotPolicyError),
        (ClusterPolicy(slot_count=8, slot_policy_options={"a": "1"}), ConfigurationError),
    ],
)
def test_no_cluster_is_created_that_its_creator_could_not_lead(
    world: ObservedCluster, policy: ClusterPolicy, kind: type[Exception]
) -> None:
    """A name or an option that is mistyped is found before anything is written."""
    world.policy = policy
    with world:
        failure_of(world.start("creator", slot_policies=KNOWING), kind)
        assert world.decisions() == []


def test_a_leader_goes_on_under_a_policy_that_fails(world: ObservedCluster) -> None:
    """A death is decided all the same, the log and the log lines say why the table is so, and nobody is fenced."""
    failing: list[bool] = []
    with world, capture_logs() as lines:
        leader = world.start("c1", slot_policies={"mine": Mine(failing)})
        world.join("n1", "n2", "n3")
        world.wait_until(lambda: set(world.owners().values()) == {"n1", "n2", "n3"})
        failing.append(True)
        world.silence("n2")
        world.wait_until(lambda: set(world.owners().values()) == {"n1", "n3"})
        failing.clear()
        world.join("n4")
        world.wait_until(lambda: set(world.owners().values()) == {"n1", "n3", "n4"})
        assert leader.alive
        refused = [
            cause
            for decision in world.decisions()
            for cause in decision.causes
            if cause.kind is CauseKind.PLACEMENT_REFUSED
        ]
        assert [cause.subject for cause in refused] == ["mine"]
        assert refused[0].evidence.endswith(": it does not work today")
        told = [line for line in lines if line["event"] == "slot policy refused"]
        assert [(line["log_level"], line["reason"]) for line in told] == [("error", refused[0].evidence)]
        assert complaints_of(world.decisions()) == []


def test_moves_are_counted_also_without_a_certificate(world: ObservedCluster) -> None:
    """The line of a decision says how much it moved, whoever planned it."""
    with world, capture_logs() as lines:
        world.start("c1", slot_policies=KNOWING)
        world.join("n1")
        world.wait_until(lambda: set(world.owners().values()) == {"n1"})
        time.sleep(0.1)
    moved = [line["moves_carried_out"] for line in lines if line["event"] == "decision committed"]
    assert moved == [0, 8]


def test_every_refusal_to_lead_is_a_stop() -> None:
    """Supervisors must not restart such a controller for ever: it is not out of reach, it is wrong."""
    assert issubclass(UnknownSlotPolicyError, StopError)
