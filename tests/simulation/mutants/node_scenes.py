"""Scripts for bugs that show in intervals of virtual time, not in decisions."""

from dataclasses import replace

from tests.simulation.script import USUAL, begun


def a_node_dies_in_a_quiet_cluster() -> None:
    """Nothing else happens that would make the leader decide."""
    script = begun()
    script.go_on(1_000)
    script.world.kill("n4")
    script.go_on(8_000)
    script.judge_end()


def an_intent_comes_in_a_quiet_cluster() -> None:
    """Its sender waits."""
    script = begun()
    script.go_on(1_000)
    script.ask("alone", "refresh_table")
    script.go_on(5_000)
    script.judge_end()


def a_limit_falls_while_a_node_is_cut_off() -> None:
    """It reads of it no more, and serves by the longer one."""
    script = begun(replace(USUAL, policy=replace(USUAL.policy, silence_limit_ms=10_000)))
    script.go_on(1_000)
    script.world.machines["n4"].network.kafka = False
    script.ask("shorter", "change_policy", silence_limit_ms="1500")
    script.go_on(16_000)
    script.world.machines["n4"].network.kafka = True
    script.go_on(4_000)
    script.judge_end()


def a_cluster_runs_for_a_minute() -> None:
    """Longer than the window of log time that observations have to remember."""
    script = begun()
    script.go_on(60_000)
    script.judge_end()


def a_node_is_fenced_and_comes_back() -> None:
    """It is the same process all the time, and no other one was started."""
    script = begun()
    script.pause("n4", 4_000)
    script.go_on(8_000)
    script.judge_end()
