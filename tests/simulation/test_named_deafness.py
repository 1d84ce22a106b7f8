"""A leader that does not read one partition on, while everything else works. Every invariant is looked at."""

from collections.abc import Callable

import pytest

from controlplane.config import HEARTBEATS, INTENTS, MEMBERSHIP
from controlplane.core.election.leading import ANSWERED_WITHIN_MS, DEAF_AFTER_MS
from controlplane.core.membership.node import NodeStatus
from controlplane.core.values.identifiers import TopicPartition
from controlplane.core.values.partitioning import partition_of
from tests.simulation.mutants.deafness_scenes import (
    cut_off_from_broker_of,
    let_kafka_go_before_a_tick_is_read,
    let_leader_go_before_a_tick_is_read,
    let_transaction_hang,
    outlast,
)
from tests.simulation.mutants.log_scenes import let_leader_be_deaf
from tests.simulation.script import USUAL, Script, begun, bounds_of

pytestmark = pytest.mark.slow

BOUNDS = bounds_of(USUAL, brokers=3)
MISSED_MS = ANSWERED_WITHIN_MS + DEAF_AFTER_MS
"""An answer of Kafka counts for 5 s; from then on the time runs."""


def test_a_death_is_seen_although_the_leader_is_deaf_to_the_dead_nodes_partition() -> None:
    """Records stand there, and it does not read them. Another controller does."""
    script = begun()
    home = partition_of(b"n4", USUAL.heartbeat_partitions)
    leader = let_leader_be_deaf(script, TopicPartition(HEARTBEATS, home))
    script.world.kill("n4")
    script.go_on_until(lambda: len(script.terms) == 2, BOUNDS.failover_from_deaf_ms)
    script.go_on_until(lambda: script.state.membership.nodes["n4"].status is NodeStatus.FENCED, 1_000)
    assert script.terms[-1][1] != leader
    script.go_on(15_000)
    assert len(script.terms) == 2
    script.judge_end()


def test_an_intent_is_answered_although_the_leader_is_deaf_to_intents() -> None:
    """Nobody ticks in that topic, and Kafka answers where it ends."""
    script = begun()
    leader = let_leader_be_deaf(script, TopicPartition(INTENTS, 0))
    script.ask("unheard", "refresh_table")
    script.go_on_until(lambda: script.answered("unheard"), BOUNDS.failover_from_deaf_ms)
    assert script.terms[-1][1] != leader
    script.go_on_until(script.is_well, 2_000)
    script.judge_end()


def test_a_deaf_leader_leads_on_where_nobody_else_could() -> None:
    """A leader that sees most of its inputs is better than none."""
    script = begun()
    leader = let_leader_be_deaf(script, TopicPartition(INTENTS, 0))
    for name in set(script.world.running) - {leader}:
        script.world.kill(name)
    script.ask("unheard", "refresh_table")
    script.go_on(BOUNDS.failover_from_deaf_ms)
    assert script.leaders == [leader]
    script.world.machines[leader].network.let_through({TopicPartition(INTENTS, 0)})
    script.go_on_until(lambda: script.answered("unheard"), 1_000)
    script.go_on_until(script.is_well, 2_000)
    script.judge_end()


@pytest.mark.parametrize("lasting_ms", [9_000, 12_000, 30_000])
@pytest.mark.parametrize(
    "let_go", [let_transaction_hang, let_kafka_go_before_a_tick_is_read, let_leader_go_before_a_tick_is_read]
)
def test_a_leader_stays_where_nobody_could_read_on(
    let_go: Callable[[Script], Callable[[], None]], lasting_ms: int
) -> None:
    """A transaction hangs, all brokers are away, or a partition has no leader: a take-over would mend nothing."""
    outlast(let_go, lasting_ms)


def test_a_death_is_seen_although_the_leader_is_cut_off_from_one_broker_for_good() -> None:
    """It neither ticks nor reads in the dead node's partition, and is not told where that ends."""
    script = begun()
    place = TopicPartition(HEARTBEATS, partition_of(b"n4", USUAL.heartbeat_partitions))
    (leader,) = script.leaders
    cut_off_from_broker_of(script, place, [leader])
    script.world.kill("n4")
    script.go_on_until(lambda: len(script.terms) == 2, BOUNDS.failover_from_cut_off_ms or 0)
    script.go_on_until(lambda: script.state.membership.nodes["n4"].status is NodeStatus.FENCED, 1_000)
    assert script.terms[-1][1] != leader
    script.go_on(30_000)
    assert len(script.terms) == 2
    script.judge_end()


@pytest.mark.parametrize("topic", [INTENTS, MEMBERSHIP])
def test_inputs_are_taken_up_although_the_leader_is_cut_off_from_their_broker_for_good(topic: str) -> None:
    """That broker leads nothing else: every tick of the leader is acknowledged."""
    script = begun()
    (leader,) = script.leaders
    cut_off_from_broker_of(script, TopicPartition(topic, 0), [leader])
    script.go_on_until(lambda: script.leaders not in ([leader], []), BOUNDS.failover_from_cut_off_ms or 0)
    script.ask("heard", "refresh_table")
    script.go_on_until(lambda: script.answered("heard"), 1_000)
    script.go_on(30_000)
    assert len(script.terms) == 2
    script.judge_end()


@pytest.mark.parametrize("topic", [HEARTBEATS, INTENTS])
def test_a_leader_stays_where_every_contender_is_cut_off_from_that_broker_too(topic: str) -> None:
    """Another one would see no more."""
    script = begun()
    terms = list(script.terms)
    unreachable = cut_off_from_broker_of(script, TopicPartition(topic, 0), list(script.world.running))
    script.go_on(3 * MISSED_MS)
    assert script.terms == terms
    for name in script.world.running:
        script.world.machines[name].network.unreachable.discard(unreachable)
    script.go_on(2 * MISSED_MS)
    assert script.terms == terms
    script.judge_end()
