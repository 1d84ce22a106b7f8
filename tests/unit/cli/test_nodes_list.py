"""``nodes list``: who lives, who is silent, what holds the cluster, and how far behind each node works."""

import json
import re

from controlplane.codec.framing import SINGLE_OBJECT_HEADER_BYTES
from controlplane.codec.inputs import encode_input
from controlplane.config import HEARTBEATS
from controlplane.core.membership.inputs import Heartbeat
from controlplane.core.membership.node import NodeRole
from controlplane.core.values.identifiers import Epoch
from controlplane.inspection.records import when
from controlplane.ports import OutgoingRecord
from controlplane.testing import MemoryEventWriter
from tests.helpers.commands import RunCommand
from tests.helpers.published_world import PublishedWorld


def test_nodes_show_lag_and_time_since_heartbeat(cluster_command: RunCommand, played: PublishedWorld) -> None:
    """Who works with an old table, and who was not heard for long, stands in one line."""
    rows = {row["node"]: row for row in json.loads(cluster_command("nodes", "list", "--format", "json").out)}
    assert set(rows) == {"n1", "n2", "n3"}
    # The world's nodes say epoch 0, and beat at each full second of their run: 4 s of beats, then 400 ms without.
    assert rows["n1"]["epoch_in_use"] == 0
    assert rows["n1"]["epoch_lag"] == played.state.epoch
    assert rows["n1"]["since_heartbeat_ms"] == 500
    assert rows["n3"]["status"] == "fenced"
    assert rows["n3"]["since_heartbeat_ms"] > 4_000
    assert rows["n1"]["addresses"] == ["kv=localhost:4000"]
    assert rows["n1"]["slots_led"] + rows["n2"]["slots_led"] == len(played.state.slots.table)


def test_nodes_text_says_of_which_log_time_it_is(cluster_command: RunCommand, played: PublishedWorld) -> None:
    """The line dates what it says."""
    shown = cluster_command("nodes", "list").out.splitlines()
    assert shown[0] == f"epoch {played.state.epoch}, 2 of 3 nodes live at log time {when(played.now_ms)}"
    assert shown[1].split()[0] == "node"


def test_nodes_of_a_fleet_that_ended_are_not_called_live(cluster_command: RunCommand, played: PublishedWorld) -> None:
    """Where no controller ticks either, log time stands still; then this machine's clock says how old all of it is."""
    shown_at = when(played.now_ms)
    played.clock.advance(240_000)
    first, second, heading, n1, n2, n3 = cluster_command("nodes", "list").out.splitlines()
    assert first == f"epoch {played.state.epoch}, 0 of 3 nodes live, 2 silent at log time {shown_at}"
    assert second.startswith("log time stands still: neither a controller nor a node has written for 240 s")
    assert "active, silent for 240 s" in n1
    assert "active, silent for 240 s" in n2
    assert [line.split()[-1] for line in (n1, n2, n3)] == ["-"] * 3, "log time since the last heartbeat says nothing"
    assert ("fenced" in n3, "silent for" in n3, "silent" in heading) == (True, False, False)
    rows = {row["node"]: row for row in json.loads(cluster_command("nodes", "list", "--format", "json").out)}
    assert rows["n1"]["status"] == "active"
    assert rows["n1"]["silent_ms"] == 240_000 + rows["n1"]["since_heartbeat_ms"]
    assert rows["n3"]["silent_ms"] is None


def test_nodes_that_only_a_freeze_keeps_are_silent_for_as_long_as_was_looked_back(
    cluster_command: RunCommand, world: PublishedWorld
) -> None:
    """Controllers tick on after the fleet has ended: log time goes on, and the last heartbeats lie far behind."""
    world.admit("n1", "n2", "n3", "n4")
    world.run(240_000)
    assert world.state.membership.evictions_frozen
    frozen, headline, _, *lines = cluster_command("nodes", "list").out.splitlines()
    assert frozen.startswith("evictions are frozen since ")
    assert "0 of 4 nodes live, 4 silent at log time" in headline
    assert ["active, silent for at least 60 s" in line for line in lines] == [True] * 4


def test_frozen_evictions_and_a_pause_head_the_nodes_and_the_table_s_status(
    cluster_command: RunCommand, world: PublishedWorld
) -> None:
    """Who did it, since when, why and what ends it; nodes that only the freeze keeps are silent, not live."""
    world.admit("n1", "n2", "n3", "n4")
    world.run(5_000, ("n1",))
    world.principal = "alice"
    world.intent("i1", "pause_reconciliation", reason="network maintenance")
    world.run(400, ("n1",))
    frozen, paused, headline = cluster_command("nodes", "list").out.splitlines()[:3]
    assert re.fullmatch(
        r"evictions are frozen since \S+Z \(decision \d+\): 3 silent at once, 2 allowed: n2, n3, n4; no node is fenced "
        r"for silence until most are heard again, the window has passed, or "
        r"'controlplane intents override-self-preservation'",
        frozen,
    )
    assert re.fullmatch(
        r"reconciliation is paused since \S+Z \(decision \d+\) by alice: network maintenance; no slot is planned until "
        r"'controlplane table resume'",
        paused,
    )
    assert "1 of 4 nodes live, 3 silent at log time" in headline
    assert cluster_command("table", "status").out.splitlines()[:2] == [frozen, paused]
    holds = json.loads(cluster_command("table", "status", "--format", "json").out)["holds"]
    assert [(hold["hold"], hold["by"]) for hold in holds] == [
        ("evictions_frozen", ""),
        ("reconciliation_paused", "alice"),
    ]
    world.intent("i2", "resume_reconciliation")
    world.run(3_000, ("n1", "n2", "n3", "n4"))
    assert "4 of 4 nodes live at log time" in cluster_command("nodes", "list").out.splitlines()[0]
    assert json.loads(cluster_command("table", "status", "--format", "json").out)["holds"] == []


def test_session_nodes_are_shown_with_their_lag_and_own_nothing(
    cluster_command: RunCommand, world: PublishedWorld
) -> None:
    """Who only uses the table is seen by how far behind it works, and never appears as an owner."""
    world.admit("n1")
    world.join("s1", role=NodeRole.SESSION)
    world.run(400)
    known = world.state.epoch
    world.heartbeat("s1", table_epoch=known, role=NodeRole.SESSION)
    world.intent("i1", "create_namespace", namespace="kv")
    world.run(200)
    rows = {row["node"]: row for row in json.loads(cluster_command("nodes", "list", "--format", "json").out)}
    shown = rows["s1"]
    assert (shown["role"], shown["status"], shown["epoch_in_use"]) == ("session", "active", known)
    assert shown["epoch_lag"] == world.state.epoch - known > 0
    assert (shown["slots_led"], shown["slots_followed"], shown["bundles"]) == (0, 0, 0)
    assert (rows["n1"]["slots_led"], rows["n1"]["bundles"]) == (len(world.state.slots.table), 4)


def test_heartbeats_in_confluents_framing_are_shown_where_their_ids_are_named(
    cluster_command: RunCommand, world: PublishedWorld
) -> None:
    """A node that uses a schema registry must not look silent to an operator who has named the registry's ids."""
    world.admit("n1")
    body = encode_input(Heartbeat("n1", 1, world.now_ms, Epoch(2), NodeRole.DATA))[SINGLE_OBJECT_HEADER_BYTES:]
    writer = MemoryEventWriter(world.cluster, world.broker)
    writer.send(OutgoingRecord(HEARTBEATS, b"n1", b"\x00\x00\x00\x00\x11" + body))
    writer.flush(0)
    for options, epoch_in_use in (((), 0), (("--schema-id", "17=Heartbeat.v1"), 2)):
        (row,) = json.loads(cluster_command("nodes", "list", "--format", "json", *options).out)
        assert row["epoch_in_use"] == epoch_in_use


def test_heartbeat_of_an_older_incarnation_counts_as_none(cluster_command: RunCommand, world: PublishedWorld) -> None:
    """A node that was started again is not shown with its former incarnation's heartbeat."""
    world.admit("n1")
    world.join("n1", incarnation=2)
    world.run(400)
    (row,) = json.loads(cluster_command("nodes", "list", "--format", "json").out)
    assert (row["incarnation"], row["epoch_in_use"], row["since_heartbeat_ms"]) == (2, None, None)


def test_heartbeats_that_are_passed_by_are_counted_with_the_reason(
    cluster_command: RunCommand, world: PublishedWorld
) -> None:
    """Nodes that are silent by the list while they run are explained by it; no controller takes their heartbeats."""
    world.admit("n1")
    assert "passed by" not in cluster_command("nodes", "list").out
    world.broker.alter_topic(world.cluster.topic(HEARTBEATS), {"message.timestamp.type": "CreateTime"})
    world.run(10_000, ("n1",))
    _, *lines = cluster_command("nodes", "list").out.splitlines()
    (line,) = [line for line in lines if "passed by" in line]
    assert re.fullmatch(
        r"\d{2,} heartbeats and ticks were passed by: topic local\.heartbeats carries its senders' time "
        r"\(message\.timestamp\.type=CreateTime\); set it to LogAppendTime",
        line,
    )
    world.broker.alter_topic(world.cluster.topic(HEARTBEATS), {"message.timestamp.type": "LogAppendTime"})
    writer = MemoryEventWriter(world.cluster, world.broker)
    writer.send(OutgoingRecord(HEARTBEATS, b"n1", b"garbage", 0))
    writer.flush(0)
    shown = cluster_command("nodes", "list").out
    assert "1 heartbeat or tick was passed by: not_avro_framed (The value begins neither like" in shown
