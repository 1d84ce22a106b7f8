"""``audit --tables-dir``: the log that the pipeline has written, without Kafka."""

from pathlib import Path

from controlplane.cli.common.failures import ExitStatus
from controlplane.config import DECISIONS
from controlplane.core.values.identifiers import TopicPartition
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
