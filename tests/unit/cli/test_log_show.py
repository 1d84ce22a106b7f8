"""``log show``: what each decision planned, carried out and left, and why each row moved."""

import json

import pytest

from controlplane.cli.common.failures import ExitStatus
from controlplane.config import ClusterConfig
from controlplane.core.cluster.policy import ClusterPolicy
from tests.helpers.commands import RunCommand
from tests.helpers.published_world import PublishedWorld

NAMES = ("n1", "n2", "n3", "n4")


@pytest.fixture
def world() -> PublishedWorld:
    """Plans wait a second."""
    return PublishedWorld(ClusterConfig("local"), ClusterPolicy(slot_count=16, cool_down_ms=1_000))


@pytest.fixture
def plan(world: PublishedWorld) -> int:
    """A fourth node joined, and all of the plan was carried out later; the seq of the plan."""
    world.admit("n1", "n2", "n3")
    world.admit("n4")
    seq = world.state.seq
    world.run(1_500, NAMES)
    return seq


def test_planned_carried_out_and_left_are_told_apart(cluster_command: RunCommand, plan: int) -> None:
    """The plan moves nothing itself, and what continues it moves what was planned."""
    header, *lines = cluster_command("log", "show", "--last", "2").out.splitlines()
    assert [line.split()[0] for line in lines] == [str(plan), str(plan + 1)]
    at = {name: header.index(name) for name in ("moves planned", "least moves", "moves carried out", "moves left")}
    cells = [{name: line[start:].split()[0] for name, start in at.items()} for line in lines]
    planned = cells[0]["moves planned"]
    assert list(cells[0].values()) == [planned, planned, "0", planned]
    assert list(cells[1].values()) == ["-", "-", planned, "0"]


def test_each_row_says_why_it_moved(cluster_command: RunCommand, world: PublishedWorld, plan: int) -> None:
    """By number, by epoch, by slot and by node; all of them together as well."""
    ran = cluster_command("log", "show", "--seq", str(plan + 1), "--format", "json")
    (decision,) = json.loads(ran.out)
    assert decision["seq"] == plan + 1
    assert len(decision["rows"]) > 0
    assert all(f"(plan of decision {plan}: node_joined n4)" in row["cause"] for row in decision["rows"])
    slot_id = decision["rows"][0]["after"]["slot_id"]
    by_slot = json.loads(cluster_command("log", "show", "--slot", str(slot_id), "--format", "json").out)
    assert [each["seq"] for each in by_slot] == [plan - 1, plan + 1]
    assert {row["after"]["slot_id"] for each in by_slot for row in each["rows"]} == {slot_id}
    by_node = json.loads(cluster_command("log", "show", "--node", "n4", "--format", "json").out)
    assert [each["seq"] for each in by_node] == [plan, plan + 1]
    assert {row["after"]["slot_id"] for row in by_node[1]["rows"]} == world.held("n4")
    (by_epoch,) = json.loads(
        cluster_command(
            "log", "show", "--epoch", str(world.state.epoch), "--slot", str(slot_id), "--format", "json"
        ).out
    )
    assert (by_epoch["seq"], len(by_epoch["rows"])) == (plan + 1, 1)
    text = cluster_command("log", "show", "--seq", str(plan + 1), "--slot", str(slot_id)).out
    assert text.splitlines()[-1].split()[:2] == [str(plan + 1), str(slot_id)]
    assert "plan of decision" in text
    assert "no row of the slot table changed" in cluster_command("log", "show", "--seq", str(plan)).out


def test_log_without_such_a_decision_is_said_to_have_none(cluster_command: RunCommand, plan: int) -> None:
    """Nothing is printed for programs but an empty list."""
    ran = cluster_command("log", "show", "--seq", "999", "--format", "json")
    assert (ran.status, json.loads(ran.out)) == (ExitStatus.FAILED, [])
    assert "the log holds no decision of seq 999" in ran.err
    both = cluster_command("log", "show", "--epoch", "1", "--node", "n4")
    assert both.err == "the log holds no decision of epoch 1 and about node 'n4'\n"


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--slot", "999"), "of slot 999: there is no slot 999, the cluster's slots are 0 to 15\n"),
        (("--node", "n44"), "about node 'n44': the cluster knows no node of that name; did you mean 'n4'?\n"),
        (("--node", "xyz"), "the cluster knows no node of that name; it knows n1, n2, n3, n4.\n"),
    ],
)
def test_a_slot_or_node_that_there_is_not_is_named(
    cluster_command: RunCommand, plan: int, words: tuple[str, str], why: str
) -> None:
    """That no decision is about it would be true of a slot that never moved, too."""
    assert plan
    ran = cluster_command("log", "show", *words)
    assert ran.status == ExitStatus.FAILED
    assert ran.err.endswith(why), ran.err


def test_long_tables_of_rows_are_cut(cluster_command: RunCommand, world: PublishedWorld, plan: int) -> None:
    """The newest rows are shown, and how to see the others; programs get all of them."""
    assert plan
    words = ("log", "show", "--node", "n1")
    whole = cluster_command(*words, "--limit", "0").out.splitlines()
    cut = cluster_command(*words, "--limit", "3").out.splitlines()
    decisions = len(json.loads(cluster_command(*words, "--format", "json").out))
    row_count = len(whole) - decisions - 2
    assert row_count > 3
    assert cut[: decisions + 1] == whole[: decisions + 1]
    assert cut[decisions + 1] == f"{row_count - 3:,} more rows before these: --limit 0 prints all"
    assert [line.split() for line in cut[-3:]] == [line.split() for line in whole[-3:]]
    assert len(cut) == decisions + 1 + 1 + 1 + 3
    told = json.loads(cluster_command(*words, "--limit", "3", "--format", "json").out)
    assert sum(len(each["rows"]) for each in told) == row_count


def test_shortfalls_are_shown(cluster_command: RunCommand, world: PublishedWorld, plan: int) -> None:
    """What was wished and could not be stands beside the proof."""
    assert plan
    world.ask("change_policy", replica_count="5")
    assert "16 slots have 4 of 5 replicas: no more fit on 4 nodes" in cluster_command("log", "show", "--last", "1").out
