"""Input partitions that are unavailable, new, or not taken up, while the others work; with every invariant."""

from dataclasses import replace

import pytest

from controlplane.config import HEARTBEATS, INTENTS, MEMBERSHIP
from controlplane.core.membership.events import NodeFenced
from controlplane.core.values.identifiers import TopicPartition
from controlplane.core.values.partitioning import partition_of
from controlplane.service import input_reader
from tests.simulation.audit import what_the_audit_finds
from tests.simulation.script import USUAL, Script, begun
from tests.simulation.setting import CONTROLLERS, NODES, SPARE_NODES

pytestmark = pytest.mark.slow


def lose_leader(script: Script, partition: int) -> list[str]:
    """Make a partition of heartbeats unavailable. Returns the nodes whose heartbeats go to other partitions."""
    script.world.lose_leader(HEARTBEATS, partition)
    return [name for name in NODES if partition_of(name.encode(), 2) != partition]


def fenced(script: Script) -> list[str]:
    """The fenced nodes, in order."""
    return [event.node_id for event in script.events(NodeFenced) if isinstance(event, NodeFenced)]


@pytest.mark.parametrize("partition", [0, 1])
def test_a_node_dies_while_another_partition_is_away(partition: int) -> None:
    """It is fenced as fast as usual, however long that has lasted. Nodes that cannot be heard are not fenced."""
    script = begun()
    victim = lose_leader(script, partition)[0]
    script.go_on(30_000)
    assert fenced(script) == []
    script.world.kill(victim)
    script.go_on_until(lambda: fenced(script) == [victim], script.state.cluster.silence_limit_ms + 500)
    script.world.elect_leader(HEARTBEATS, partition)
    script.go_on(5_000)
    script.world.start_node(victim)
    script.go_on_until(script.is_well, 5_000)
    assert fenced(script) == [victim]
    assert what_the_audit_finds(script.world) == []


@pytest.mark.parametrize(("topic", "partition"), [(HEARTBEATS, 0), (HEARTBEATS, 1), (MEMBERSHIP, 0), (INTENTS, 0)])
def test_a_cold_leader_takes_over_while_an_input_partition_is_away(topic: str, partition: int) -> None:
    """It needs the decision log only. The partition's records are taken up from the decisions' positions on."""
    script = begun()
    world = script.world
    script.ask("before", "refresh_table")
    script.go_on_until(lambda: script.answered("before"), 1_000)
    world.lose_leader(topic, partition)
    for controller in CONTROLLERS:
        world.kill(controller)
    world.start_controller("c1")
    script.go_on_until(lambda: len(script.terms) == 2, 6_000)
    victim = next(node for node in NODES if topic != HEARTBEATS or partition_of(node.encode(), 2) != partition)
    script.go_on(20_000)
    assert fenced(script) == []
    world.kill(victim)
    script.go_on_until(lambda: fenced(script) == [victim], script.state.cluster.silence_limit_ms + 500)
    script.ask("meanwhile", "refresh_table")
    world.elect_leader(topic, partition)
    script.go_on_until(lambda: script.answered("meanwhile"), 2_000)
    script.go_on(5_000)
    world.start_node(victim)
    script.go_on_until(script.is_well, 5_000)
    assert fenced(script) == [victim]
    assert what_the_audit_finds(world) == []


def movers(count: int) -> list[str]:
    """The nodes whose heartbeats go to a new partition when there are so many instead of two."""
    return [name for name in NODES if partition_of(name.encode(), count) >= 2]


@pytest.mark.parametrize("silence_limit_ms", [1_100, 2_000])
def test_nodes_that_move_to_partitions_that_were_added_live_on(silence_limit_ms: int) -> None:
    """Where they were heard before they look dead; and when they die, the ticks of the new ones tell."""
    script = begun(replace(USUAL, policy=replace(USUAL.policy, silence_limit_ms=silence_limit_ms)))
    moved = movers(4)
    assert len(moved) >= 2
    script.world.add_partitions(2)
    script.go_on(15_000)
    assert fenced(script) == []
    assert script.is_well()
    script.world.kill(moved[0])
    script.go_on_until(lambda: fenced(script) == moved[:1], silence_limit_ms + 500)
    kill_everybody_who_leads(script)
    script.go_on_until(lambda: len(script.terms) == 2, 6_000)
    script.world.kill(moved[1])
    second_ms = silence_limit_ms + script.state.cluster.heartbeat_interval_ms
    script.go_on_until(lambda: fenced(script) == moved[:2], second_ms + 500)
    for name in moved[:2]:
        script.world.start_node(name)
    script.go_on_until(script.is_well, 5_000)
    assert fenced(script) == moved[:2]
    assert what_the_audit_finds(script.world) == []


def kill_everybody_who_leads(script: Script) -> None:
    """The leader's process dies for good."""
    for name in script.leaders:
        script.world.kill(name)


def test_partitions_that_are_added_while_nobody_leads_fence_nobody() -> None:
    """The next leader finds them at its take-over, before it validates heartbeats."""
    script = begun()
    script.world.leases.available = False
    kill_everybody_who_leads(script)
    script.world.add_partitions(2)
    script.go_on(10_000)
    script.world.leases.available = True
    script.go_on_until(lambda: len(script.terms) == 2, 6_000)
    script.go_on(10_000)
    assert fenced(script) == []
    assert script.is_well()
    victim = movers(4)[0]
    script.world.kill(victim)
    script.go_on_until(lambda: fenced(script) == [victim], script.state.cluster.silence_limit_ms + 500)
    assert what_the_audit_finds(script.world) == []


def test_joins_that_nobody_takes_up_for_long_stay_in_the_log(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nodes repeat them while there is no leader. The next leader takes them up in rounds and misses none."""
    monkeypatch.setattr(input_reader, "_MOST_PENDING", 6)
    script = begun()
    world = script.world
    world.leases.available = False
    kill_everybody_who_leads(script)
    for name in SPARE_NODES:
        world.start_node(name)
    script.go_on(20_000)
    joins = world.broker.partitions(world.cluster.topic(MEMBERSHIP))[0].end_offset
    assert joins > len(NODES) + 10
    for running in world.running.values():
        assert len(running.controller._components.input_reader.observations.pending) < 10  # noqa: SLF001 - what it keeps
    script.ask("behind them", "refresh_table")
    world.leases.available = True
    script.go_on_until(lambda: script.answered("behind them"), 8_000)
    script.go_on_until(lambda: all(name in script.state.membership.nodes for name in SPARE_NODES), 3_000)
    script.go_on(3_000)
    assert fenced(script) == []
    assert what_the_audit_finds(world) == []


def test_a_standby_that_had_not_read_all_of_a_partition_takes_over_while_it_is_away() -> None:
    """By the log more was read than it knows. It begins again there, and its decisions can be retaken."""
    script = begun()
    world = script.world
    for name in CONTROLLERS:
        if name not in script.leaders:
            world.machines[name].network.hold_back({TopicPartition(HEARTBEATS, 1)})
    script.go_on(1_500)
    script.ask("ahead", "refresh_table")
    script.go_on_until(lambda: script.answered("ahead"), 1_000)
    victim = lose_leader(script, 1)[0]
    kill_everybody_who_leads(script)
    script.go_on_until(lambda: len(script.terms) == 2, 6_000)
    world.kill(victim)
    script.go_on_until(lambda: fenced(script) == [victim], script.state.cluster.silence_limit_ms + 500)
    for name in world.running:
        world.machines[name].network.let_through({TopicPartition(HEARTBEATS, 1)})
    world.elect_leader(HEARTBEATS, 1)
    world.start_node(victim)
    script.go_on_until(script.is_well, 5_000)
    assert fenced(script) == [victim]
    assert what_the_audit_finds(world) == []
