"""What a leader says of a slot policy that cannot make a table, and when it repairs the topic of its table."""

from collections.abc import Mapping
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import structlog
from prometheus_client import CollectorRegistry

from controlplane.core.cluster.events import TermOpened
from controlplane.core.cluster.policy import FEATURE_LEVEL, ClusterPolicy
from controlplane.core.deciding.decide import DecideResult
from controlplane.core.deciding.observations import Observations, observe
from controlplane.core.log.decision import CauseKind
from controlplane.core.log.draft import Draft
from controlplane.core.log.state import State
from controlplane.core.routing.repair import TableDamage
from controlplane.core.routing.topic_image import TopicImage
from controlplane.core.slots.policies import BUILT_IN_POLICIES
from controlplane.core.values.identifiers import Term, TopicPartition
from controlplane.ports import CommitOutcome
from controlplane.service.leadership import Leadership
from controlplane.service.metrics import ControllerMetrics
from controlplane.service.publisher import TablePublisher
from controlplane.service.waiting_refusals import WaitingRefusals
from controlplane.testing import VirtualClock
from tests.helpers.sofa_fleet import SofaFleet
from tests.helpers.world import World


class FixedIntake:
    """Observations that a test gives, in the place of those that an input reader reads."""

    def __init__(self, observations: Observations) -> None:
        self.observations = observations

    def decided(self, result: DecideResult, gates: Mapping[TopicPartition, int]) -> None:
        """Keep what is left to be looked at."""
        self.observations = result.observations

    @property
    def refusals(self) -> WaitingRefusals:
        """Every input is in order."""
        return WaitingRefusals(VirtualClock())

    def catch_up_with(self, state: State) -> None:
        """Nothing is kept for later."""

    def lacks_partitions(self) -> bool:
        """Every partition is read."""
        return False


def refusing_fleet() -> SofaFleet:
    """Three replicas of each slot, and then a policy of two: SOFARegistry's classes throw."""
    fleet = SofaFleet(replicas=3)
    for name in ("a", "b", "c"):
        fleet.join(name)
    fleet.run(6_000)
    world = fleet.world
    draft = Draft(world.state)
    draft.because(CauseKind.TERM_OPENED, "c2", "term 2")
    draft.add(TermOpened(Term(2), "c2", "test", FEATURE_LEVEL, replace(world.state.cluster.policy, replica_count=2)))
    world.commit(draft.seal(world.now_ms, {}))
    return fleet


def test_a_refusal_is_said_once_and_shown_and_changes_nothing() -> None:
    """A controller that said it with every tick would bury everything else; one that stopped would help nobody."""
    fleet = refusing_fleet()
    world = fleet.world
    slots = world.state.slots.table
    input_reader: Any = FixedIntake(world.observations)
    letters: Any = SimpleNamespace(write=lambda refusals: None, listen=lambda: None, gates=lambda positions: {})
    unused: Any = None
    registry = CollectorRegistry()
    leadership = Leadership(
        world.state,
        BUILT_IN_POLICIES,
        unused,
        unused,
        input_reader,
        letters,
        VirtualClock(),
        ControllerMetrics(registry),
    )
    with structlog.testing.capture_logs() as said:
        for _ in range(20):
            read = len(world.inputs)
            world.tick(100)
            input_reader.observations = observe(input_reader.observations, world.inputs[read:])
            assert leadership.decide() is None
    (error,) = [line for line in said if line["log_level"] == "error"]
    assert "has more than 1 followers" in error["reason"]
    assert registry.get_sample_value("controlplane_slots_refused") == 1
    assert leadership.state.slots.table == slots


def test_a_decision_about_something_else_says_that_the_slots_were_left_alone() -> None:
    """Whoever looks at the log for the reason finds it where he would have expected the moves."""
    fleet = refusing_fleet()
    fleet.world.join("d")
    fleet.run(1_000)
    causes = {cause.kind: cause.evidence for cause in fleet.world.decisions[-1].causes}
    assert causes[CauseKind.PLACEMENT_REFUSED].startswith("slot 0 has more than 1 followers")
    assert fleet.actions[-1] == "refused"


def damaged_leadership(world: World) -> tuple[Leadership, FixedIntake]:
    """A leader that has found its table damaged, and its inputs."""
    world.observe()
    intake = FixedIntake(world.observations)
    unused: Any = SimpleNamespace(
        listen=lambda: None,
        gates=lambda positions: {},
        write=lambda refusals: None,
        flush=lambda timeout_ms: None,
        commit=lambda records: CommitOutcome.COMMITTED,
    )
    input_reader: Any = intake
    leadership = Leadership(
        world.state,
        BUILT_IN_POLICIES,
        unused,
        TablePublisher.of(world.state),
        input_reader,
        unused,
        VirtualClock(),
        ControllerMetrics(CollectorRegistry()),
    )
    image = TopicImage(world.state.log_id)
    watch: Any = SimpleNamespace(
        damage=lambda state, publisher: TableDamage(["main/slot/3"], image),
        image=image,
        damaged_epoch=world.state.epoch,
    )
    assert leadership.decide() is None
    leadership.watch_table(watch)
    return leadership, intake


def test_a_damaged_table_is_repaired_although_inputs_keep_coming() -> None:
    """With thousands of nodes no poll is without a record, so a repair must not wait for one."""
    world = World(ClusterPolicy(slot_count=8))
    world.admit("n1")
    leadership, intake = damaged_leadership(world)
    epoch, slots = world.state.epoch, world.state.slots.table
    world.tick(100)
    world.observe()
    intake.observations = world.observations
    assert leadership.decide() is CommitOutcome.COMMITTED
    assert leadership.state.epoch == epoch + 1
    assert leadership.state.slots.table == slots
    world.tick(100)
    world.observe()
    intake.observations = world.observations
    assert leadership.decide() is None


def test_a_decision_that_is_due_goes_before_a_repair() -> None:
    """It writes the whole table as well, so that no fencing waits for a repair."""
    world = World(ClusterPolicy(slot_count=8))
    world.admit("n1")
    leadership, intake = damaged_leadership(world)
    world.intent("asked", "create_namespace", namespace="kv")
    world.tick(100)
    world.observe()
    intake.observations = world.observations
    assert leadership.decide() is CommitOutcome.COMMITTED
    assert "asked" in leadership.state.intents.answered.values()
