"""A leader that knows less than the one before it, and clocks that disagree: what it decides must not do harm."""

import pytest

from controlplane.config import INTENTS
from controlplane.core.deciding.decide import decide
from controlplane.core.deciding.observations import Observations, observe
from controlplane.core.intents.intent import IntentKind
from controlplane.core.membership.events import NodeFenced
from controlplane.core.membership.node import NodeStatus
from tests.helpers.world import World


def test_log_time_never_goes_back_from_one_decision_to_the_next() -> None:
    """A leader that has read less of the ticks than its predecessor may decide, under its predecessor's time."""
    world = World()
    world.admit("n1", "n2")
    world.run(3_000, ("n1", "n2"))
    world.intent("first", IntentKind.CREATE_NAMESPACE.value, namespace="a")
    assert world.decide() is not None
    decided_at_ms = world.state.decided_at_ms
    world.intent("second", IntentKind.CREATE_NAMESPACE.value, namespace="b")
    since_ms = world.now_ms - 2_000
    behind = [
        record
        for record in world.inputs
        if record.coordinates.topic == INTENTS or record.coordinates.append_time_ms == since_ms
    ]
    world.observations = observe(Observations(), behind)
    assert world.observations.now_ms == since_ms
    sealed = decide(world.state, world.observations).sealed
    assert sealed is not None
    assert sealed.decision.decided_at_ms == decided_at_ms
    world.commit(sealed)


def test_a_clock_that_was_set_back_does_not_stop_failure_detection() -> None:
    """The gaps between ticks count, not their times: one gap is lost, and a dead node is found as soon as ever."""
    world = World()
    world.admit("n1", "n2", "n3")
    world.run(1_000, ("n1", "n2", "n3"))
    world.now_ms -= 3_600_000
    taken = world.run(4_000, ("n1", "n2"))
    events = [event for decision in taken for event in decision.events]
    assert [event.node_id for event in events if isinstance(event, NodeFenced)] == ["n3"]


def test_a_clock_that_was_set_back_fences_nobody() -> None:
    """Neither those who go on sending heartbeats, nor one who joins under the new time."""
    world = World()
    world.admit("n1", "n2", "n3")
    world.run(1_000, ("n1", "n2", "n3"))
    world.now_ms -= 3_600_000
    assert world.run(4_000, ("n1", "n2", "n3")) == []
    world.join("n4")
    world.run(8_000, ("n1", "n2", "n3", "n4"))
    assert {node.status for node in world.state.membership.nodes.values()} == {NodeStatus.ACTIVE}


@pytest.mark.parametrize("set_back_ms", [1_000, 60_000])
def test_a_node_that_joins_again_under_the_new_time_is_not_fenced_for_the_old(set_back_ms: int) -> None:
    """It was heard before the clock was set back, by ticks that bear later times than its admission."""
    world = World()
    world.admit("n1", "n2", "n3")
    world.run(4_000, ("n1", "n2", "n3"))
    world.run(world.state.cluster.silence_limit_ms + 1_500, ("n1", "n2"))
    assert world.state.membership.nodes["n3"].status is NodeStatus.FENCED
    world.now_ms -= set_back_ms
    world.join("n3")
    world.run(world.state.cluster.policy.join_linger_ms + 100, ("n1", "n2"))
    assert world.state.membership.nodes["n3"].lives
    world.run(5_000, ("n1", "n2", "n3"))
    events = [event for decision in world.decisions for event in decision.events]
    assert [event.node_id for event in events if isinstance(event, NodeFenced)] == ["n3"]


def test_a_join_from_a_partition_with_a_fast_clock_does_not_wait_for_the_others_to_catch_up() -> None:
    """Partitions have leaders of their own with clocks of their own: the linger is never longer than its limit."""
    world = World()
    world.now_ms += 60_000
    world.join("n1")
    world.now_ms -= 60_000
    world.run(world.state.cluster.policy.join_linger_ms + 100)
    assert world.state.membership.nodes["n1"].status is NodeStatus.ACTIVE
