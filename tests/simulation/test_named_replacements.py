"""Which leader is replaced, and by which controller: one that could do what the leader cannot. Scripts of one fault."""

from dataclasses import replace

import pytest

from controlplane.config import DEAD_LETTERS, DECISIONS, HEARTBEATS, INTENTS, MEMBERSHIP, ROUTING_TABLE
from controlplane.core.values.identifiers import TopicPartition
from controlplane.core.values.partitioning import partition_of
from tests.helpers.fencing_bounds import Bounds
from tests.simulation.mutants.deafness_scenes import cut_off_from_broker_of
from tests.simulation.mutants.log_scenes import let_leader_be_deaf
from tests.simulation.script import USUAL, Script, begun
from tests.simulation.setting import LEASE, OBSERVER

pytestmark = pytest.mark.slow

HOME_OF_N4 = TopicPartition(HEARTBEATS, partition_of(b"n4", USUAL.heartbeat_partitions))
REPLACED_MS = Bounds(lease=LEASE).cut_off_noticed_ms + Bounds(lease=LEASE).failover_ms


def kill_all_but(script: Script, *names: str) -> None:
    """Let only these controllers live."""
    for name in set(script.world.running) - set(names):
        script.world.kill(name)


def require_same_term(script: Script, during_ms: int) -> None:
    """There is a leader all the time, and it is the same."""
    terms = list(script.terms)
    for _ in range(0, during_ms, 500):
        script.go_on(500)
        assert script.leaders == [terms[-1][1]]
    assert script.terms == terms


@pytest.mark.parametrize("topic", [INTENTS, MEMBERSHIP])
def test_a_leader_that_can_write_no_letter_of_a_refused_record_is_replaced(topic: str) -> None:
    """The record holds back its partition until its letter is written, and another controller reaches the letters."""
    script = begun()
    (leader,) = script.leaders
    broker = cut_off_from_broker_of(script, TopicPartition(DEAD_LETTERS, 0), [leader])
    script.world.send(topic, "x", b"no record of ours", 0)
    script.go_on(300)
    if topic == INTENTS:
        script.ask("behind-it", "refresh_table")
        script.go_on_until(lambda: script.answered("behind-it"), REPLACED_MS)
    else:
        script.world.start_node("n5")
        script.go_on_until(lambda: "n5" in script.state.membership.nodes, REPLACED_MS)
    assert script.leaders != [leader]
    script.world.machines[leader].network.unreachable.discard(broker)
    script.go_on(5_000)
    script.judge_end()


@pytest.mark.parametrize("beside", ["an observer", "a contender without the lease store"])
def test_a_deaf_leader_leads_on_beside_a_controller_that_cannot_lead(beside: str) -> None:
    """That one ticks like any other; a leader that gave up would have to take over again from itself."""
    script = begun()
    script.stops_watching = True  # what is asked is answered later than promised, because no fit controller exists
    leader = let_leader_be_deaf(script, TopicPartition(INTENTS, 0))
    contender = min(set(script.world.running) - {leader})
    if beside == "an observer":
        kill_all_but(script, leader)
        script.world.start_controller(OBSERVER, follow_only=True)
    else:
        kill_all_but(script, leader, contender)
        script.world.machines[contender].network.lease_store = False
    script.ask("unheard", "refresh_table")
    require_same_term(script, 60_000)


@pytest.mark.parametrize("topic", [DECISIONS, ROUTING_TABLE])
def test_a_leader_stays_where_its_contender_does_not_reach_log_or_table(topic: str) -> None:
    """The leader misses an input. Its only contender is answered about all of them, and could not lead."""
    script = begun()
    script.stops_watching = True  # a node may die unseen, because no fit controller exists
    (leader,) = script.leaders
    contender = min(set(script.world.running) - {leader})
    kill_all_but(script, leader, contender)
    cut_off_from_broker_of(script, TopicPartition(topic, 0), [contender])
    cut_off_from_broker_of(script, HOME_OF_N4, [leader])
    require_same_term(script, 60_000)


@pytest.mark.parametrize(("duration_ms", "renew_interval_ms"), [(6_000, 2_000), (9_000, 3_000), (15_000, 5_000)])
@pytest.mark.parametrize("contenders", [1, 2])
def test_a_leader_with_a_long_lease_is_replaced_too(duration_ms: int, renew_interval_ms: int, contenders: int) -> None:
    """Notes are exchanged at renewals, and are as old then as a lease."""
    lease = replace(LEASE, duration_ms=duration_ms, renew_interval_ms=renew_interval_ms, handover_after_ms=0)
    script = begun(replace(USUAL, lease=lease))
    script.stops_watching = True  # bounds of the invariants are those of the usual lease
    (leader,) = script.leaders
    kill_all_but(script, leader, *sorted(set(script.world.running) - {leader})[:contenders])
    cut_off_from_broker_of(script, HOME_OF_N4, [leader])
    bounds = Bounds(lease=lease)
    replaced_ms = bounds.cut_off_noticed_ms + bounds.failover_ms
    script.go_on_until(lambda: script.leaders not in ([leader], []), replaced_ms)


def test_no_leader_hands_over_to_a_preferred_controller_that_misses_a_partition() -> None:
    """Nor when that one is started again, and knows nothing yet."""
    script = begun(replace(USUAL, preferred="c2"))
    script.stops_watching = True  # of a controller that is started again and again, promises say nothing
    script.go_on_until(lambda: script.leaders == ["c2"], 60_000)
    broker = cut_off_from_broker_of(script, HOME_OF_N4, [])
    script.world.kill("c2")
    script.go_on(6_000)
    for _ in range(3):
        script.world.start_controller("c2")
        script.world.machines["c2"].network.unreachable.add(broker)
        require_same_term(script, 30_000)
        script.world.kill("c2")
        script.go_on(3_000)


@pytest.mark.parametrize("topic", [HEARTBEATS, INTENTS])
@pytest.mark.parametrize("every_ms", [3_000, 4_500])
def test_a_contender_that_is_started_again_and_again_is_not_taken_for_one_that_reaches_all(
    topic: str, every_ms: int
) -> None:
    """No controller reaches the broker of that partition."""
    script = begun()
    script.stops_watching = True  # inputs of that partition are taken up by no controller
    (leader,) = script.leaders
    restless = min(set(script.world.running) - {leader})
    broker = cut_off_from_broker_of(script, TopicPartition(topic, 0), list(script.world.running))
    terms = list(script.terms)
    for _ in range(0, 45_000, every_ms):
        script.world.kill(restless)
        script.world.start_controller(restless)
        script.world.machines[restless].network.unreachable.add(broker)
        script.go_on(every_ms)
    assert script.terms == terms
