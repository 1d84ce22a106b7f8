"""Scripts for bugs that show in intervals of virtual time, not in decisions."""

from dataclasses import replace

from tests.simulation.network import TABLE
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
    """Much longer than the window of log time that observations have to remember."""
    script = begun()
    script.go_on(75_000)
    script.judge_end()


def a_node_is_fenced_and_comes_back() -> None:
    """It is the same process all the time, and no other one was started."""
    script = begun()
    script.pause("n4", 4_000)
    script.go_on(8_000)
    script.judge_end()


def a_process_takes_the_place_of_another_while_nothing_may_move() -> None:
    """SOFARegistry's rules leave the rows as they are then, and the former process serves until it reads of its end."""
    script = begun(replace(USUAL, policy=replace(USUAL.policy, slot_policy="sofa")))
    script.go_on(3_000)
    script.ask("pause", "pause_reconciliation")
    script.go_on_until(lambda: script.answered("pause"), 3_000)
    script.world.machines["n4"].network.hold_back(TABLE)
    script.world.start_node("n4", second_machine="n4-again")
    script.go_on(6_000)
    script.world.machines["n4"].network.let_through(TABLE)
    script.ask("resume", "resume_reconciliation")
    script.go_on(6_000)
    script.judge_end()
