"""``log show``: what each decision planned, carried out and left, and why each row moved."""

import json

import pytest

from controlplane.cli.common.failures import ExitStatus
from controlplane.config import ClusterConfig
from controlplane.core.cluster.policy import Policy
from tests.helpers.commands import RunCommand
from tests.helpers.published_world import PublishedWorld

NAMES = ("n1", "n2", "n3", "n4")


@pytest.fixture
def world() -> PublishedWorld:
    """Plans wait a second."""
    return PublishedWorld(ClusterConfig("local"), Policy(slot_count=16, cool_down_ms=1_000))


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
    both = cluster_command("log", "show", "--slot", "3", "--node", "nobody")
    assert both.err == "the log holds no decision that changed the row of slot 3 and about node 'nobody'\n"


def test_shortfalls_are_shown(cluster_command: RunCommand, world: PublishedWorld, plan: int) -> None:
    """What was wished and could not be stands beside the proof."""
    assert plan
    world.ask("change_policy", replica_count="5")
    assert "16 slots have 4 of 5 replicas: 4 nodes" in cluster_command("log", "show", "--last", "1").out
