"""``table``, ``nodes``, ``log``, ``leader`` and ``namespaces list`` on an in-memory cluster, in both formats."""

import json
import re
import time
from collections.abc import Iterator
from dataclasses import replace

import pytest

from controlplane.cli.common import connecting
from controlplane.cli.common.failures import ExitStatus
from controlplane.codec.decisions import decision_key, encode_decision
from controlplane.codec.framing import SINGLE_OBJECT_HEADER_BYTES
from controlplane.codec.inputs import encode_input
from controlplane.config import DECISIONS, HEARTBEATS
from controlplane.core.log.state import State
from controlplane.core.membership.inputs import Heartbeat
from controlplane.core.membership.node import NodeRole
from controlplane.core.operations.slot_numbers import slot_ranges
from controlplane.core.values.identifiers import Epoch, Seq, Term
from controlplane.errors import LogContinuityError
from controlplane.inspection import decisions, members, readers, states, tables
from controlplane.inspection.readers import LoggedDecision
from controlplane.inspection.records import when
from controlplane.inspection.source import LogSource
from controlplane.ports import OutgoingRecord
from controlplane.testing import MemoryEventWriter, MemoryLeaseServer, MemoryLeaseStore
from tests.helpers.commands import RunCommand
from tests.helpers.published_world import PublishedWorld


@pytest.fixture
def played(world: PublishedWorld) -> PublishedWorld:
    """Three nodes and a namespace; one node was fenced, another left."""
    world.admit("n1", "n2", "n3", "n4")
    world.intent("i1", "create_namespace", namespace="kv")
    world.run(300, ("n1", "n2", "n3", "n4"))
    world.run(4_000, ("n1", "n2", "n4"))
    world.left("n4")
    world.run(400, ("n1", "n2"))
    return world


def test_table_by_slot_is_the_state(cluster_command: RunCommand, played: PublishedWorld) -> None:
    """What readers print is what the leader decided, whole."""
    shown = json.loads(cluster_command("table", "show", "--format", "json").out)
    state = played.state
    assert (shown["epoch"], shown["term"], shown["seq"]) == (state.epoch, state.term, state.seq)
    assert [(row["slot"], row["leader"], tuple(row["followers"])) for row in shown["slots"]] == [
        (slot.slot_id, slot.leader, slot.followers) for slot in state.slots.table
    ]
    assert {row["bundle"]: row["owner"] for row in shown["bundles"]} == {
        bundle_id: bundle.owner for bundle_id, bundle in state.bundles.by_id.items()
    }


def test_table_by_node_counts_each_replica_once(cluster_command: RunCommand, played: PublishedWorld) -> None:
    """The inverted table loses and doubles nothing; a fenced node is shown with nothing."""
    rows = json.loads(cluster_command("table", "show", "--by", "node", "--format", "json").out)["nodes"]
    assert {row["node"]: row["status"] for row in rows} == {"n1": "active", "n2": "active", "n3": "fenced"}
    assert sum(row["leads"] for row in rows) == len(played.state.slots.table)
    assert sum(row["follows"] for row in rows) == sum(len(slot.followers) for slot in played.state.slots.table)
    assert sum(len(row["bundles"]) for row in rows) == len(played.state.bundles.by_id)
    assert next(row["leads"] + row["follows"] for row in rows if row["node"] == "n3") == 0


def test_table_text_has_a_line_for_each_slot(cluster_command: RunCommand, played: PublishedWorld) -> None:
    """Away from a terminal the table is plain text that other programs cut up."""
    lines = cluster_command("table", "show").out.splitlines()
    assert lines[0].startswith(f"epoch {played.state.epoch}, term 1, seq {played.state.seq}, log log, digest ")
    slot_lines = lines[2 : 2 + len(played.state.slots.table)]
    assert [line.split()[0] for line in slot_lines] == [str(slot.slot_id) for slot in played.state.slots.table]
    assert lines[1].split() == ["slot", "leader", "followers", "leader", "epoch", "orders"]


@pytest.mark.parametrize(
    ("words", "shown", "left_out"),
    [
        (("table", "show"), 2, 14),
        (("table", "show", "--by", "node"), 2, 1),
        (("table", "status"), 1, 1),
        (("nodes", "list"), 2, 1),
        (("namespaces", "list"), 1, 1),
    ],
)
def test_long_tables_are_cut_and_say_so(
    cluster_command: RunCommand, played: PublishedWorld, words: tuple[str, ...], shown: int, left_out: int
) -> None:
    """A cluster may have a thousand nodes and a million slots; JSON has all of them."""
    played.ask("create_namespace", namespace="other")
    ran = cluster_command(*words, "--limit", str(shown))
    assert played.state.slots.table
    assert f"... and {left_out} more: --limit 0 prints all" in ran.out.splitlines()
    assert "more: --limit" not in cluster_command(*words, "--limit", "0").out
    whole = cluster_command(*words, "--format", "json").out
    assert cluster_command(*words, "--format", "json", "--limit", str(shown)).out == whole


def test_no_namespaces_before_a_table_is_said(cluster_command: RunCommand, world: PublishedWorld) -> None:
    """No namespace was created, or no controller ever ran: the list alone looks the same."""
    world.broker.create_topic("local.routing-table")
    ran = cluster_command("namespaces", "list", "--format", "json")
    assert (ran.status, json.loads(ran.out)) == (ExitStatus.DONE, [])
    assert "no routing table yet" in ran.err


@pytest.mark.parametrize("words", [("table", "show"), ("nodes", "list")])
def test_cluster_without_a_table_is_said(
    cluster_command: RunCommand, world: PublishedWorld, words: tuple[str, str]
) -> None:
    """An empty table printed as a table would look like a lost one."""
    world.broker.create_topic("local.routing-table")
    ran = cluster_command(*words)
    assert ran.status == ExitStatus.FAILED
    assert "no routing table yet" in ran.err
    assert "controlplane controller run" in ran.err


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
        r"for silence until most are heard again, or 'controlplane intents override-self-preservation'",
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


def test_log_shows_the_last_decisions_with_moves_and_proof(cluster_command: RunCommand, played: PublishedWorld) -> None:
    """Each line says why, how much moved, and that less would not have done."""
    shown = json.loads(cluster_command("log", "show", "--last", "3", "--format", "json").out)
    assert [row["seq"] for row in shown] == [decision.seq for decision in played.decisions[-3:]]
    text = cluster_command("log", "show", "--last", "100").out.splitlines()
    assert len(text) == 1 + len(played.decisions)
    fenced = next(line for line in text if "node_expired n3" in line)
    certificate = next(
        decision.certificate for decision in played.decisions if decision.causes[0].kind.value == "node_expired"
    )
    assert certificate is not None
    moves = f"{certificate.moved} {certificate.least_moved} {certificate.moved} 0 {certificate.leader_changes} minimal:"
    assert moves in " ".join(fenced.split())
    assert "minimal: proven least" in fenced


def test_log_that_holds_is_verified(cluster_command: RunCommand, played: PublishedWorld) -> None:
    """A sentence with what was checked; status 0 is the answer for scripts."""
    certificates = sum(decision.certificate is not None for decision in played.decisions)
    ran = cluster_command("log", "verify")
    checked = f"{len(played.decisions)} decisions up to epoch {played.state.epoch}, {certificates} certificates"
    assert (ran.status, ran.out) == (ExitStatus.DONE, f"{checked}: every one holds\n")
    shown = json.loads(cluster_command("log", "verify", "--epoch", "2", "--format", "json").out)
    assert shown == {
        "decisions": len(played.decisions),
        "certificates": certificates,
        "epoch": played.state.epoch,
        "complaints": [],
    }
    ahead = cluster_command("log", "verify", "--epoch", "999")
    assert ahead.status == ExitStatus.FAILED
    assert f"epoch 999 is not there yet: the newest one is {played.state.epoch}" in ahead.err


def test_log_that_was_altered_is_named(
    cluster_command: RunCommand, played: PublishedWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The decision, and what is wrong with it; what stands behind a broken chain is not judged."""
    index = len(played.decisions) - 2
    altered = [LoggedDecision(decision, offset, 0) for offset, decision in enumerate(played.decisions)]
    altered[index] = replace(altered[index], decision=replace(altered[index].decision, decided_at_ms=1))
    monkeypatch.setattr(readers, "read_decisions", lambda _source, **_: iter(altered))
    ran = cluster_command("log", "verify")
    seq = played.decisions[index].seq
    assert ran.status == ExitStatus.FAILED
    assert ran.out.splitlines()[1].split()[0] == str(seq)
    assert f"decision {seq}: state digest" in ran.out
    assert ran.out.splitlines()[-1].endswith(": 1 complaint")
    (complaint,) = json.loads(cluster_command("log", "verify", "--format", "json").out)["complaints"]
    assert (complaint["seq"], complaint["epoch"]) == (seq, altered[index].decision.epoch)
    elsewhere = cluster_command("log", "verify", "--epoch", "1")
    assert elsewhere.status == ExitStatus.DONE
    assert elsewhere.out.endswith("; of epoch 1: every one holds\n")
    behind = cluster_command("log", "verify", "--epoch", str(played.state.epoch + 5))
    assert (behind.status, behind.out.count(f"decision {seq}: state digest")) == (ExitStatus.FAILED, 1)


def test_log_that_ends_within_a_decision_is_no_whole_log(
    cluster_command: RunCommand, played: PublishedWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was judged until there stays judged, and the end is told like any other fault."""

    def cut_off(_reader: object, **_: object) -> Iterator[LoggedDecision]:
        yield LoggedDecision(played.decisions[0], 0, 0)
        raise LogContinuityError("decisions[0]@7: the log ends within a decision")

    monkeypatch.setattr(readers, "read_decisions", cut_off)
    ran = cluster_command("log", "verify")
    assert ran.status == ExitStatus.FAILED
    assert "the log ends within a decision" in ran.out


def test_last_decision_that_cannot_be_decoded_is_told(cluster_command: RunCommand, world: PublishedWorld) -> None:
    """It breaks no chain, because nothing follows; once the decision of its key came, the record was a foreign one."""
    world.admit("n1")
    following = world.state.seq + 1
    record = encode_decision(replace(world.decisions[-1], seq=Seq(following)))[0]
    events = MemoryEventWriter(world.cluster, world.broker)
    events.send(OutgoingRecord(DECISIONS, b"nonsense", record[:-3], 0))
    assert cluster_command("log", "verify").status == ExitStatus.DONE
    events.send(OutgoingRecord(DECISIONS, decision_key(Seq(following)), record[:-3], 0))
    ran = cluster_command("log", "verify")
    assert ran.status == ExitStatus.FAILED
    assert f"has the key of decision {following} and cannot be decoded (decisions[0]@" in ran.out
    assert ran.out.splitlines()[-1].endswith(": 1 complaint")
    (complaint,) = json.loads(cluster_command("log", "verify", "--format", "json").out)["complaints"]
    assert complaint["seq"] == following
    world.admit("n2")
    assert cluster_command("log", "verify").status == ExitStatus.DONE


def test_leader_is_lease_and_last_term(
    cluster_command: RunCommand, world: PublishedWorld, lease_server: MemoryLeaseServer
) -> None:
    """The lease says who may lead, the log who did last; both are shown, because they can differ."""
    MemoryLeaseStore(lease_server).acquire("c2", Term(6), 2_000)
    world.admit("n1")
    ran = cluster_command("leader", "show", "--format", "json")
    shown = json.loads(ran.out)
    assert ran.status == ExitStatus.DONE
    assert (shown["lease_owner"], shown["lease_term"], shown["lease_remaining_ms"] > 0) == ("c2", 7, True)
    assert (shown["opened_by"], shown["opened_term"], shown["code_version"]) == ("c1", 1, "test")


def test_nobody_leading_has_status_three(cluster_command: RunCommand, world: PublishedWorld) -> None:
    """A script can wait for a leader; a person reads what to do, because the row holds only dashes."""
    ran = cluster_command("leader", "show")
    assert ran.status == ExitStatus.UNREACHABLE
    assert "no controller leads cluster 'local' now: start a controller" in ran.err


def test_namespaces_are_listed_with_owners(cluster_command: RunCommand, played: PublishedWorld) -> None:
    """Four bundles until they can be split, each with an owner that lives."""
    (row,) = json.loads(cluster_command("namespaces", "list", "--format", "json").out)
    assert (row["namespace"], row["bundles"]) == ("kv", 4)
    assert set(row["owners"]) <= {"n1", "n2"}


@pytest.mark.parametrize(
    ("words", "columns"),
    [
        (("nodes", "list"), members.MEMBER_FIELDS),
        (("log", "show"), decisions.DECISION_FIELDS),
        (("table", "show", "--by", "node"), tables.NODE_FIELDS),
    ],
)
def test_text_shows_every_column(
    cluster_command: RunCommand, played: PublishedWorld, words: tuple[str, ...], columns: tuple[str, ...]
) -> None:
    """A column that no row fills would be a field that was renamed under the view."""
    out = cluster_command(*words).out
    for column in columns:
        assert column.replace("_", " ") in out


@pytest.mark.parametrize(
    ("slots", "text"), [((), ""), ((5,), "5"), ((1, 2, 3, 7, 9, 10), "1-3 7 9-10"), ((3, 1, 2), "1-3")]
)
def test_slot_ranges(slots: tuple[int, ...], text: str) -> None:
    """Thousands of slots fit into one cell."""
    assert slot_ranges(slots) == text


def test_long_reading_is_seen(cluster_command: RunCommand, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine a command may take a while; it must not look as if it hung."""
    monkeypatch.setattr(connecting, "LONGEST_WAIT_S", 0.05)
    slowly = states.read_state

    def read_state(source: LogSource) -> State:
        time.sleep(0.3)
        return slowly(source)

    monkeypatch.setattr(states, "read_state", read_state)
    ran = cluster_command("table", "status")
    assert (ran.status, "reading the log of cluster local ... (0 s)" in ran.err) == (ExitStatus.DONE, True)
