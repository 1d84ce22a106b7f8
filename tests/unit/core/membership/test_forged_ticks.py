"""Ticks that name decisions which their senders cannot have read: forged, damaged, or of decisions that were lost."""

import pytest

from controlplane.config import HEARTBEATS
from controlplane.core.deciding.decide import Opening, decide, follow_up, open_term
from controlplane.core.deciding.observations import Observations, observe
from controlplane.core.membership.inputs import Tick
from controlplane.core.membership.log_time import WINDOW_MS
from controlplane.core.values.identifiers import Epoch, Seq, Term
from tests.helpers.world import World
from tests.unit.core.membership.test_brokers_clocks import (
    LIMIT_MS,
    NEWCOMER,
    NODES,
    fenced,
    leave_before_a_heartbeat_is_read,
    world_with_clocks,
)


def forge_ticks(world: World, seqs_ahead: int = 10**9, epochs_ahead: int = 10**9) -> None:
    """A writer that is no controller appends a tick to each partition that names a decision of the future."""
    state = world.state
    for partition in range(3):
        tick = Tick("forger", world.now_ms, Seq(state.seq + seqs_ahead), Epoch(state.epoch + epochs_ahead))
        world.append(HEARTBEATS, partition, tick)


def see_that_no_admission_was_dated_before_it(world: World) -> None:
    """A node joins, and its first heartbeat comes after the limit of silence less a moment."""
    world.join(NEWCOMER)
    world.run(LIMIT_MS - 1_000, NODES)
    assert world.state.membership.nodes[NEWCOMER].lives
    world.run(1_500, NODES)
    assert fenced(world) == [NEWCOMER]


@pytest.mark.parametrize("seqs_ahead", [1, 2, 3, 10**9])
def test_a_tick_that_names_a_decision_of_the_future_dates_no_admission(seqs_ahead: int) -> None:
    """A node that joins later would count as admitted since then, and be fenced before its first heartbeat."""
    world = world_with_clocks({})
    forge_ticks(world, seqs_ahead, epochs_ahead=0)
    world.run(6_000, NODES)
    see_that_no_admission_was_dated_before_it(world)


def test_ticks_of_decisions_that_the_log_has_lost_date_none_that_is_made_anew() -> None:
    """Their leader's host is lost with them, and no other controller had read them: nothing else tells of the loss."""
    world = world_with_clocks({})
    for lost in (1, 2, 3):
        world.run(100, NODES)
        for partition in range(3):
            tick = Tick("c1", world.now_ms, Seq(world.state.seq + lost), world.state.epoch)
            world.append(HEARTBEATS, partition, tick)
    world.run(3_000, NODES)
    world.observe()
    world.open_term(Term(2))
    world.run(200, NODES)
    see_that_no_admission_was_dated_before_it(world)


def test_a_tick_of_the_far_future_is_forgotten_with_its_time() -> None:
    """Each heartbeat behind it would be dated again in each round, for as long as there is no decision."""
    world = world_with_clocks({})
    forge_ticks(world)
    world.run(WINDOW_MS + 4_000, NODES)
    for view in world.observations.partitions.values():
        assert view.named_seq == world.state.seq
        assert {heard.seq for heard in view.heard.values()} <= {world.state.seq}


def test_a_heartbeat_from_before_its_node_left_is_no_dead_letter_behind_a_forged_tick() -> None:
    """It is read late, after the leave, and would seem to have been sent behind it."""
    world = world_with_clocks({})
    forge_ticks(world)
    world.run(500, NODES)
    leave_before_a_heartbeat_is_read(world)
    assert world.reasons() == []


def test_a_tick_that_names_a_decision_of_the_future_asks_for_no_decisions() -> None:
    """The silence of a node that was heard behind it, away from home, is dated by one decision and not by each."""
    world = world_with_clocks({})
    forge_ticks(world)
    world.append(HEARTBEATS, 0, world.beat_of("n2"))
    before = len(world.decisions)
    world.run(10_000, NODES[:2])
    assert fenced(world) == ["n2"]
    assert len(world.decisions) - before <= 3


@pytest.mark.parametrize("epochs_ahead", [1, 2, 10**9])
def test_a_tick_that_names_a_table_of_the_future_ends_no_longer_limit(epochs_ahead: int) -> None:
    """A node that is cut off would serve by a limit that no longer fences."""
    world = world_with_clocks({})
    forge_ticks(world, 0, epochs_ahead)
    world.run(8_000, NODES)
    world.ask("change_policy", silence_limit_ms="1000")
    world.run(500, NODES[:2])
    assert world.state.cluster.silence_limit_ms == LIMIT_MS


def test_a_leader_that_was_deposed_dates_its_next_term_as_a_standby_does() -> None:
    """Until it has read its successors' decisions, those controllers' ticks name some of which it knows nothing."""
    world = world_with_clocks({})
    deposed = world.state
    for successors_term in (2, 3):
        world.open_term(Term(successors_term))
        world.run(1_000, NODES)
    read = observe(Observations(positions=world.observed_from), world.inputs)
    result = decide(deposed, read)
    openings = []
    for observations in (read, result.observations):
        followed, _ = follow_up(world.state, observations)
        opening = Opening(observed_from=world.observed_from)
        openings.append(open_term(world.state, followed, Term(4), "c1", "test", opening).decision)
    standbys, deposeds = openings
    assert deposeds == standbys
    assert deposeds.decided_at_ms - world.state.decided_at_ms == 1_000
