"""Scripts for the situations in which some bugs appear, and which random seeds reach too rarely."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final
from unittest.mock import patch

from controlplane.codec import inputs
from controlplane.config import HEARTBEATS, LOAD_REPORTS, MEMBERSHIP
from controlplane.core.membership.events import NodeFenced
from controlplane.core.membership.node import NodeStatus
from controlplane.core.slots import reports
from controlplane.core.values.partitioning import partition_of
from controlplane.node import Access, NodeAgent, SessionState
from tests.simulation.invariants.verdicts import BrokenInvariantError
from tests.simulation.network import TABLE
from tests.simulation.script import USUAL, Script, agents_of_before, begun
from tests.simulation.setting import CONTROLLERS, NODES

ONE_OF_A_CUT: Final = "of a whole fleet that is cut off at once, one node is fenced"

ALL_LIVE: Final = "a node that lives and is heard is not fenced by clocks of senders"


def let_reader_lag_over_compaction(script: Script, *, drop_tombstones: bool) -> None:
    """Client r0 is cut off while node n4 leaves and the routing table is compacted; it still is when this returns."""
    script.world.machines["r0"].network.kafka = False
    script.world.stop_node("n4", drain=True)
    script.go_on_until(lambda: script.state.membership.nodes["n4"].status is NodeStatus.LEFT, 5_000)
    script.ask("something-newer", "create_namespace", namespace="tenant-a")
    script.go_on_until(lambda: script.answered("something-newer"), 1_000)
    script.world.compact_table(drop_tombstones=drop_tombstones)


def a_reader_lags_over_a_compaction() -> None:
    """A node leaves meanwhile, and its tombstone is gone when the reader is back."""
    script = begun()
    let_reader_lag_over_compaction(script, drop_tombstones=True)
    script.world.machines["r0"].network.kafka = True
    script.go_on(2_000)
    script.judge_end()


def nodes_stand_still_beyond_their_limit() -> None:
    """One after another. Whichever thread of a resumed process runs first, no request may succeed."""
    script = begun()
    for name in NODES:
        script.pause(name, 4_000)
        script.go_on(8_000)
    script.judge_end()


def a_node_on_a_slow_clock_is_cut_off(silence_limit_ms: int = 20_000) -> None:
    """Its clock counts nine milliseconds while ten pass; it stops before its heirs begin."""
    script = begun(replace(USUAL, policy=replace(USUAL.policy, silence_limit_ms=silence_limit_ms)))
    script.world.machines["n4"].clock.drift(0.9)
    script.go_on(3_000)
    agents = script.world.agents
    assert agents_slots(agents["n4"])
    script.world.machines["n4"].network.kafka = False
    ends_ms = script.world.scheduler.now_ms + silence_limit_ms + 3_000
    while script.state.membership.nodes["n4"].lives:
        assert script.world.scheduler.now_ms < ends_ms, "it was not fenced"
        script.go_on(10)
    for _ in range(300):
        script.go_on(10)
        both = agents_slots(agents["n4"]) & set().union(*map(agents_slots, _others(agents, "n4")))
        if both:
            raise BrokenInvariantError("a node that is cut off serves no slot that another one serves", str(both))
    script.world.machines["n4"].network.kafka = True
    script.go_on(5_000)
    script.judge_end()


def _others(agents: Mapping[str, NodeAgent], name: str) -> list[NodeAgent]:
    return [agent for other, agent in agents.items() if other != name]


def a_machine_is_suspended() -> None:
    """For six seconds. Other nodes own its slots when it wakes, and it has to know that its time is over."""
    script = begun()
    script.world.kill("n4")
    script.world.start_node("n4")
    script.go_on_until(lambda: "n4" in script.world.agents and agents_slots(script.world.agents["n4"]), 8_000)
    script.go_on(1_000)
    agents, clock = script.world.agents, script.world.machines["n4"].clock
    script.pause("n4", 6_000)
    clock.suspend()
    script.world.machines["n4"].network.hold_back(TABLE)  # it hears of its fencing later than it wakes
    script.go_on(5_999)
    clock.resume()
    for step in range(1_000):
        script.go_on(2)
        if step == 300:
            script.world.machines["n4"].network.let_through(TABLE)
        both = agents_slots(agents["n4"]) & set().union(*map(agents_slots, _others(agents, "n4")))
        if both:
            raise BrokenInvariantError("a machine that was suspended serves no slot that another serves", str(both))
    script.go_on(4_000)
    script.judge_end()


@agents_of_before()
def a_node_hears_nothing_of_a_move() -> None:
    """It serves, and its heartbeats arrive; its slots are moved away, and neither the table nor other nodes tell it."""
    script = begun()
    script.go_on(1_000)
    network = script.world.machines["n4"].network
    network.hold_back(TABLE)
    network.peers = False
    script.ask("move-away", "exclude_node", node="n4")
    script.go_on(4 * script.state.cluster.silence_limit_ms)
    script.ask("move-back", "include_node", node="n4")
    network.let_through(TABLE)
    network.peers = True
    script.go_on(3_000)
    script.judge_end()


def a_node_is_heard_again_before_it_reads() -> None:
    """It was cut off and fenced, and others own its slots: its heartbeats come through first, the table later."""
    script = begun()
    script.go_on(1_000)
    network = script.world.machines["n4"].network
    network.kafka = False
    script.go_on_until(lambda: script.state.membership.nodes["n4"].status is NodeStatus.FENCED, 6_000)
    script.go_on(1_000)
    network.hold_back(TABLE)
    network.kafka = True
    script.go_on(2_000)
    network.let_through(TABLE)
    script.go_on(3_000)
    script.judge_end()


def a_node_restarts_on_a_slower_clock() -> None:
    """Its process dies, and the machine has lost a minute when the next one starts."""
    script = begun()
    script.world.kill("n0")
    script.world.machines["n0"].clock.wall_step_ms -= 60_000
    script.world.start_node("n0")
    script.go_on(6_000)
    script.judge_end()


def a_node_is_started_twice_at_once() -> None:
    """It is dead, and both machines have lost an hour: both processes choose the incarnation after the last one.

    Neither finds a join of the other one, because none can be appended until both have looked.
    """
    script = begun()
    membership = script.world.cluster.topic(MEMBERSHIP)
    script.world.kill("n4")
    script.go_on_until(lambda: script.state.membership.nodes["n4"].status is NodeStatus.FENCED, 4_000)
    former = script.state.membership.nodes["n4"].incarnation
    script.stops_watching = True  # the watch knows one process of each node
    script.world.broker.set_read_only(membership, 0, read_only=True)
    processes = [script.world.start_process("n4", machine, wall_step_ms=-3_600_000) for machine in ("n4", "n4-again")]
    script.go_on(500)
    script.world.broker.set_read_only(membership, 0, read_only=False)
    for _ in range(400):
        script.go_on(10)
        accepted = [agents_slots(agent) for agent in processes]
        if accepted[0] & accepted[1]:
            raise BrokenInvariantError("two processes of a node never serve a slot both", str(accepted))
    incarnations = {agent.table.nodes["n4"].incarnation for agent in processes if agent.table is not None}
    assert incarnations == {former + 1}
    assert sorted(agent.state.value for agent in processes) == ["active", "superseded"]


def agents_slots(agent: NodeAgent) -> set[int]:
    """The slots for which an agent would accept requests."""
    slots = agent.table.slots if agent.table is not None else ()
    return {slot.slot_id for slot in slots if agent.ownership(slot.slot_id).access is Access.ACCEPT}


def nodes_go_to_partitions_that_are_added() -> None:
    """Their heartbeats stop in the partitions that were read, and begin in one that was not read yet."""
    script = begun()
    script.world.add_partitions(2)
    script.go_on(6_000)
    script.judge_end()


def the_whole_fleet_is_cut_off() -> None:
    """All nodes at one moment; they pass their limit one after another, because their heartbeats are spread."""
    script = begun()
    script.spread_heartbeats()
    script.cut_fleet(off=True)
    script.go_on(6_000)
    fenced = script.events(NodeFenced)
    script.verdicts.judge(ONE_OF_A_CUT, len(fenced) <= 1, f"{len(fenced)} nodes are fenced")
    script.cut_fleet(off=False)
    script.go_on(4_000)
    script.judge_end()


def nodes_are_silent_in_turn() -> None:
    """Each of them lives, is silent for longer than its limit, and is back before the next one falls silent."""
    script = begun()
    for name in NODES[:3]:
        script.pause(name, 2_700)
        script.go_on(3_000)
    script.go_on(script.state.cluster.policy.protection_window_ms)
    script.judge_end()


def senders_date_their_heartbeats() -> None:
    """Somebody lets the topic keep their times, and the clocks of controllers are hours apart. Every node lives.

    From a tick of one controller to the next one of another, hours pass or none, as their turns happen to be.
    """
    script = begun()
    script.world.keep_create_time(HEARTBEATS)
    for names in (CONTROLLERS, CONTROLLERS[::-1]):
        for hours, name in enumerate(names):
            script.world.machines[name].clock.wall_step_ms = hours * 3_600_000
        script.go_on(6_000)
    script.world.keep_create_time(HEARTBEATS, on=False)
    script.go_on(5_000)
    fenced = script.events(NodeFenced)
    script.verdicts.judge(ALL_LIVE, not fenced, f"{len(fenced)} nodes are fenced")
    script.judge_end()


def nodes_die_in_turn() -> None:
    """Three of five within a window that allows two; the last one is fenced when the window of the first one ends."""
    script = begun()
    for name in NODES[:3]:
        script.world.kill(name)
        script.go_on(3_000)
    script.go_on(script.state.cluster.policy.protection_window_ms)
    script.judge_end()


def a_node_dies_right_after_joining() -> None:
    """The clocks of its partition's broker and of the first partition's are an hour apart."""
    script = begun()
    joining = "n5"
    home = partition_of(joining.encode(), script.setting.heartbeat_partitions)
    script.world.set_clock_of(HEARTBEATS, home, -3_600_000)
    script.go_on(3_000)
    script.world.start_node(joining)
    script.go_on_until(lambda: joining in script.state.membership.nodes, 2_000)
    script.go_on(300)
    script.world.kill(joining)
    script.go_on(script.state.cluster.silence_limit_ms + 1_000)
    script.ask("meanwhile", "refresh_table")
    script.go_on_until(lambda: script.answered("meanwhile"), 1_000)
    script.go_on(500)
    script.judge_end()


def load_reports_wait_for_a_dead_broker() -> None:
    """A broker that has copies of the load reports only dies. Until Kafka notices, no report is acknowledged.

    One writer of each node's heartbeats is stuck meanwhile, so that the other one has to be free.
    """
    script = begun(replace(USUAL, load_interval_ms=500))
    script.go_on(1_000)
    second_writers = [script.world.machines[name].writers[-1] for name in NODES]
    for writer in second_writers:
        writer.is_stuck = True
    script.world.lose_follower(LOAD_REPORTS, 0)
    for _ in range(40):
        script.go_on(100)
        states = {name: agent.state for name, agent in script.world.agents.items()}
        if set(states.values()) != {SessionState.ACTIVE}:
            raise BrokenInvariantError("a node whose heartbeats can be appended is heard", str(states))
    script.world.drop_follower(LOAD_REPORTS, 0)
    for writer in second_writers:
        writer.is_stuck = False
    script.go_on(3_000)
    script.judge_end()


def a_writer_of_heartbeats_is_stuck() -> None:
    """One after the other, each for longer than the silence limit; the machine reaches Kafka all the time."""
    script = begun()
    script.go_on(1_000)
    for writer in script.world.machines["n4"].writers:
        writer.is_stuck = True
        for _ in range(800):
            script.go_on(10)
            state = script.world.agents["n4"].state
            if state is not SessionState.ACTIVE:
                raise BrokenInvariantError("a node with one stuck writer is heard by the other", state.value)
        writer.is_stuck = False
        script.go_on(1_000)
    script.judge_end()


def heartbeats_are_larger_than_a_record_may_be() -> None:
    """The limits stand for real ones, for which slots without number would be needed."""
    with patch.object(inputs, "MAX_RECORD_BYTES", 120), patch.object(reports, "_RUNS_THAT_FIT", 20):
        script = begun(replace(USUAL, policy=replace(USUAL.policy, slot_count=256)))
        script.go_on(3_000)
        script.judge_end()


def the_brokers_clock_is_set_forward() -> None:
    """A minute lies between two ticks that are a tenth of a second apart, and between two heartbeats of every node.

    Self-preservation is off: it would keep all of them from being fenced at once.
    """
    script = begun()
    script.ask("no-protection", "change_policy", protected_ratio="1")
    script.go_on_until(lambda: script.answered("no-protection"), 1_000)
    for _ in range(5):
        script.world.clock.wall_step_ms += 60_000
        script.go_on(2_000)
    script.judge_end()
