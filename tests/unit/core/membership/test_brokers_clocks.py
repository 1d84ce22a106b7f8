"""Partitions whose brokers have clocks of their own, some seconds or an hour apart, or stepped while they work."""

import pytest

from controlplane.core.cluster.policy import SEVERAL_BROKERS_LEVEL, ClusterPolicy
from controlplane.core.deciding.decide import is_written
from controlplane.core.membership.events import FencingCause, NodeFenced
from tests.helpers.fencing_bounds import Bounds
from tests.helpers.world import World

NODES = ("n3", "n1", "n2")
"""They send their heartbeats to partitions 0, 1 and 2."""
NEWCOMER = "n6"
"""Its heartbeats go to partition 1."""
LIMIT_MS = 2_500
HOUR_MS = 3_600_000


def fenced(world: World) -> list[str]:
    """The nodes that were fenced for silence, in order."""
    events = [event for decision in world.decisions for event in decision.events]
    silence = FencingCause.SILENCE
    return [event.node_id for event in events if isinstance(event, NodeFenced) and event.cause is silence]


def world_with_clocks(ahead_ms: dict[int, int], level: int = SEVERAL_BROKERS_LEVEL) -> World:
    """A fleet that has lived for a while, with the clocks of some partitions ahead or behind from the beginning."""
    world = World(ClusterPolicy(slot_count=16, silence_limit_ms=LIMIT_MS), first_feature_level=level)
    world.ahead_ms = ahead_ms
    world.run(5_000)
    world.admit(*NODES)
    world.run(28_000, NODES)
    assert fenced(world) == []
    return world


SKEWS = [
    {place: sign * by_ms}
    for by_ms in (1_000, 5_000, 20_000, 30_000, HOUR_MS)
    for place, sign in ((0, 1), (1, 1), (1, -1), (2, 1), (0, -1))
]


@pytest.mark.parametrize("ahead_ms", SKEWS, ids=str)
@pytest.mark.parametrize("beats", [True, False])
def test_a_node_that_dies_right_after_joining_is_fenced_within_its_limit(ahead_ms: dict[int, int], beats: bool) -> None:
    """Whichever broker's clock is ahead; and no living node is fenced."""
    world = world_with_clocks(ahead_ms)
    world.join(NEWCOMER)
    if beats:
        world.heartbeat(NEWCOMER)
    world.run(300, NODES)
    assert world.state.membership.nodes[NEWCOMER].lives
    world.run(LIMIT_MS - 500, NODES)
    assert fenced(world) == []
    world.run(1_000, NODES)
    assert fenced(world) == [NEWCOMER]


@pytest.mark.parametrize("ahead_ms", SKEWS, ids=str)
def test_a_node_that_joins_again_is_not_fenced_for_the_time_before(ahead_ms: dict[int, int]) -> None:
    """Its silence before the admission counts by no clock."""
    world = world_with_clocks(ahead_ms)
    world.run(12_000, NODES[1:])
    assert fenced(world) == ["n3"]
    world.join("n3")
    world.run(LIMIT_MS - 1_000, NODES[1:])
    assert world.state.membership.nodes["n3"].lives
    world.run(5_000, NODES)
    assert fenced(world) == ["n3"]


@pytest.mark.parametrize("partition", [0, 1, 2])
@pytest.mark.parametrize("step_ms", [-HOUR_MS, HOUR_MS])
def test_a_clock_that_is_wrong_for_a_second_moves_log_time_by_a_gap_at_most(partition: int, step_ms: int) -> None:
    """Plans with a cool-down would otherwise stand for an hour."""
    world = world_with_clocks({})
    world.ask("refresh_table")
    offset_ms = world.state.decided_at_ms - world.now_ms
    world.ahead_ms = {partition: step_ms}
    world.run(1_000, NODES)
    world.ask("refresh_table")
    assert abs(world.state.decided_at_ms - world.now_ms - offset_ms) <= Bounds().overcounted_ms
    world.ahead_ms = {}
    world.run(3_000, NODES)
    world.ask("refresh_table")
    assert abs(world.state.decided_at_ms - world.now_ms - offset_ms) <= Bounds().overcounted_ms


def test_log_time_passes_as_fast_with_many_decisions_as_with_few() -> None:
    """It is the mean over the partitions, which tick at different moments; the greatest would run ahead of them."""
    world = world_with_clocks({})
    world.ask("refresh_table")
    offset_ms = world.state.decided_at_ms - world.now_ms
    for step in range(300):
        world.standing = {0, 1, 2} - {step % 3}
        world.tick(33)
        world.intent(f"refresh-{step}", "refresh_table")
        assert world.decide() is not None
    assert abs(world.state.decided_at_ms - world.now_ms - offset_ms) <= 500


def test_log_time_goes_on_while_a_partition_has_no_ticks() -> None:
    """It is slower then, by that partition's share, and a cool-down still ends."""
    world = world_with_clocks({})
    world.ask("refresh_table")
    before_ms = world.state.decided_at_ms
    world.standing = {0}
    world.run(9_000, NODES)
    world.ask("refresh_table")
    assert 5_500 <= world.state.decided_at_ms - before_ms <= 6_500


def test_a_take_over_does_not_stop_log_time() -> None:
    """As far back as observations reach, the time without a leader counts."""
    world = world_with_clocks({})
    world.ask("refresh_table")
    offset_ms = world.state.decided_at_ms - world.now_ms
    world.run(4_000, NODES)
    world.take_over(7_500)
    world.run(1_000, NODES)
    world.ask("refresh_table")
    assert abs(world.state.decided_at_ms - world.now_ms - offset_ms) <= 100


def test_a_node_that_moved_to_another_partition_is_fenced_in_a_quiet_cluster() -> None:
    """It was heard elsewhere than at home last; a decision without events dates its silence in both partitions."""
    world = world_with_clocks({1: HOUR_MS})
    world.ahead_ms = {}
    others = NODES[:2]
    for _ in range(12):
        world.append("heartbeats", 0, world.beat_of("n2"))
        world.run(1_000, others)
    decided = len(world.decisions)
    world.run(LIMIT_MS, others)
    assert fenced(world) == []
    world.run(LIMIT_MS + 500, others)
    assert fenced(world) == ["n2"]
    causes = [cause.evidence for decision in world.decisions[decided:] for cause in decision.causes]
    assert causes[0] == "dates the silence of n2, heard in another partition"


@pytest.mark.parametrize("ahead_ms", [-HOUR_MS, 0, HOUR_MS])
def test_the_report_of_a_node_that_moved_to_another_partition_is_its_latest(ahead_ms: int) -> None:
    """The broker of the partition in which it was heard before may be an hour ahead."""
    world = world_with_clocks({1: ahead_ms})
    former = world.beat_of("n1")
    world.append("heartbeats", 1, former)
    world.run(1_000, NODES[::2])
    world.ask("refresh_table")
    world.run(1_000, NODES[::2])
    world.append("heartbeats", 2, world.beat_of("n1", table_epoch=world.state.epoch))
    world.observe()
    reports = world.observations.slot_reports([("n1", 1)], world.state.slots.table, by_ticks=True)
    assert reports["n1"].table_epoch == world.state.epoch
    assert reports["n1"].sent_at_ms == former.sent_at_ms + 2_100


def leave_before_a_heartbeat_is_read(world: World) -> None:
    """A node leaves, and its last heartbeat, in a partition that is read late, is found 4 s after that."""
    world.tick(HOUR_MS)
    world.unread = {1}
    world.heartbeat("n1")
    world.left("n1")
    world.run(4_000, ("n3", "n2"))
    world.unread = set()
    world.run(4_000, ("n3", "n2"))


def test_a_heartbeat_from_before_its_sender_left_is_no_dead_letter() -> None:
    """Log time is an hour behind the brokers' clocks after an outage; ticks say which of the two came first."""
    world = world_with_clocks({})
    leave_before_a_heartbeat_is_read(world)
    assert world.reasons() == []
    world.heartbeat("n1")
    world.run(4_000, ("n3", "n2"))
    assert world.reasons() == ["left"]


def test_a_standby_drops_a_refusal_once_the_leader_has_written_its_letter() -> None:
    """When the positions are a silence limit behind the heartbeat, by the ticks of its partition."""
    world = world_with_clocks({})
    world.tick(HOUR_MS)
    world.heartbeat("stranger")
    world.run(LIMIT_MS + 500, NODES)
    (refusal,) = world.refusals
    assert refusal.reason == "never_joined"
    assert not is_written(world.state, world.observations, refusal)
    world.ask("refresh_table")
    assert is_written(world.state, world.observations, refusal)
