"""What the demo asks of the log: a demo that passes whatever happens would prove nothing."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from controlplane.cli.demo import evidence, summary
from controlplane.cli.demo.checks import Check
from controlplane.cli.demo.summary import QueryResult, StepReport
from controlplane.cli.demo.traffic import Counts
from controlplane.core.membership.inputs import Heartbeat
from controlplane.core.membership.node import NodeRole
from controlplane.core.routing.replica import RoutingTable
from controlplane.core.values.identifiers import Epoch, Seq, Term
from controlplane.inspection import readers
from controlplane.inspection.readers import LoggedDecision
from tests.helpers.published_world import PublishedWorld
from tests.helpers.sources import source_of


@pytest.fixture
def killed(world: PublishedWorld) -> PublishedWorld:
    """Three nodes with a namespace, one of which fell silent."""
    world.admit("n1", "n2", "n3")
    world.intent("i1", "create_namespace", namespace="kv")
    world.run(300, ("n1", "n2", "n3"))
    world.run(4_000, ("n1", "n2"))
    return world


def decisions_of(world: PublishedWorld) -> list[LoggedDecision]:
    """The whole log."""
    return readers.read_last_decisions(source_of(world.reader()), 1_000)


def table_of(world: PublishedWorld) -> RoutingTable:
    """The newest table."""
    table = readers.read_routing_table(source_of(world.reader()))
    assert table is not None
    return table


def test_admission_fencing_and_opening_are_found(killed: PublishedWorld) -> None:
    """The right decision is taken for the cause: the times of the summary hang on it."""
    decisions = decisions_of(killed)
    admitted, fenced = evidence.admission_of(decisions, "n3"), evidence.fencing_of(decisions, "n3")
    assert admitted is not None
    assert fenced is not None
    assert admitted.decision.causes[0].kind.value == "node_joined"
    assert fenced.decision.causes[0].kind.value == "node_expired"
    assert evidence.fencing_of(decisions, "n1") is None
    opening = evidence.last_opening(decisions)
    assert opening is not None
    assert (opening.controller_id, opening.term) == ("c1", 1)


def test_whole_log_has_no_broken_chain(killed: PublishedWorld) -> None:
    """A true log passes."""
    assert evidence.broken_chain(decisions_of(killed)) is None


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"seq": Seq(99)}, "seq 99 follows"),
        ({"epoch": Epoch(99)}, "epoch 99 follows"),
        ({"epoch": Epoch(0)}, "epoch 0 follows"),
        ({"term": Term(0)}, "term 0 follows"),
        ({"previous_digest": "0" * 64}, "does not continue"),
    ],
)
def test_gap_in_the_log_is_found(killed: PublishedWorld, changes: dict[str, Any], words: str) -> None:
    """Each promise of the log is looked at."""
    decisions = decisions_of(killed)
    decisions[-1] = replace(decisions[-1], decision=replace(decisions[-1].decision, **changes))
    assert words in str(evidence.broken_chain(decisions))


def test_missing_decision_is_found(killed: PublishedWorld) -> None:
    """Also one in the middle."""
    decisions = decisions_of(killed)
    del decisions[1]
    assert evidence.broken_chain(decisions) is not None


def test_slots_on_dead_nodes_count_as_unserved(killed: PublishedWorld) -> None:
    """A whole table has all its replicas on living nodes."""
    table = table_of(killed)
    assert evidence.active_data_nodes(table) == ["n1", "n2"]
    assert evidence.unserved_slots(table) == []
    assert evidence.unowned_bundles(table) == []
    assert sum(evidence.replica_counts(table).values()) == 2 * len(table.slots)
    slot = table.slots[5]
    for broken in (
        replace(slot, leader=None),
        replace(slot, followers=()),
        replace(slot, followers=("n3",)),
    ):
        slots = (*table.slots[:5], broken, *table.slots[6:])
        assert evidence.unserved_slots(replace(table, slots=slots)) == [5]
    bundle_id, bundle = next(iter(table.bundles.items()))
    orphaned = replace(table, bundles={**table.bundles, bundle_id: replace(bundle, owner="n3")})
    assert evidence.unowned_bundles(orphaned) == [bundle_id]


def test_everybody_has_caught_up_only_when_everybody_says_so(killed: PublishedWorld) -> None:
    """One node with an old table is enough to wait."""
    table = table_of(killed)

    def beats(**epochs: int) -> dict[str, readers.LastHeartbeat]:
        return {
            node_id: readers.LastHeartbeat(Heartbeat(node_id, 1, 0, Epoch(epoch), NodeRole.DATA), 0, 0)
            for node_id, epoch in epochs.items()
        }

    assert evidence.all_caught_up(table, beats(n1=table.epoch, n2=table.epoch + 1))
    assert not evidence.all_caught_up(table, beats(n1=table.epoch, n2=table.epoch - 1))
    assert not evidence.all_caught_up(table, beats(n1=table.epoch))


def test_summary_prints_and_keeps_what_was_measured(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """People read the table, programs the report: both hold the same."""
    step = StepReport("a node is killed", (4, 5), 85, 85, 80, 43, 2_700, 2_750, Counts(1_000, 12, 3), 7.26)
    step.checks.append(Check("it is fenced", passed=True, seen="seq 9", after_s=2.7))
    query = QueryResult("select 1 as one", [{"one": 1}])
    summary.print_summary([step], [query], 100.0)
    printed = capsys.readouterr().out
    row = next(line for line in printed.splitlines() if line.startswith("a node is killed"))
    assert row.split("  ")[1:] != []
    assert row.split()[4:] == ["4-5", "85", "85", "80", "43", "2700", "2750", "1000", "12", "3", "7.3"]
    assert "SQL: select 1 as one" in printed
    summary.write_report(tmp_path / "report.json", [step], [query], "it failed")
    report = json.loads((tmp_path / "report.json").read_text())
    assert (report["passed"], report["failure"]) == (False, "it failed")
    assert report["steps"][0]["readable_ms"] == 2_750
    assert report["steps"][0]["checks"][0]["sentence"] == "it is fenced"
    assert report["queries"] == [{"statement": "select 1 as one", "rows": [{"one": 1}]}]
