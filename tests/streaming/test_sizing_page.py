"""The figures of docs/how-to/size-the-pipeline.md follow from those that were measured, and its Python runs."""

import re
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from streaming.config import PipelineConfig
from streaming.contracts.records import DECISIONS_TABLE
from tests.helpers.log_tables import busy_world, write_tables
from tests.helpers.readme import ROOT, blocks
from tests.helpers.recorded_log import RecordedLog

PAGE = ROOT / "docs" / "how-to" / "size-the-pipeline.md"
TEXT = PAGE.read_text(encoding="utf-8")
SAMPLE_S = (1.5 + 4.4 + 8.1) / 600_000
FIXED_CORES = 1.46 - 20_000 * SAMPLE_S


def test_the_table_of_cores_follows_from_the_formula() -> None:
    """A measured figure that is corrected corrects the rest."""
    assert f"{SAMPLE_S * 1e6:.1f} µs a sample" in TEXT
    assert f"{FIXED_CORES:.2f} cores" in TEXT
    rows = re.findall(r"^\| ([\d,]+) \| ([\d,]+) \| ([\d.]+) \| (\w+) \|$", TEXT, re.MULTILINE)
    assert len(rows) == 5
    for reports, samples, cores, _ in rows:
        samples_per_s = int(samples.replace(",", ""))
        assert samples_per_s == 20 * int(reports.replace(",", ""))
        assert float(cores) == pytest.approx(FIXED_CORES + SAMPLE_S * samples_per_s, abs=0.06)


def test_the_disk_follows_from_bytes_and_rates() -> None:
    """A day of reports, and two hours of replaced files."""
    assert f"{980 * 1_000 * 86_400 / 1e9:.0f} GB a day" in TEXT
    batch_bytes = 137 * 100_000
    assert f"{batch_bytes / 1e6:.1f} MB: {batch_bytes * 7_200 / 5 / 1e9:.0f} GB in two hours" in TEXT
    assert f"{batch_bytes / 5 / 1e6:.1f} MB/s" in TEXT
    assert f"{2 + 16 + 1} files every 5 s" in TEXT
    assert f"{19 * 7_200 / 5 / 1_000:.0f},000 in two hours" in TEXT
    assert f"{100 * 100_000 * 144 / 1e9:.1f} GB a day" in TEXT


def test_defaults_are_the_pipelines() -> None:
    """The page's words on the batch's bound, the interval and the number of buckets."""
    defaults = {each.name: each.default for each in fields(PipelineConfig)}
    assert f"{defaults['max_records_per_batch']:,} reports" in TEXT
    assert re.search(rf"\b{defaults['bucket_count']},\s+the\s+default", TEXT)


def test_the_tables_are_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every table, with its files' bytes; each is printed, and folders that hold no rows of the log are passed over."""
    world = busy_world()
    write_tables(tmp_path / "delta", RecordedLog(world))
    (tmp_path / "delta" / "_claim" / "_delta_log").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    exec(compile(blocks(PAGE)["sizes"], PAGE.name, "exec"), names)  # noqa: S102 - the page's own code
    (row,) = [each for each in names["sizes"].iter_rows(named=True) if each["table"] == DECISIONS_TABLE.name]
    on_disk = [path.stat().st_size for path in (tmp_path / "delta" / DECISIONS_TABLE.name).rglob("day=*/*.parquet")]
    assert (row["files"], row["bytes"], row["rows"]) == (len(on_disk), sum(on_disk), len(world.decisions))
    printed = capsys.readouterr().out
    assert [name for name in names["sizes"]["table"] if f" {name} " not in printed] == []
