"""Scripts for what befalls the log and its topics: former brokers, late markers, lost ends, lasting deafness."""

from collections.abc import Callable, Mapping
from functools import partial

from controlplane.config import DEAD_LETTERS, DECISIONS, HEARTBEATS, INTENTS, MEMBERSHIP, ROUTING_TABLE
from controlplane.core.election.steps import ControllerPhase
from controlplane.core.values.identifiers import TopicPartition
from controlplane.core.values.partitioning import partition_of
from controlplane.errors import LogContinuityError
from controlplane.service.follower import LogFollower
from controlplane.testing import MemoryLogReader
from tests.simulation.invariants.log_watch import CONTINUES
from tests.simulation.recreated import STOPPED
from tests.simulation.script import Script, agents_of_before, begun
from tests.simulation.setting import CLIENTS, CONTROLLERS, NODES


def let_contender_ask_former_brokers(script: Script) -> str:
    """Let only one controller be left to follow the leader, and ask brokers that lead its topics no longer.

    The leader then commits a decision that changes rows, and dies. Returns the contender.
    """
    world = script.world
    (leader,) = script.leaders
    contender, idle = (name for name in world.running if name != leader)
    world.kill(idle)
    for topic in (DECISIONS, ROUTING_TABLE):
        (partition,) = world.broker.partitions(world.cluster.topic(topic))
        world.machines[contender].network.stale_ends[TopicPartition(topic, 0)] = partition.last_stable_offset
    script.ask("unseen", "exclude_node", node="n4")
    script.go_on_until(lambda: script.answered("unseen"), 3_000)
    script.go_on(200)
    world.kill(leader)
    return contender


def a_contender_asks_former_brokers() -> None:
    """They end log and table before the last commit, until they learn that others lead."""
    script = begun()
    contender = let_contender_ask_former_brokers(script)
    script.go_on(4_000)
    script.world.machines[contender].network.stale_ends.clear()
    for name in CONTROLLERS:
        script.world.start_controller(name)
    script.go_on(6_000)
    script.judge_end()


def let_leader_ask_former_brokers(script: Script) -> str:
    """Let the leader commit a decision, and read log and table from brokers that lead them no longer; return it."""
    (leader,) = script.leaders
    network = script.world.machines[leader].network
    for topic in (DECISIONS, ROUTING_TABLE):
        (partition,) = script.world.broker.partitions(script.world.cluster.topic(topic))
        network.stale_ends[TopicPartition(topic, 0)] = partition.last_stable_offset
    script.ask("unseen", "exclude_node", node="n4")
    script.go_on_until(lambda: script.answered("unseen"), 3_000)
    return leader


def a_leader_asks_former_brokers() -> None:
    """They end log and table before its last commit; others know of it."""
    script = begun()
    leader = let_leader_ask_former_brokers(script)
    script.go_on(14_000)
    script.world.machines[leader].network.stale_ends.clear()
    script.go_on(6_000)
    script.judge_end()


def let_markers_be_late(script: Script, milliseconds: int) -> None:
    """Let a decision with rows be acknowledged, and its markers be written so much later."""
    broker, cluster = script.world.broker, script.world.cluster
    topics = [cluster.topic(topic) for topic in (DECISIONS, ROUTING_TABLE)]
    for topic in topics:
        broker.hold_markers_back(topic, 0)
    script.ask("unmarked", "exclude_node", node="n4")
    script.go_on(milliseconds)
    for topic in topics:
        broker.write_markers(topic, 0)


@agents_of_before()
def markers_are_late() -> None:
    """A commit is acknowledged, and no reader gets as far for twelve seconds."""
    script = begun()
    let_markers_be_late(script, 12_000)
    script.go_on(4_000)
    script.judge_end()


def let_letters_have_no_place(script: Script) -> None:
    """Let the topic of dead letters lose its leader, and foreign writers append garbage to every input."""
    script.world.lose_leader(DEAD_LETTERS, 0)
    for topic in (HEARTBEATS, MEMBERSHIP, INTENTS):
        script.world.send(topic, "x", b"garbage", 0)
    script.go_on(300)


def letters_have_no_place() -> None:
    """A node dies, and another one asks to leave, while nobody can be told of refused inputs."""
    script = begun()
    let_letters_have_no_place(script)
    script.world.kill("n4")
    script.go_on(10_000)
    script.judge_end()


def ends_of_log_and_table(script: Script) -> dict[str, int]:
    """The last stable offsets of the two topics now."""
    broker, cluster = script.world.broker, script.world.cluster
    return {
        topic: broker.partitions(cluster.topic(topic))[0].last_stable_offset for topic in (DECISIONS, ROUTING_TABLE)
    }


def let_log_lose_its_end(script: Script, ends: Mapping[str, int] | None = None) -> None:
    """Restore the brokers of a stopped cluster from an older copy, and start its controllers.

    Log and table lack the same decisions, so that they contradict each other in nothing.
    """
    world = script.world
    ends = ends_of_log_and_table(script) if ends is None else ends
    script.ask("lost", "exclude_node", node="n4")
    script.go_on_until(lambda: script.answered("lost"), 3_000)
    script.go_on(2_000)
    script.stops_watching = True
    for name in (*CONTROLLERS, *NODES, *CLIENTS):
        world.kill(name)
    world.lose_end(ends)
    for name in CONTROLLERS:
        world.start_controller(name)


def the_log_loses_its_end() -> None:
    """No controller may lead: it would decide again what others have seen decided otherwise."""
    script = begun()
    let_log_lose_its_end(script)
    script.go_on(12_000)
    script.verdicts.judge(STOPPED, not script.world.running, f"{sorted(script.world.running)} go on")
    script.verdicts.require()


def let_log_lose_its_last_decision(script: Script) -> int:
    """Let the leader's host and the last decision be lost together, while the others have read it; return its seq."""
    world = script.world
    (leader,) = script.leaders
    ends = ends_of_log_and_table(script)
    script.ask("lost", "exclude_node", node="n4")
    script.go_on_until(lambda: script.answered("lost"), 3_000)
    script.go_on(300)
    last = script.state.seq
    script.stops_watching = True
    world.kill(leader)
    world.lose_end(ends)
    return last


def the_log_loses_its_last_decision() -> None:
    """Barriers fill the hole. Nothing may be committed behind a decision that is only in memories."""
    script = begun()
    last = let_log_lose_its_last_decision(script)
    script.go_on(20_000)
    end = LogFollower(partial(MemoryLogReader, script.world.cluster, script.world.broker), script.world.clock)
    try:
        end.read_to_end(1_000, 1_000)
    except LogContinuityError as error:
        script.verdicts.judge(CONTINUES, False, str(error))
    is_well = end.state.seq < last and not script.world.running
    script.verdicts.judge(STOPPED, is_well, f"seq {end.state.seq}, {sorted(script.world.running)} go on")
    script.verdicts.require()


def let_contender_wake_behind_a_successor(script: Script, late: Callable[[str], None]) -> str:
    """Let a contender be paused before it opens its term, until another one has; return it.

    Args:
        script: a cluster that is well.
        late: called with the contender when the other one is about to open its term: what it reads is late.
    """
    (leader,) = script.leaders
    paused: list[str] = []

    def pause(name: str) -> None:
        script.pause(name, 7_000)
        paused.append(name)
        script.when(ControllerPhase.OPENING_TERM, lambda _: late(name))

    script.when(ControllerPhase.CATCHING_UP, pause)
    script.world.kill(leader)
    script.go_on_until(lambda: len(script.leaders) == 1 and script.leaders != [leader], 9_000)
    return paused[0]


def a_contender_wakes_behind_a_successor() -> None:
    """Table and lease store are ahead of the log as it read it, and its broker does not know the successor's term."""
    script = begun()
    (log,) = script.world.broker.partitions(script.world.cluster.topic(DECISIONS))

    def lag(name: str) -> None:
        script.world.machines[name].network.stale_ends[TopicPartition(DECISIONS, 0)] = log.last_stable_offset

    contender = let_contender_wake_behind_a_successor(script, lag)
    script.go_on(9_000)
    script.world.machines[contender].network.stale_ends.clear()
    script.go_on(4_000)
    script.judge_end()


def let_leader_be_deaf(script: Script, place: TopicPartition) -> str:
    """Let no record of a partition reach the leader any more, as far as it goes; return the leader."""
    (leader,) = script.leaders
    script.world.machines[leader].network.hold_back({place})
    script.go_on(500)
    return leader


def a_leader_is_deaf_to_a_partition() -> None:
    """A node dies whose heartbeats go there, and an operator waits."""
    script = begun()
    let_leader_be_deaf(script, TopicPartition(HEARTBEATS, partition_of(b"n4", 2)))
    script.world.kill("n4")
    script.go_on(20_000)
    script.judge_end()
