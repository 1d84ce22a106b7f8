"""Scripts for the situations in which some bugs appear, and which random seeds reach too rarely."""

from controlplane.core.membership.node import NodeStatus
from tests.simulation.network import TABLE
from tests.simulation.script import Script, begun
from tests.simulation.setting import NODES


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


def nodes_go_to_partitions_that_are_added() -> None:
    """Their heartbeats stop in the partitions that were read, and begin in one that was not read yet."""
    script = begun()
    script.world.add_partitions(2)
    script.go_on(6_000)
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
