"""``table status``: what an operator who asks "why is the table as it is" is told, under each slot policy."""

import functools
import json
import re
from typing import Any

import pytest

from controlplane.cli.common.failures import ExitStatus
from controlplane.config import HEARTBEATS, ClusterConfig
from controlplane.core.cluster.policy import ClusterPolicy
from controlplane.core.operations.slot_numbers import slot_ranges
from controlplane.inspection import readers, table_standing
from tests.helpers.commands import RunCommand
from tests.helpers.published_world import PublishedWorld
from tests.helpers.sofa_fleet import SofaFleet
from tests.helpers.world import PARTITIONS


@pytest.fixture
def fleet() -> SofaFleet:
    """Under ``sofa``: one node is protected."""
    make_world = functools.partial(PublishedWorld, ClusterConfig("local"))
    return SofaFleet(options={"protected_nodes": "1"}, make_world=make_world)


@pytest.fixture
def world(fleet: SofaFleet) -> PublishedWorld:
    """What the command reads."""
    assert isinstance(fleet.world, PublishedWorld)
    return fleet.world


def status(command: RunCommand) -> dict[str, Any]:
    """The status as a program reads it."""
    found: dict[str, Any] = json.loads(command("table", "status", "--format", "json").out)
    return found


def test_balance_and_the_gate_are_sofaregistrys(cluster_command: RunCommand, fleet: SofaFleet) -> None:
    """A node that fetches keeps the gate closed; when it is done, leaderships move until all are within the marks."""
    fleet.join("a")
    fleet.join("b")
    fleet.join("c", fetch_ms=8_000)
    fleet.run(2_000)
    fleet.run(3_000)
    shown = status(cluster_command)
    assert (shown["slot_policy"], shown["stable"], shown["protected"]) == ("sofa", False, False)
    assert shown["policy_says"] == "none: not every slot is in sync"
    fleet.run(30_000)
    shown = status(cluster_command)
    assert shown["stable"]
    assert (shown["leaders_balanced"], shown["followers_balanced"]) == (True, True)
    assert shown["policy_says"] == "balance: nothing has to move"
    nodes = {row["node"]: row for row in shown["nodes"]}
    assert sum(row["leads"] for row in nodes.values()) == sum(row["follows"] for row in nodes.values()) == 16
    assert shown["epoch"] == fleet.world.state.epoch


def test_protection_and_the_dead_are_shown(cluster_command: RunCommand, fleet: SofaFleet) -> None:
    """A frozen table goes on naming the dead: that is what the operator has to see."""
    fleet.join("a")
    fleet.join("b")
    fleet.run(8_000)
    fleet.kill("b")
    fleet.run(5_000)
    shown = status(cluster_command)
    assert (shown["protected"], shown["stable"], shown["refusal"]) == (True, False, "")
    assert str(shown["policy_says"]).startswith("protect: ")
    assert {row["node"] for row in shown["nodes"]} == {"a", "b"}


def test_text_shows_every_property_and_node(cluster_command: RunCommand, fleet: SofaFleet) -> None:
    """The same for people."""
    fleet.join("a")
    fleet.join("b")
    fleet.run(8_000)
    text = cluster_command("table", "status").out
    for name in table_standing.COUNT_FIELDS:
        assert name in text
    for name in status(cluster_command):
        assert name in {"standstill", "holds", "nodes", "waiting"} or name.replace("_", " ") in text


def test_a_cluster_that_nobody_led_has_none(cluster_command: RunCommand, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is said, with what to do."""
    monkeypatch.setattr(readers, "read_decisions", lambda *_: iter(()))
    ran = cluster_command("table", "status")
    assert ran.status == ExitStatus.FAILED
    assert "no controller has led it" in ran.err


class TestMinimal:
    """The same command under the default policy."""

    @pytest.fixture
    def world(self) -> PublishedWorld:
        """A cluster under ``minimal``."""
        return PublishedWorld(ClusterConfig("local"))

    def test_balanced_is_what_it_would_leave_where_it_is(
        self, cluster_command: RunCommand, world: PublishedWorld
    ) -> None:
        """Every plan of it is balanced; nobody has said that he has his data, so nothing is in sync."""
        world.admit("n1", "n2", "n3")
        world.run(1_000, ("n1", "n2", "n3"))
        shown = status(cluster_command)
        assert (shown["slot_policy"], shown["stable"], shown["protected"]) == ("minimal", False, False)
        assert (shown["leaders_balanced"], shown["followers_balanced"]) == (True, True)
        assert shown["policy_says"] == ""
        assert (shown["plan_in_flight"], shown["plan_age_ms"]) == (None, None)

    def test_a_table_without_a_controller_is_not_shown_as_a_working_one(
        self, cluster_command: RunCommand, world: PublishedWorld
    ) -> None:
        """Everything looks as it did when the last controller ended, and nobody would take up a node's silence."""
        world.admit("n1", "n2", "n3")
        world.run(20_000, ("n1", "n2", "n3"))
        assert status(cluster_command)["standstill"] is None
        assert "stands still" not in cluster_command("table", "status").out
        world.clock.advance(54_000)
        standstill = status(cluster_command)["standstill"]
        assert standstill["tick_ago_ms"] == 54_000
        assert standstill["decision_ago_ms"] > 54_000
        first = cluster_command("table", "status").out.splitlines()[0]
        assert re.match(
            r"last decision \d+ s ago, last tick 54 s ago: log time stands still, or this machine's clock", first
        )
        for place in range(PARTITIONS):
            end = world.broker.partitions(world.cluster.topic(HEARTBEATS))[place].end_offset
            world.broker.delete_before(world.cluster.topic(HEARTBEATS), place, end)
        assert status(cluster_command)["standstill"]["tick_ago_ms"] is None
        assert "ago, no tick since: log time stands still, or" in cluster_command("table", "status").out


class TestPaced:
    """The same command while a plan is being carried out."""

    @pytest.fixture
    def world(self) -> PublishedWorld:
        """Plans wait a minute."""
        return PublishedWorld(ClusterConfig("local"), ClusterPolicy(slot_count=16, cool_down_ms=60_000))

    def test_everything_that_waits_says_what_for(self, cluster_command: RunCommand, world: PublishedWorld) -> None:
        """The plan is named by its decision, the rows that are left by slot; people get them by reason."""
        world.admit("n1", "n2", "n3")
        world.admit("n4")
        made_at_ms = world.decisions[-1].decided_at_ms
        world.run(700)
        shown = status(cluster_command)
        assert (shown["plan_in_flight"], shown["plan_age_ms"]) == (world.decisions[-1].seq, world.now_ms - made_at_ms)
        assert world.now_ms - made_at_ms >= 700
        waiting = {row["slot"]: row["for"] for row in shown["waiting"]}
        rest_s = (made_at_ms + 60_000 - world.now_ms) // 1_000
        reason = f"cool_down_ms is 60,000, {rest_s} s left"
        assert waiting == dict.fromkeys(world.state.slots.planned, reason)
        assert shown["rows_left"] == len(waiting) > 0
        text = cluster_command("table", "status").out
        assert f"slots {slot_ranges(waiting)} wait: {reason}" in text
        assert f"decision {world.decisions[-1].seq}" in text

    def test_a_replica_that_may_not_come_back_yet_says_who_gave_it_up_and_when(
        self, cluster_command: RunCommand, world: PublishedWorld
    ) -> None:
        """The option that delays it is named with its value, and what is left of it."""
        world.ask("change_policy", cool_down_ms="0", return_window_ms="60000")
        world.admit("n1", "n2", "n3")
        world.admit("n4")
        world.run(2_000, ("n1", "n2", "n3", "n4"))
        world.run(4_000, ("n1", "n2", "n3"))
        world.ask("set_node", node="n1", weight="9")
        text = cluster_command("table", "status").out
        assert re.search(
            r"slots? [0-9 -]+ waits?: n1 gave it up \d s ago, return_window_ms is 60,000, 5\d s left", text
        )


class TestWhatIsMissing:
    """A table that lacks something is not whole, however balanced it is."""

    @pytest.fixture
    def world(self) -> PublishedWorld:
        """Three replicas are wished."""
        return PublishedWorld(ClusterConfig("local"), ClusterPolicy(slot_count=16, replica_count=3, join_linger_ms=0))

    def test_missing_replicas_are_counted_with_the_reason(
        self, cluster_command: RunCommand, world: PublishedWorld
    ) -> None:
        """Two nodes cannot hold three replicas."""
        world.admit("n1", "n2")
        shown = status(cluster_command)
        assert (shown["replicas_missing"], shown["slots_without_a_node"]) == (16, 0)
        (shortfall,) = shown["shortfalls"]
        assert "16 slots have 2 of 3 replicas" in str(shortfall)
        text = cluster_command("table", "status").out
        assert "replicas missing" in text
        assert str(shortfall) in text

    def test_slots_without_a_node_are_counted(self, cluster_command: RunCommand, world: PublishedWorld) -> None:
        """Nobody joined yet."""
        assert world.state.slots.table
        shown = status(cluster_command)
        assert (shown["replicas_missing"], shown["slots_without_a_node"]) == (48, 16)

    def test_draining_and_excluded_nodes_are_marked(self, cluster_command: RunCommand, world: PublishedWorld) -> None:
        """Who holds little on purpose is told from who lacks something."""
        world.admit("n1", "n2", "n3")
        world.ask("drain_node", node="n1")
        world.ask("exclude_node", node="n2")
        nodes = {row["node"]: row["status"] for row in status(cluster_command)["nodes"]}
        assert nodes == {"n1": "draining", "n2": "active, excluded", "n3": "active"}
