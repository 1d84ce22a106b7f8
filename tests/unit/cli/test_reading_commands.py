"""``table show``, ``log show`` and ``namespaces list``, and what the commands that read have in common."""

import json
import time

import pytest

from controlplane.cli.common import connecting
from controlplane.cli.common.failures import ExitStatus
from controlplane.core.log.state import State
from controlplane.core.operations.slot_numbers import slot_ranges
from controlplane.inspection import decisions, members, states, tables
from controlplane.inspection.source import LogSource
from tests.helpers.commands import RunCommand
from tests.helpers.published_world import PublishedWorld


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
