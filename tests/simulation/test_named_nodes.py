"""Nodes that hear nothing, are heard late, meet slower clocks, or are very many; with every invariant looked at."""

import pytest

from controlplane.codec.inputs import encode_input
from controlplane.config import HEARTBEATS, MEMBERSHIP
from controlplane.core.cluster.policy import ClusterPolicy
from controlplane.core.membership.events import NodeFenced
from controlplane.core.membership.inputs import Heartbeat, NodeJoined
from controlplane.core.membership.node import NodeRole, NodeStatus
from controlplane.core.values.identifiers import Epoch
from controlplane.node import Access
from tests.simulation.audit import what_the_audit_finds
from tests.simulation.network import TABLE
from tests.simulation.script import Script, begun
from tests.simulation.setting import CONTROLLERS, LEASE, NODES, Setting

pytestmark = pytest.mark.slow


def served(script: Script, name: str) -> list[int]:
    """The slots for which a node would accept requests, also those that other nodes own by now."""
    agent = script.world.agents[name]
    slots = agent.table.slots if agent.table is not None else ()
    return [slot.slot_id for slot in slots if agent.ownership(slot.slot_id).access is Access.ACCEPT]


def test_a_node_cut_off_from_the_table_only_stops_within_the_limit() -> None:
    """Its heartbeats arrive, so it is not fenced. Its slots are moved away, and it does not read that."""
    script = begun()
    script.go_on_until(lambda: served(script, "n4"), 1_000)
    network = script.world.machines["n4"].network
    network.hold_back(TABLE)
    script.go_on(script.state.cluster.silence_limit_ms // 2)
    assert served(script, "n4"), "a moment without news is no reason to stop"
    script.ask("move-away", "exclude_node", node="n4")
    script.go_on_until(lambda: not any("n4" in slot.replicas for slot in script.state.slots.table), 2_000)
    script.go_on_until(lambda: not served(script, "n4"), script.state.cluster.silence_limit_ms)
    assert script.events(NodeFenced) == []
    script.go_on(3 * script.state.cluster.silence_limit_ms)
    assert served(script, "n4") == []
    assert script.state.membership.nodes["n4"].lives
    script.ask("move-back", "include_node", node="n4")
    network.let_through(TABLE)
    script.go_on_until(lambda: served(script, "n4") and script.is_well(), 3_000)
    assert script.events(NodeFenced) == []


def test_a_node_that_left_is_admitted_again_on_a_slower_clock() -> None:
    """The node is no longer in the table, but in the state: its incarnation has to be greater than its former one."""
    script = begun()
    script.world.stop_node("n4", drain=True)
    script.go_on_until(lambda: script.state.membership.nodes["n4"].status is NodeStatus.LEFT, 5_000)
    script.go_on_until(lambda: "n4" not in script.world.agents, 1_000)
    former = script.state.membership.nodes["n4"].incarnation
    script.world.machines["n4"].clock.wall_step_ms -= 3_600_000
    script.world.start_node("n4")
    script.go_on_until(lambda: served(script, "n4") and script.is_well(), 3_000)
    assert script.state.membership.nodes["n4"].incarnation == former + 1


def test_a_node_that_was_fenced_is_admitted_again_on_a_slower_clock() -> None:
    """Its row says under which incarnation it died."""
    script = begun()
    script.world.kill("n4")
    script.go_on_until(lambda: script.state.membership.nodes["n4"].status is NodeStatus.FENCED, 4_000)
    former = script.state.membership.nodes["n4"].incarnation
    script.world.machines["n4"].clock.wall_step_ms -= 3_600_000
    script.world.start_node("n4")
    script.go_on_until(lambda: served(script, "n4") and script.is_well(), 3_000)
    assert script.state.membership.nodes["n4"].incarnation == former + 1


def test_a_node_that_found_its_former_slots_keeps_them_when_the_policy_changes() -> None:
    """SOFARegistry's policy leaves them to it while it restarts; the next policy has no reason to take them away."""
    script = begun(Setting(ClusterPolicy(slot_count=64, replica_count=1, join_linger_ms=100, slot_policy="sofa")))
    former = script.state.membership.nodes["n3"].incarnation
    held = {slot.slot_id: slot.leader_epoch for slot in script.state.slots.table if slot.leader == "n3"}
    script.go_on(1_000)  # its clients write
    script.ask("stand-still", "pause_reconciliation")
    script.go_on_until(lambda: script.answered("stand-still"), 1_000)
    script.world.kill("n3")
    script.world.start_node("n3")
    script.go_on_until(lambda: script.state.membership.nodes["n3"].incarnation > former, 2_000)
    script.ask("another", "change_policy", slot_policy="minimal")
    script.go_on_until(lambda: script.answered("another") and served(script, "n3"), 1_000)
    script.go_on(3_000)
    assert held
    assert {slot.slot_id: slot.leader_epoch for slot in script.state.slots.table if slot.leader == "n3"} == held


def test_a_cold_leader_whose_clock_is_ahead_counts_from_where_it_began() -> None:
    """By its clock its look-back begins in the future, so nodes that were silent before are fenced one limit later."""
    script = begun()
    script.go_on(1_000)
    script.world.kill("n4")
    script.go_on(script.state.cluster.silence_limit_ms - 700)
    for controller in CONTROLLERS:
        script.world.kill(controller)
    script.go_on(LEASE.duration_ms)
    script.world.machines["c1"].clock.wall_step_ms += 3_600_000
    script.world.start_controller("c1")
    script.go_on_until(lambda: len(script.terms) == 2, 3_000)
    script.go_on(script.state.cluster.silence_limit_ms - 500)
    script.ask("meanwhile", "refresh_table")
    script.go_on_until(lambda: script.answered("meanwhile"), 300)
    assert script.events(NodeFenced) == []
    script.go_on_until(lambda: script.state.membership.nodes["n4"].status is NodeStatus.FENCED, 800)
    assert len(script.events(NodeFenced)) == 1
    assert what_the_audit_finds(script.world) == []


def test_twenty_seconds_without_a_broker_fence_none_of_two_thousand_nodes() -> None:
    """All are silent for many times the limit, and come back at once; time is in the log, and stood still."""
    script = begun()
    world = script.world
    fleet = [f"s{number}" for number in range(2_000)]
    for name in fleet:
        joined = NodeJoined(name, 1, NodeRole.SESSION, (), "", 1, 0, "1", 0)
        world.send(MEMBERSHIP, name, encode_input(joined))
    beats = {name: encode_input(Heartbeat(name, 1, 0, Epoch(0), NodeRole.SESSION)) for name in fleet}

    def beat(first: int) -> None:
        if world.broker.available:
            for name in fleet[first::10]:
                world.send(HEARTBEATS, name, beats[name])
        world.scheduler.at(world.scheduler.now_ms + 100, lambda: beat((first + 1) % 10))

    beat(0)
    script.go_on_until(lambda: script.state.membership.nodes.keys() >= set(fleet), 5_000)
    script.go_on(2_000)
    world.broker.available = False
    script.go_on(20_000)
    world.broker.available = True
    script.go_on(3 * script.state.cluster.silence_limit_ms)
    assert script.events(NodeFenced) == []
    assert sum(node.lives for node in script.state.membership.nodes.values()) == len(fleet) + len(NODES)
    fleet.remove("s7")
    script.go_on_until(
        lambda: not script.state.membership.nodes["s7"].lives, script.state.cluster.silence_limit_ms + 1_000
    )


def test_a_heartbeat_sent_forty_seconds_ago_readmits_nobody() -> None:
    """The node is dead and fenced, and records that were delayed for long do not change that."""
    script = begun()
    incarnation = script.state.membership.nodes["n4"].incarnation
    script.world.kill("n4")
    script.go_on_until(lambda: script.state.membership.nodes["n4"].status is NodeStatus.FENCED, 4_000)
    script.go_on(37_000)
    seq = script.state.seq
    late = Heartbeat("n4", incarnation, 0, Epoch(0), NodeRole.DATA)
    script.world.send(HEARTBEATS, "n4", encode_input(late))
    script.go_on(4_000)
    assert script.state.membership.nodes["n4"].status is NodeStatus.FENCED
    assert script.state.seq == seq


def test_a_late_heartbeat_delays_detection_by_one_limit_at_most() -> None:
    """The reverse case: it arrives just before its sender, which is dead, would be fenced."""
    script = begun()
    limit_ms = script.state.cluster.silence_limit_ms
    incarnation = script.state.membership.nodes["n4"].incarnation
    script.world.kill("n4")
    script.go_on(limit_ms - 500)
    assert script.state.membership.nodes["n4"].lives
    late = Heartbeat("n4", incarnation, 0, Epoch(0), NodeRole.DATA)
    script.world.send(HEARTBEATS, "n4", encode_input(late))
    script.go_on(limit_ms - 200)
    assert script.state.membership.nodes["n4"].lives
    script.go_on_until(lambda: script.state.membership.nodes["n4"].status is NodeStatus.FENCED, 600)
    assert [
        event for event in script.events(NodeFenced) if isinstance(event, NodeFenced) and event.node_id != "n4"
    ] == []
