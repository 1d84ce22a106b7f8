"""How much log time passes between two decisions, by the clocks of several partitions."""

from dataclasses import replace

from controlplane.config import HEARTBEATS
from controlplane.core.cluster.policy import SEVERAL_BROKERS_LEVEL
from controlplane.core.deciding.log_clock import log_time_ms
from controlplane.core.deciding.observations import LastDecision, Observations
from controlplane.core.log.state import State
from controlplane.core.membership.log_time import PartitionView
from controlplane.core.values.identifiers import Seq, TopicPartition
from controlplane.core.values.positions import position_key
from tests.helpers.world import World

DECIDED_AT_MS = 50_000


def decided(partitions: int) -> State:
    """A state whose last decision had read 100 records of each of these partitions."""
    world = World(first_feature_level=SEVERAL_BROKERS_LEVEL)
    world.admit("n1")
    positions = {position_key(TopicPartition(HEARTBEATS, number)): 100 for number in range(partitions)}
    return replace(world.state, seq=Seq(7), decided_at_ms=DECIDED_AT_MS, positions=positions)


def passed_ms(state: State, clocks_ms: dict[int, int]) -> int:
    """The log time since the last decision, if these clocks have passed so much since then."""
    views = {number: PartitionView(clock_ms=1_000 + clock_ms) for number, clock_ms in clocks_ms.items()}
    noted = LastDecision(state.seq, state.epoch, state.epoch, dict.fromkeys(clocks_ms, 1_000))
    return log_time_ms(state, Observations(partitions=views, last_decision=noted)) - DECIDED_AT_MS


def test_the_mean_of_the_partitions_passes() -> None:
    """A decision may come between the ticks of one partition and those of another."""
    assert passed_ms(decided(partitions=3), {0: 300, 1: 200, 2: 100}) == 200


def test_a_partition_that_is_not_read_has_its_share() -> None:
    """What it has passed is counted when it is read. Left out of the mean, it would be counted twice."""
    state = decided(partitions=2)
    unread = passed_ms(state, {0: 4_000})
    assert unread == 2_000
    assert unread + passed_ms(state, {0: 0, 1: 4_000}) == 4_000
