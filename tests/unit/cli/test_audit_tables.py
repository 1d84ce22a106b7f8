"""``audit --tables-dir``: the log that the pipeline has written, without Kafka."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from controlplane.cli.common.failures import ExitStatus
from controlplane.config import DECISIONS, HEARTBEATS
from controlplane.core.values.identifiers import TopicPartition
from controlplane.inspection.auditing import Audited, Auditor
from streaming.contracts.records import DECISIONS_TABLE
from streaming.tables.created_tables import create_missing
from streaming.tables.table_writer import TableWriter
from tests.helpers.commands import RunCommand
from tests.helpers.log_tables import busy_world, write_tables
from tests.helpers.recorded_log import RecordedLog


def test_it_needs_no_kafka(command: RunCommand, tmp_path: Path) -> None:
    """It says what it has taken again; a folder without tables is named."""
    log = RecordedLog(busy_world())
    write_tables(tmp_path / "delta", log)
    ran = command("audit", "--tables-dir", str(tmp_path / "delta"))
    assert ran.status == ExitStatus.DONE, ran.err
    count = len(log.records[TopicPartition(DECISIONS, 0)])
    assert f"{count} of {count} decisions taken again" in ran.out
    assert "no difference" in ran.out
    ran = command("audit", "--tables-dir", str(tmp_path))
    assert ran.status == ExitStatus.FAILED
    assert "no tables of cluster" in " ".join(ran.err.split())


@pytest.mark.parametrize("first_seq", [1, 12])
def test_decisions_that_wait_for_their_inputs_are_counted(command: RunCommand, tmp_path: Path, first_seq: int) -> None:
    """If there are no others, nothing was audited."""
    log = RecordedLog(busy_world())
    for place, records in log.records.items():
        if place.topic == HEARTBEATS:
            del records[len(records) // 2 :]
    newest_seq = len(log.records[TopicPartition(DECISIONS, 0)])
    del log.records[TopicPartition(DECISIONS, 0)][: first_seq - 1]
    write_tables(tmp_path, log)
    ran = command("audit", "--tables-dir", str(tmp_path))
    found = re.search(r"of (\d+) decisions taken again", ran.out)
    audited_count, count = int(found[1]) if found else 0, newest_seq + 1 - first_seq
    assert (audited_count > 0, audited_count < count) == (first_seq == 1, True)
    assert ran.status == (ExitStatus.DONE if audited_count else ExitStatus.FAILED)
    there = f"the tables hold {count} decisions, from {first_seq} to {newest_seq}"
    why = "because their inputs are not all in the tables"
    assert ran.err == f"{there}; the last {count - audited_count} were not looked at, {why}\n"


@pytest.mark.parametrize("gone", [5, 1])
def test_a_break_is_told_as_one(command: RunCommand, tmp_path: Path, gone: int) -> None:
    """What is behind it has its inputs. The number of decisions is not the seq of the newest."""
    write_tables(tmp_path, RecordedLog(busy_world()))
    table = TableWriter(tmp_path, DECISIONS_TABLE, "somebody")
    rows = table.rows().to_pylist(maps_as_pydicts="strict")
    table.replace([row for row in rows if row["seq"] != gone], 1)
    ran = command("audit", "--tables-dir", str(tmp_path))
    assert ran.status == ExitStatus.FAILED
    first = 2 if gone == 1 else 1
    assert ran.err == f"the tables hold {len(rows) - 1} decisions, from {first} to {len(rows)}\n"
    assert f"the log is broken behind decision {gone - 1}: what follows was not looked at" in ran.out


def test_an_empty_table_is_told(command: RunCommand, tmp_path: Path) -> None:
    """It is no failure: nothing was decided."""
    create_missing(tmp_path, bucket_count=2)
    ran = command("audit", "--tables-dir", str(tmp_path))
    assert (ran.status, ran.out, ran.err) == (ExitStatus.DONE, "", "the tables hold no decision\n")


def test_decisions_that_are_written_meanwhile_are_not_told(
    command: RunCommand, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The pipeline may run: the audit is of the tables as they were when it began."""
    write_tables(tmp_path, RecordedLog(busy_world()))
    table = TableWriter(tmp_path, DECISIONS_TABLE, "somebody")
    rows = sorted(table.rows().to_pylist(maps_as_pydicts="strict"), key=lambda row: row["seq"])
    table.replace(rows[:-2], 1)

    class Meanwhile(Auditor):
        def run(self) -> Iterator[Audited]:
            table.append(rows[-2:], 2)
            return super().run()

    monkeypatch.setattr("controlplane.cli.log.audit.Auditor", Meanwhile)
    ran = command("audit", "--tables-dir", str(tmp_path))
    assert ran.status == ExitStatus.DONE, ran.err
    assert f"the tables hold {len(rows) - 2} decisions, from 1 to {len(rows) - 2}\n" in ran.err
