"""A silence limit that changes while nodes are cut off: no node is fenced while it may still serve."""

from controlplane.core.cluster.events import FormerSilenceLimitEnded
from controlplane.core.cluster.policy import SEVERAL_BROKERS_LEVEL, SILENCE_MARGIN_MS, ClusterPolicy, FormerSilenceLimit
from controlplane.core.intents.events import IntentOutcome
from controlplane.core.membership.events import NodeFenced
from controlplane.core.membership.node import NodeRole, NodeStatus
from controlplane.core.membership.rows import NodeRow
from controlplane.core.session.messages import HeartbeatAcknowledged, TableChanged, TableConfirmed, TableRead
from controlplane.core.session.node_session import NodeSession, SessionSettings
from controlplane.core.session.silence import valid_for_ms
from tests.helpers.world import World

LONG_MS, SHORT_MS = 10_000, 2_000


def cut_off_world() -> World:
    """Three nodes under a long limit; from now on the first is cut off, and the limit is shortened."""
    world = World(ClusterPolicy(slot_count=16, silence_limit_ms=LONG_MS))
    world.admit("n1", "n2", "n3")
    world.run(1_000, ("n1", "n2", "n3"))
    world.ask("change_policy", silence_limit_ms=str(SHORT_MS))
    return world


def fenced_after_ms(world: World, node_id: str, limit_ms: int = 30_000) -> int:
    """How long a node that is silent from now on goes unfenced."""
    began_ms = world.now_ms
    beating = tuple(name for name in ("n1", "n2", "n3") if name != node_id)
    while world.state.membership.nodes[node_id].status is not NodeStatus.FENCED:
        assert world.now_ms - began_ms < limit_ms
        world.run(1_000, beating)
    fenced_at_ms = [event.at_ms for event in world.decisions[-1].events if isinstance(event, NodeFenced)]
    (at_ms,) = fenced_at_ms or [world.now_ms]
    return at_ms - began_ms


def test_node_that_knows_the_long_limit_only_is_fenced_after_it() -> None:
    """Its agent, cut off before the change, serves until shortly before the long limit is over."""
    world = cut_off_world()
    session = NodeSession(SessionSettings())
    session.on_event(0, TableRead(0, 1))
    row = NodeRow("n1", 1, NodeRole.DATA, NodeStatus.ACTIVE, (), "", 1, "")
    session.on_event(0, TableChanged(row, LONG_MS))
    session.on_event(0, HeartbeatAcknowledged(0))
    session.on_event(0, TableConfirmed(0))
    # The cut comes with the change at the latest: from the change on the agent's clock and the log's run alike.
    assert session.serve_until_ms == valid_for_ms(LONG_MS, SessionSettings().self_fencing_margin_ms)
    assert fenced_after_ms(world, "n1") >= session.serve_until_ms


def test_short_limit_fences_once_the_long_one_is_over() -> None:
    """A decision says when; from then on a death is noticed after the short limit."""
    world = cut_off_world()
    nodes = ("n1", "n2", "n3")
    assert world.state.cluster.silence_limit_ms == LONG_MS
    world.run(LONG_MS, nodes)
    assert world.state.cluster.silence_limit_ms == LONG_MS
    world.run(SILENCE_MARGIN_MS + 200, nodes)
    assert world.state.cluster.silence_limit_ms == SHORT_MS
    events = [event for decision in world.decisions for event in decision.events]
    assert FormerSilenceLimitEnded(SHORT_MS) in events
    assert fenced_after_ms(world, "n2") <= SHORT_MS + 1_200


def test_stepped_clock_does_not_shorten_the_wait() -> None:
    """The wait is counted by ticks, as the silence of the node is that may still serve."""
    world = cut_off_world()
    world.tick(3_600_000)
    world.decide()
    world.run(SHORT_MS + 1_000, ("n2", "n3"))
    assert world.state.cluster.silence_limit_ms == LONG_MS
    assert world.state.membership.nodes["n1"].status is NodeStatus.ACTIVE


def test_new_leader_waits_at_least_as_long() -> None:
    """It may have begun to observe only after the change, and then counts from there."""
    world = cut_off_world()
    fresh = World(ClusterPolicy(slot_count=16))
    fresh.state, fresh.now_ms, fresh.offsets = world.state, world.now_ms, world.offsets
    fresh.run(LONG_MS, ("n1", "n2", "n3"))
    assert fresh.state.cluster.silence_limit_ms == LONG_MS


def test_longer_limit_fences_later_at_once() -> None:
    """Agents stop earlier than they have to for a while: nothing has to wait."""
    world = World(ClusterPolicy(slot_count=16, silence_limit_ms=SHORT_MS))
    world.admit("n1", "n2", "n3")
    world.ask("change_policy", silence_limit_ms=str(LONG_MS))
    assert (world.state.cluster.silence_limit_ms, world.state.cluster.former_silence_limit) == (LONG_MS, None)


def test_below_level_3_limit_is_not_shortened_while_the_time_since_then_cannot_be_counted() -> None:
    """Partition 0 counts it; read on later, it would bring time from before the change."""
    world = World(ClusterPolicy(slot_count=16, silence_limit_ms=LONG_MS), first_feature_level=2)
    world.admit("n1", "n2", "n3")
    world.unread = {0}
    world.run(2_000, ("n1", "n2", "n3"))
    answer = world.ask("change_policy", silence_limit_ms=str(SHORT_MS))
    assert answer.outcome is IntentOutcome.REFUSED
    assert "partition 0" in answer.detail
    world.unread = set()
    world.run(200, ("n1", "n2", "n3"))
    assert world.ask("change_policy", silence_limit_ms=str(SHORT_MS)).outcome is IntentOutcome.DONE


def test_limits_that_fall_twice_wait_for_the_longest() -> None:
    """A second shortening waits anew, for the longest limit that anybody may know; a lengthening ends the waiting."""
    world = cut_off_world()
    offset = world.offsets["heartbeats", 0]
    world.ask("change_policy", silence_limit_ms="1000")
    former = world.state.cluster.former_silence_limit
    assert former is not None
    assert (former.limit_ms, former.since_offset >= offset) == (LONG_MS, True)
    world.ask("change_policy", protected_ratio="0.4")
    assert world.state.cluster.former_silence_limit == former
    world.ask("change_policy", silence_limit_ms="5000")
    assert world.state.cluster.former_silence_limit is not None
    world.ask("change_policy", silence_limit_ms=str(LONG_MS))
    assert world.state.cluster.former_silence_limit is None


def test_former_limit_that_ends_is_let_go_of() -> None:
    """The state says what fences: the longer of the two."""
    world = cut_off_world()
    assert isinstance(world.state.cluster.former_silence_limit, FormerSilenceLimit)
    world.run(LONG_MS + SILENCE_MARGIN_MS + 300, ("n1", "n2", "n3"))
    assert world.state.cluster.former_silence_limit is None


def test_longest_limit_settles_too() -> None:
    """Ticks are remembered for longer than the longest limit and its margin."""
    world = World(ClusterPolicy(slot_count=16, silence_limit_ms=20_000))
    world.admit("n1", "n2", "n3")
    world.ask("change_policy", silence_limit_ms="500")
    world.run(20_000 + SILENCE_MARGIN_MS + 300, ("n1", "n2", "n3"))
    assert world.state.cluster.silence_limit_ms == 500


def heard(world: World, elapsed_ms: int, epochs: dict[str, int]) -> None:
    """Let time pass; the nodes send heartbeats that carry these epochs."""
    for _ in range(0, elapsed_ms, 500):
        for node_id, epoch in epochs.items():
            world.heartbeat(node_id, table_epoch=epoch)
        world.run(500)


def test_short_limit_fences_as_soon_as_every_member_knows_it() -> None:
    """Each heartbeat says which table its sender uses: nothing has to be waited for."""
    world = cut_off_world()
    shows = world.state.epoch
    heard(world, 500, dict.fromkeys(("n1", "n2", "n3"), shows))
    assert world.state.cluster.silence_limit_ms == SHORT_MS


def test_member_that_is_heard_and_reads_an_older_table_keeps_the_long_limit() -> None:
    """A broker that lost the table's partition and does not know it shows the node the long limit."""
    world = cut_off_world()
    shows = world.state.epoch
    heard(world, 2 * LONG_MS, {"n1": shows - 1, "n2": shows, "n3": shows})
    assert world.state.cluster.silence_limit_ms == LONG_MS
    heard(world, 500, dict.fromkeys(("n1", "n2", "n3"), shows))
    assert world.state.cluster.silence_limit_ms == SHORT_MS


def test_cut_off_member_delays_the_short_limit_by_the_long_one() -> None:
    """It has stopped by then. Evictions are frozen, so it is still a member."""
    world = World(ClusterPolicy(slot_count=16, silence_limit_ms=LONG_MS, protection_window_ms=60_000))
    world.admit("n1", "n2", "n3")
    heard(world, LONG_MS + 2_000, {"n1": world.state.epoch, "n2": world.state.epoch})
    assert world.state.membership.nodes["n3"].status is NodeStatus.FENCED
    world.ask("change_policy", silence_limit_ms=str(SHORT_MS))
    shows = world.state.epoch
    heard(world, LONG_MS, {"n2": shows})
    assert world.state.membership.nodes["n1"].lives
    assert world.state.cluster.silence_limit_ms == LONG_MS
    heard(world, SILENCE_MARGIN_MS + 1_000, {"n2": shows})
    assert world.state.membership.nodes["n1"].lives
    assert world.state.cluster.silence_limit_ms == SHORT_MS


def test_limit_that_falls_twice_waits_for_the_epoch_of_the_second_fall() -> None:
    """A node that knows only the first one serves by that one."""
    world = cut_off_world()
    first = world.state.epoch
    world.ask("change_policy", silence_limit_ms="1000")
    second = world.state.epoch
    world.ask("change_policy", protected_ratio="0.4")
    heard(world, 1_000, dict.fromkeys(("n1", "n2", "n3"), first))
    assert world.state.cluster.silence_limit_ms == LONG_MS
    heard(world, 500, dict.fromkeys(("n1", "n2", "n3"), second))
    assert world.state.cluster.silence_limit_ms == 1_000


def test_short_limit_does_not_depend_on_the_first_partition() -> None:
    """It may have no ticks; every member's epoch, and the ticks of its own partition, say what it knows."""
    world = World(ClusterPolicy(slot_count=16, silence_limit_ms=LONG_MS))
    world.admit("n1", "n2")
    world.standing = {0}
    world.run(2_000, ("n1", "n2"))
    assert world.ask("change_policy", silence_limit_ms=str(SHORT_MS)).outcome is IntentOutcome.DONE
    heard(world, 500, dict.fromkeys(("n1", "n2"), world.state.epoch))
    assert world.state.cluster.silence_limit_ms == SHORT_MS


def test_limit_that_falls_in_the_decision_that_raises_the_level_waits_for_the_epoch_of_that_decision() -> None:
    """Both intents may wait while there is no leader. Heartbeats carry the epoch before, which shows the long limit."""
    world = World(ClusterPolicy(slot_count=16, silence_limit_ms=LONG_MS), first_feature_level=2)
    world.admit("n1", "n2", "n3")
    heard(world, 1_000, dict.fromkeys(("n1", "n2", "n3"), world.state.epoch))
    before = world.state.epoch
    world.intent("fall", "change_policy", silence_limit_ms=str(SHORT_MS))
    world.intent("raise", "raise_feature_level", level=str(SEVERAL_BROKERS_LEVEL))
    world.run(200)
    assert world.state.epoch == before + 1
    heard(world, 1_000, {"n1": before, "n2": world.state.epoch, "n3": world.state.epoch})
    assert world.state.cluster.silence_limit_ms == LONG_MS
    heard(world, 500, dict.fromkeys(("n1", "n2", "n3"), world.state.epoch))
    assert world.state.cluster.silence_limit_ms == SHORT_MS
