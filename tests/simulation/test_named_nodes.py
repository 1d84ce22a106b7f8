"""Nodes that hear nothing, are heard late, meet slower clocks, or are very many; with every invariant looked at."""

import pytest

from controlplane.adapters.kafka_reader import LEADERS_ASKED_EVERY_MS
from controlplane.codec.inputs import MAX_RECORD_BYTES, encode_input
from controlplane.config import DECISIONS, HEARTBEATS, MEMBERSHIP, ROUTING_TABLE
from controlplane.core.cluster.policy import ClusterPolicy
from controlplane.core.membership.events import NodeAdmitted, NodeFenced
from controlplane.core.membership.inputs import Heartbeat, NodeJoined
from controlplane.core.membership.node import NodeRole, NodeStatus
from controlplane.core.values.identifiers import Epoch
from controlplane.core.values.positions import TABLE_PLACE
from controlplane.node import Access, SessionState
from controlplane.testing import CommitFault
from tests.simulation.audit import what_the_audit_finds
from tests.simulation.mutants.scenes import a_node_on_a_slow_clock_is_cut_off, senders_date_their_heartbeats
from tests.simulation.network import TABLE
from tests.simulation.script import USUAL, Script, begun, bounds_of
from tests.simulation.setting import CONTROLLERS, LEASE, NODES, Setting

pytestmark = pytest.mark.slow


def served(script: Script, name: str) -> list[int]:
    """The slots for which a node would accept requests, also those that other nodes own by now."""
    agent = script.world.agents[name]
    slots = agent.table.slots if agent.table is not None else ()
    return [slot.slot_id for slot in slots if agent.ownership(slot.slot_id).access is Access.ACCEPT]


def told_to_release(script: Script) -> bool:
    """Whether the table tells a slot leader to release a slot."""
    return any(handoff.releases for handoff in script.state.slots.handoffs.values())


def test_a_node_cut_off_from_the_table_only_stops_within_the_limit() -> None:
    """Its heartbeats arrive, so it is not fenced. It is told to release its slots, and does not read that."""
    script = begun()
    script.go_on_until(lambda: served(script, "n4"), 1_000)
    network = script.world.machines["n4"].network
    network.hold_back(TABLE)
    script.go_on(script.state.cluster.silence_limit_ms // 2)
    assert served(script, "n4"), "a moment without news is no reason to stop"
    script.ask("move-away", "exclude_node", node="n4")
    script.go_on_until(lambda: told_to_release(script), 2_000)
    script.go_on_until(lambda: not served(script, "n4"), bounds_of(USUAL).overlap_after_move_ms)
    assert any(slot.leader == "n4" for slot in script.state.slots.table), "it could serve, as far as the leader knows"
    script.go_on_until(
        lambda: not any("n4" in slot.replicas for slot in script.state.slots.table), bounds_of(USUAL).unsaid_release_ms
    )
    assert script.events(NodeFenced) == []
    script.go_on(3 * script.state.cluster.silence_limit_ms)
    assert served(script, "n4") == []
    assert script.state.membership.nodes["n4"].lives
    script.ask("move-back", "include_node", node="n4")
    network.let_through(TABLE)
    script.go_on_until(lambda: served(script, "n4") and script.is_well(), 3_000)
    assert script.events(NodeFenced) == []


def test_a_node_that_reads_the_table_from_a_former_leader_stops_when_it_asks_the_leader() -> None:
    """Its heartbeats arrive, and each reading of the table ends well. Other nodes know the newer tokens meanwhile."""
    script = begun()
    script.go_on_until(lambda: served(script, "n4"), 1_000)
    stale_ends = script.world.machines["n4"].network.stale_ends
    topic = script.world.cluster.topic(ROUTING_TABLE)
    stale_ends[TABLE_PLACE] = script.world.broker.partitions(topic)[0].last_stable_offset
    script.ask("move-away", "exclude_node", node="n4")
    script.go_on_until(lambda: told_to_release(script), 2_000)
    script.go_on(LEADERS_ASKED_EVERY_MS)
    assert served(script, "n4"), "it knows nothing of that"
    assert any(slot.leader == "n4" for slot in script.state.slots.table), "so nothing was given to another node"
    stale_ends.clear()
    overlap_ms = bounds_of(USUAL, brokers=3).overlap_by_former_leader_ms
    assert overlap_ms is not None
    script.go_on_until(lambda: not served(script, "n4"), overlap_ms - LEADERS_ASKED_EVERY_MS)
    script.go_on_until(
        lambda: not any("n4" in slot.replicas for slot in script.state.slots.table), bounds_of(USUAL).unsaid_release_ms
    )
    script.ask("move-back", "include_node", node="n4")
    script.go_on_until(lambda: served(script, "n4") and script.is_well(), 3_000)
    script.judge_end()


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
    """SOFARegistry's policy leaves them to it while it restarts, under new tokens; the next policy changes nothing."""
    script = begun(Setting(ClusterPolicy(slot_count=64, replica_count=1, join_linger_ms=100, slot_policy="sofa")))
    former = script.state.membership.nodes["n3"].incarnation
    held = {slot.slot_id for slot in script.state.slots.table if slot.leader == "n3"}
    script.go_on(1_000)  # its clients write
    script.ask("stand-still", "pause_reconciliation")
    script.go_on_until(lambda: script.answered("stand-still"), 1_000)
    script.world.kill("n3")
    script.world.start_node("n3")
    script.go_on_until(lambda: script.state.membership.nodes["n3"].incarnation > former, 2_000)
    expected = dict.fromkeys(held, script.state.epoch)
    script.ask("another", "change_policy", slot_policy="minimal")
    script.go_on_until(lambda: script.answered("another") and served(script, "n3"), 1_000)
    script.go_on(3_000)
    assert held
    assert {slot.slot_id: slot.leader_epoch for slot in script.state.slots.table if slot.leader == "n3"} == expected


@pytest.mark.parametrize("step_ms", [0, 3_600_000, -3_600_000])
def test_a_cold_leader_knows_how_long_a_node_was_silent_whatever_its_clock_says(step_ms: int) -> None:
    """It takes the time from the brokers that append its first ticks, and looks back from there."""
    script = begun()
    script.go_on(1_000)
    script.world.kill("n4")
    script.go_on(script.state.cluster.silence_limit_ms - 700)
    for controller in CONTROLLERS:
        script.world.kill(controller)
    script.go_on(LEASE.duration_ms)
    script.world.machines["c1"].clock.wall_step_ms += step_ms
    script.world.start_controller("c1")
    script.go_on_until(lambda: len(script.terms) == 2, 3_000)
    script.go_on_until(lambda: script.state.membership.nodes["n4"].status is NodeStatus.FENCED, 1_000)
    assert len(script.events(NodeFenced)) == 1
    assert what_the_audit_finds(script.world) == []


def test_twenty_seconds_without_a_broker_fence_none_of_two_thousand_nodes() -> None:
    """All are silent for many times the limit, and come back at once; time is in the log, and stood still."""
    script = begun()
    world = script.world
    fleet = [f"s{number}" for number in range(2_000)]
    world.without_process.update(fleet)
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


def test_a_cut_of_the_whole_fleet_fences_one_node() -> None:
    """The heartbeats are spread over the second, so the nodes pass their limit one after another."""
    script = begun()
    script.spread_heartbeats()
    script.cut_fleet(off=True)
    script.go_on(8_000)
    assert len(script.events(NodeFenced)) == 1
    assert script.state.membership.evictions_frozen
    script.cut_fleet(off=False)
    script.go_on_until(script.is_well, 4_000)
    assert len(script.events(NodeFenced)) == 1
    assert what_the_audit_finds(script.world) == []


@pytest.mark.parametrize("limit_ms", [2_500, 5_000, 10_000, 20_000])
def test_a_node_on_a_slow_clock_that_is_cut_off_stops_before_its_heirs_begin(limit_ms: int) -> None:
    """Its clock counts nine milliseconds while ten pass: the longer the limit, the larger the error."""
    assert bounds_of(Setting(ClusterPolicy(silence_limit_ms=limit_ms))).overlap_after_silence_ms == 0
    a_node_on_a_slow_clock_is_cut_off(limit_ms)


@pytest.mark.timeout(600)
def test_a_death_among_nodes_with_very_many_slots_costs_one_node() -> None:
    """Its heirs report more than 16,000 replicas each. One status for each took more than a record may."""
    script = Script("named", setting=Setting(ClusterPolicy(slot_count=32_768, join_linger_ms=500)))
    script.stops_watching = True  # every table would be compared with every other, which takes hours
    world = script.world
    world.start_controller("c0")
    for name in NODES:
        world.start_node(name)
    script.go_on(5_000)
    world.kill("n2")
    script.go_on(6_000)
    others = [name for name in NODES if name != "n2"]
    assert {name: agent.state for name, agent in world.agents.items()} == dict.fromkeys(others, SessionState.ACTIVE)
    table = world.agents["n0"].table
    assert table is not None
    held = {name: sum(name in slot.replicas for slot in table.slots) for name in NODES}
    assert held == {"n2": 0} | dict.fromkeys(others, 16_384)
    heartbeats = world.broker.partitions(world.cluster.topic(HEARTBEATS))
    sizes = [len(record.value or b"") for each in heartbeats for record in each.read(each.start_offset, 1 << 20)[0]]
    assert max(sizes) < MAX_RECORD_BYTES / 8, "with the followers beyond the number of replicas that handoffs add"


def test_heartbeats_and_ticks_that_their_senders_date_fence_nobody() -> None:
    """Somebody sets the topic to CreateTime under running controllers: log time stands until it is set back."""
    senders_date_their_heartbeats()


def test_a_node_that_comes_back_counts_in_the_decision_that_admits_it() -> None:
    """Two of three members are too many to be fenced; two of four, of which one is back just now, are not."""
    script = begun()
    world = script.world
    world.stop_node("n4", drain=False)
    world.machines["n1"].network.kafka = False
    script.go_on_until(lambda: script.state.membership.nodes["n1"].status is NodeStatus.FENCED, 4_000)
    for name in ("n0", "n3"):
        world.kill(name)
    script.go_on_until(lambda: script.state.membership.evictions_frozen, 5_000)
    script.go_on(script.state.cluster.policy.protection_window_ms)
    world.machines["n1"].network.kafka = True
    script.go_on_until(lambda: not script.state.membership.evictions_frozen, 2_000)
    decision = script.decisions[-1]
    assert {type(event) for event in decision.events} >= {NodeAdmitted, NodeFenced}
    script.go_on(1_000)
    assert [name for name, node in script.state.membership.nodes.items() if node.lives] == ["n1", "n2"]


def test_a_dead_process_whose_join_is_taken_up_late_does_not_end_its_successor() -> None:
    """No decision can be committed while the node is started twice, each time on a clock that is further behind."""
    script = begun()
    world = script.world
    script.go_on(7_000)
    decisions = world.cluster.topic(DECISIONS)
    world.broker.set_read_only(decisions, 0, read_only=True)
    for _ in range(2):
        world.kill("n4")
        world.machines["n4"].clock.wall_step_ms -= 5_000
        world.start_node("n4")
        script.go_on(1_000)
    world.broker.set_read_only(decisions, 0, read_only=False)
    script.go_on_until(lambda: served(script, "n4") and script.is_well(), 8_000)
    assert world.agents["n4"].state is SessionState.ACTIVE
    script.judge_end()


def test_a_node_that_dies_while_its_admission_is_long_in_coming_is_fenced_a_limit_after_it() -> None:
    """The decision has taken up its join, and ticks go on; but only a tick that names the decision dates it."""
    script = begun()
    world, cut_off = script.world, list[str]()

    def cut_off_once(name: str) -> None:
        if not cut_off:
            cut_off.append(name)
            world.machines[name].network.kafka = False

    world.broker.fail_next_commit(CommitFault.ANSWER_LOST_BEFORE_COMMIT)
    world.in_transaction = cut_off_once
    world.start_node("n5")
    script.go_on_until(lambda: cut_off, 1_000)
    world.kill("n5")
    limit_ms = script.state.cluster.silence_limit_ms
    script.go_on(limit_ms + 500)
    world.machines[cut_off[0]].network.kafka = True
    script.go_on_until(lambda: "n5" in script.state.membership.nodes, 5_000)
    admitted_ms = world.scheduler.now_ms
    script.ask("meanwhile", "refresh_table")
    script.go_on_until(lambda: not script.state.membership.nodes["n5"].lives, limit_ms + 1_000)
    assert world.scheduler.now_ms - admitted_ms > limit_ms
    script.go_on_until(script.is_well, 1_000)
    script.judge_end()
