"""Examples that explain what the leader decides; the properties beside them carry the weight."""

from dataclasses import replace

import pytest

from controlplane.config import HEARTBEATS, MEMBERSHIP
from controlplane.core.cluster.policy import ClusterPolicy
from controlplane.core.deciding.decide import decide, follow_up
from controlplane.core.deciding.observations import Observations, observe
from controlplane.core.intents.events import IntentAnswered, IntentOutcome
from controlplane.core.intents.intent import IntentKind
from controlplane.core.log.decision import CauseKind
from controlplane.core.membership.events import FencingCause, NodeFenced
from controlplane.core.membership.inputs import Heartbeat, NodeLeaving, NodeLeft
from controlplane.core.membership.node import PROCESSES_FROM_LEVEL, NodeRole, NodeStatus
from controlplane.core.slots.table import by_node
from controlplane.core.values.identifiers import Epoch, TopicPartition
from controlplane.core.values.partitioning import partition_of
from tests.helpers.logs import complaints_of
from tests.helpers.world import PARTITIONS, World


def causes(decision: object) -> list[CauseKind]:
    """The kinds of a decision's causes."""
    return [cause.kind for cause in decision.causes]  # type: ignore[attr-defined]


def test_a_burst_of_joins_becomes_one_epoch() -> None:
    """Joins within the linger share one decision, so that readers see one table instead of many."""
    world = World()
    for node_id in ("n1", "n2", "n3"):
        world.join(node_id)
        world.heartbeat(node_id)
        world.tick(50)
        world.decide()
    assert world.state.epoch == 1
    taken = world.run(200, ("n1", "n2", "n3"))
    assert [causes(decision) for decision in taken] == [[CauseKind.NODE_JOINED] * 3]
    assert world.state.epoch == 2
    assert {
        node_id: len(held.leads) + len(held.follows) for node_id, held in by_node(world.state.slots.table).items()
    } in (
        {"n1": 11, "n2": 11, "n3": 10},
        {"n1": 11, "n2": 10, "n3": 11},
        {"n1": 10, "n2": 11, "n3": 11},
    )


def test_a_silent_node_is_fenced_and_its_slots_move() -> None:
    """Silence over the limit fences; the certificate says that no more moved than had to."""
    world = World()
    world.admit("n1", "n2", "n3")
    held = by_node(world.state.slots.table)["n3"]
    taken = world.run(4_000, ("n1", "n2"))
    assert [causes(decision) for decision in taken] == [[CauseKind.NODE_EXPIRED]]
    assert world.state.membership.nodes["n3"].status is NodeStatus.FENCED
    certificate = taken[0].certificate
    assert certificate is not None
    assert certificate.moved == certificate.least_moved == len(held.leads) + len(held.follows)
    assert "n3" not in by_node(world.state.slots.table)


def test_node_that_left_and_came_back_at_once_holds_nothing_of_before() -> None:
    """Its new process has no data, also where its leaving and its join are taken up in one decision."""
    world = World()
    world.admit("n1", "n2", "n3")
    before = world.state.slots.table
    world.left("n1")
    world.join("n1", incarnation=2)
    (taken,) = world.run(400, ("n2", "n3"))
    assert causes(taken) == [CauseKind.NODE_LEFT, CauseKind.NODE_JOINED]
    for old, new in zip(before, world.state.slots.table, strict=True):
        if old.leader == "n1":
            assert new.leader in old.followers or new.leader_epoch == taken.epoch
    held = by_node(world.state.slots.table)["n1"]
    assert taken.certificate is not None
    assert taken.certificate.moved == len(held.leads) + len(held.follows)


@pytest.mark.parametrize("paused", [False, True])
def test_new_process_never_serves_under_the_former_token(*, paused: bool) -> None:
    """SOFARegistry's rules may leave its rows as they are. Its former process may serve until it reads of its end."""
    world = World(ClusterPolicy(slot_count=4, slot_policy="sofa", slot_policy_options={"protected_nodes": "3"}))
    world.admit("n1", "n2", "n3", "n4")
    if paused:
        world.ask("pause_reconciliation")
    world.left("n4")
    before = world.state.slots.table
    world.join("n1", incarnation=2)
    decision = world.run(400, ("n2", "n3"))[-1]
    assert {slot.leader for slot in before} >= {"n1", "n2"}
    for old, new in zip(before, world.state.slots.table, strict=True):
        assert new == (replace(old, leader_epoch=decision.epoch) if old.leader == "n1" else old)
    assert complaints_of(world.decisions) == []


def test_detection_takes_the_silence_limit_and_no_more_than_two_ticks() -> None:
    """The limit is counted in log time from the last heartbeat."""
    world = World()
    world.admit("n1", "n2", "n3")
    world.heartbeat("n3")
    heard_at_ms = world.now_ms
    world.run(4_000, ("n1", "n2"))
    fenced = next(e for e in world.decisions[-1].events if isinstance(e, NodeFenced))
    assert (
        world.state.cluster.policy.silence_limit_ms
        < fenced.at_ms - heard_at_ms
        <= world.state.cluster.policy.silence_limit_ms + 200
    )


def test_an_outage_makes_nobody_silent() -> None:
    """Thirty seconds without ticks count as one gap of 200 ms at most: the log was away, not the nodes."""
    world = World()
    world.admit("n1", "n2", "n3")
    world.run(1_000, ("n1", "n2", "n3"))
    world.tick(30_000)
    assert world.decide() is None
    assert world.run(2_000, ("n1", "n2", "n3")) == []


def test_a_partition_that_is_read_late_fences_nobody() -> None:
    """A reader that begins reads partitions at its own pace: a node's heartbeats may stand in one not read yet."""
    world = World()
    world.admit("n1", "n2", "n3")
    world.run(8_000, ("n1", "n2", "n3"))
    since_ms = world.now_ms - 7_000
    recent = [record for record in world.inputs if record.coordinates.append_time_ms >= since_ms]
    positions = {TopicPartition("heartbeats", partition): 0 for partition in range(3)}
    for late in range(3):
        read = [record for record in recent if record.coordinates.partition != late]
        begun = observe(Observations(positions=positions), read)
        assert decide(world.state, begun).sealed is None, f"partition {late} was not read yet"
        assert decide(world.state, observe(begun, recent)).sealed is None


def test_a_fenced_node_has_to_join_again() -> None:
    """Heartbeats alone never readmit; a join with the same incarnation does."""
    world = World()
    world.admit("n1", "n2", "n3")
    world.run(4_000, ("n1", "n2"))
    world.run(4_000, ("n1", "n2", "n3"))
    silent = world.state.membership.nodes["n3"]
    assert silent.status is NodeStatus.FENCED
    assert "fenced" in world.reasons()
    world.join("n3")
    world.run(3_000, ("n1", "n2", "n3"))
    assert world.state.membership.nodes["n3"].status is NodeStatus.ACTIVE


def test_another_process_of_the_same_incarnation_is_refused() -> None:
    """Two processes started at once on clocks that are behind: the one that was admitted stays."""
    world = World()
    world.join("n1", incarnation=5, process_id="first")
    world.run(300)
    world.join("n1", incarnation=5, process_id="second")
    beat = Heartbeat("n1", 5, world.now_ms, Epoch(0), NodeRole.DATA, process_id="second")
    world.append(HEARTBEATS, partition_of(b"n1", PARTITIONS), beat)
    world.append(MEMBERSHIP, 0, NodeLeaving("n1", 5, "its end", "second"))
    world.append(MEMBERSHIP, 0, NodeLeft("n1", 5, "its end", "second"))
    world.join("n2")
    world.run(300)
    assert world.reasons() == ["another_process"] * 4
    node = world.state.membership.nodes["n1"]
    assert (node.status, node.process_id) == (NodeStatus.ACTIVE, "first")


def test_another_process_of_the_same_incarnation_takes_the_place_of_one_that_left() -> None:
    """The first one joined and left within one decision, so that no row of the table ever told the second one of it."""
    world = World()
    world.admit("n2")
    world.join("n1", incarnation=5, process_id="first")
    world.append(MEMBERSHIP, 0, NodeLeft("n1", 5, "stop", "first"))
    world.join("n1", incarnation=5, process_id="second")
    world.run(300, ("n2",))
    node = world.state.membership.nodes["n1"]
    assert (node.status, node.process_id) == (NodeStatus.ACTIVE, "second")
    assert world.reasons() == []
    world.append(MEMBERSHIP, 0, NodeLeft("n1", 5, "stop", "second"))
    world.join("n1", incarnation=5, process_id="second")
    world.run(300, ("n2",))
    assert world.reasons() == ["left"], "a process that left does not come back"


@pytest.mark.parametrize("is_alive", [True, False])
def test_heartbeats_of_another_process_neither_keep_a_node_alive_nor_hide_it(is_alive: bool) -> None:
    """The process that was admitted counts alone, whichever of the two was heard last."""
    world = World()
    world.join("n2")
    world.join("n1", incarnation=5, process_id="first")
    world.run(300)
    place = partition_of(b"n1", PARTITIONS)
    for _ in range(8):
        first = Heartbeat("n1", 5, world.now_ms, Epoch(0), NodeRole.DATA, process_id="first")
        if is_alive:
            world.append(HEARTBEATS, place, first)
        world.append(HEARTBEATS, place, first._replace(process_id="second"))
        world.run(1_000, ("n2",))
    assert world.state.membership.nodes["n1"].lives is is_alive
    assert set(world.reasons()) == {"another_process"}


def test_a_process_that_was_fenced_joins_again_and_no_other_in_its_place() -> None:
    """Both may still run, and the one that was admitted holds data."""
    world = World()
    world.join("n1", incarnation=5, process_id="first")
    world.admit("n2", "n3")
    world.run(4_000, ("n2", "n3"))
    assert not world.state.membership.nodes["n1"].lives
    world.join("n1", incarnation=5, process_id="second")
    world.run(500, ("n2", "n3"))
    assert world.reasons() == ["another_process"]
    world.join("n1", incarnation=5, process_id="first")
    world.run(500, ("n2", "n3"))
    node = world.state.membership.nodes["n1"]
    assert (node.lives, node.process_id) == (True, "first")


def test_below_the_level_no_process_is_in_the_log() -> None:
    """Readers of that level could not read the decision."""
    world = World(first_feature_level=PROCESSES_FROM_LEVEL - 1)
    world.join("n1", incarnation=5, process_id="first")
    world.run(300)
    assert world.state.membership.nodes["n1"].process_id == ""


def test_an_older_incarnation_is_refused() -> None:
    """A process that was replaced neither joins nor keeps its successor alive."""
    world = World()
    world.join("n1", incarnation=5)
    world.join("n2")
    world.run(300)
    world.join("n1", incarnation=4)
    world.heartbeat("n1", incarnation=4)
    world.run(300)
    assert world.reasons() == ["older_incarnation", "older_incarnation"]
    assert world.state.membership.nodes["n1"].incarnation == 5


def test_a_heartbeat_without_a_join_waits_one_silence_limit() -> None:
    """The two topics have no common order, so the refusal comes only when the join had time to come."""
    world = World()
    world.admit("n1")
    world.heartbeat("stranger")
    world.run(2_000, ("n1",))
    assert world.refusals == []
    world.run(1_000, ("n1",))
    assert world.reasons() == ["never_joined"]


def test_a_greater_incarnation_replaces_the_process_and_it_begins_empty() -> None:
    """The new process holds nothing of what the old one held, so its slots get leaders that have the data."""
    world = World()
    world.admit("n1", "n2")
    led = by_node(world.state.slots.table)["n1"].leads
    world.join("n1", incarnation=2)
    (decision,) = world.run(300, ("n1", "n2"))
    assert [event.cause for event in decision.events if isinstance(event, NodeFenced)] == [FencingCause.SUPERSEDED]
    epochs = {world.state.slots.table[slot_id].leader_epoch for slot_id in led}
    assert epochs == {decision.epoch}


def test_a_leaving_node_is_relieved_and_then_forgotten_by_the_table() -> None:
    """Leaving moves everything away while the node still lives; left removes its row."""
    world = World()
    world.admit("n1", "n2", "n3")
    world.leave("n3")
    (relieved,) = world.run(100)
    assert causes(relieved) == [CauseKind.NODE_LEAVING]
    assert "n3" not in by_node(world.state.slots.table)
    world.left("n3")
    world.run(100)
    assert world.state.membership.nodes["n3"].status is NodeStatus.LEFT


def test_the_last_node_that_leaves_keeps_its_slots_until_it_has_left() -> None:
    """Better served by a leaving node than by nobody."""
    world = World()
    world.admit("n1")
    world.leave("n1")
    world.run(100)
    assert len(by_node(world.state.slots.table)["n1"].leads) == 16
    world.left("n1")
    world.run(100)
    assert all(slot.leader is None for slot in world.state.slots.table)


def test_session_nodes_own_nothing() -> None:
    """Members with the role session use the table only."""
    world = World()
    world.join("s1", role=NodeRole.SESSION)
    world.admit("n1")
    assert set(by_node(world.state.slots.table)) == {"n1"}
    assert world.state.membership.nodes["s1"].status is NodeStatus.ACTIVE


def test_too_many_silent_nodes_freeze_evictions_until_they_are_back() -> None:
    """Self-preservation: when most of the fleet falls silent at once, the fault is more likely ours."""
    world = World()
    nodes = ("n1", "n2", "n3", "n4")
    world.admit(*nodes)
    taken = world.run(5_000, ("n1",))
    assert [causes(decision) for decision in taken] == [[CauseKind.EVICTIONS_FROZEN]]
    assert world.state.membership.evictions_frozen
    taken = world.run(3_000, nodes)
    assert [causes(decision) for decision in taken] == [[CauseKind.EVICTIONS_RESUMED]]
    assert all(node.status is NodeStatus.ACTIVE for node in world.state.membership.nodes.values())


def test_an_operator_overrides_self_preservation() -> None:
    """The nodes that are silent at that moment are fenced, and the intent is answered in the log."""
    world = World()
    world.admit("n1", "n2", "n3", "n4")
    world.run(5_000, ("n1",))
    world.intent("i1", IntentKind.OVERRIDE_SELF_PRESERVATION.value)
    (decision,) = world.run(100)
    assert causes(decision).count(CauseKind.NODE_EXPIRED) == 3
    assert world.state.intents.has_answered("i1")
    assert not world.state.membership.evictions_frozen
    told = [event.detail for event in decision.events if isinstance(event, IntentAnswered)]
    assert told == ["3 silent nodes fenced: n2, n3, n4"]
    assert world.ask("override_self_preservation").detail == "no node was silent: none is fenced"


def test_a_namespace_gets_four_equal_bundles_with_owners() -> None:
    """Bundles go to the node with the fewest and move only when their owner is gone."""
    world = World()
    world.admit("n1", "n2")
    world.intent("i1", IntentKind.CREATE_NAMESPACE.value, namespace="kv")
    world.run(100, ("n1", "n2"))
    owners = [bundle.owner for bundle in world.state.bundles.by_id.values()]
    assert sorted(map(str, owners)) == ["n1", "n1", "n2", "n2"]
    before = dict(world.state.bundles.by_id)
    world.admit("n3")
    assert world.state.bundles.by_id == before
    world.leave("n1")
    world.run(100)
    assert {bundle.owner for bundle in world.state.bundles.by_id.values()} <= {"n2", "n3"}
    assert all(world.state.bundles.by_id[key].owner == "n2" for key, old in before.items() if old.owner == "n2")


@pytest.mark.parametrize(
    ("kind", "arguments"),
    [("create_namespace", {"namespace": "No Such Name!"}), ("create_namespace", {}), ("make_coffee", {})],
)
def test_an_impossible_intent_is_answered_with_its_reason(kind: str, arguments: dict[str, str]) -> None:
    """An operator always gets an answer in the log, and nothing else changes."""
    world = World()
    world.admit("n1")
    world.intent("i1", kind, **arguments)
    epoch = world.state.epoch
    (decision,) = world.run(100, ("n1",))
    (answer,) = decision.events
    assert answer.outcome is IntentOutcome.REFUSED  # type: ignore[union-attr]
    assert world.state.epoch == epoch
    world.intent("i1", kind, **arguments)
    assert world.run(100, ("n1",)) == []


def test_a_quiet_cluster_writes_its_positions() -> None:
    """A decision with positions alone bounds what a cold start has to read; it changes no row, hence no epoch."""
    world = World(ClusterPolicy(slot_count=16, positions_interval_ms=5_000))
    world.admit("n1")
    epoch = world.state.epoch
    taken = world.run(5_500, ("n1",))
    assert [causes(decision) for decision in taken] == [[CauseKind.POSITIONS]]
    assert world.state.epoch == epoch
    assert world.state.positions["heartbeats[0]"] > 0


def test_a_heartbeat_whose_join_waits_for_a_leader_is_not_refused() -> None:
    """Without a leader nobody takes joins up; that is no fault of the nodes."""
    world = World()
    world.join("n1")
    world.heartbeat("n1")
    for _ in range(40):
        world.tick()
    observations = observe(world.observations, world.inputs)
    settled, refusals = follow_up(world.state, observations)
    assert refusals == ()
    (stranger,) = [record.payload for record in settled.unknown_senders]
    assert isinstance(stranger, Heartbeat)
    assert stranger.node_id == "n1"
