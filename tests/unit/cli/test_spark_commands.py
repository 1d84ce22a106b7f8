"""``pipeline run`` and ``sql`` without Spark: what they are given, and what they say when something is missing."""

import json
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

import streaming.query
import streaming.session
from controlplane.cli import pipeline
from controlplane.cli.failures import ExitStatus
from streaming.config import PipelineConfig
from streaming.jobs import pipeline as job
from tests.helpers.commands import RunCommand


@pytest.fixture
def fake_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    """A session that answers each statement with its own words."""
    monkeypatch.setattr(pipeline, "spark_config", lambda *_: None)
    monkeypatch.setattr("controlplane.cli.sql.spark_config", lambda *_: None)
    monkeypatch.setattr(streaming.session, "build_session", lambda *_: SimpleNamespace(stop=lambda: None))
    monkeypatch.setattr(
        streaming.query,
        "run_sql",
        lambda _session, folder, statement: streaming.query.QueryResult(
            ("statement", "folder"), ((statement, str(folder)),)
        ),
    )


def create_tables(folder: Path) -> None:
    """As much of the tables as is looked at before Spark starts."""
    (folder / "decisions" / "_delta_log").mkdir(parents=True)


def test_sql_asks_the_tables_of_the_cluster(command: RunCommand, fake_spark: None, tmp_path: Path) -> None:
    """Without options the tables of the data folder are meant; several statements share a session."""
    create_tables(tmp_path / "delta")
    ran = command("sql", "--data-dir", str(tmp_path), "select 1", "select 2", "--format", "json")
    documents = json.loads(ran.out)
    assert [document["rows"] for document in documents] == [
        [{"statement": statement, "folder": str(tmp_path / "delta")}] for statement in ("select 1", "select 2")
    ]


def test_sql_finds_the_tables_that_the_demo_left(command: RunCommand, fake_spark: None, tmp_path: Path) -> None:
    """Also after the demo's Kafka is gone."""
    tables = tmp_path / "demo" / "delta"
    create_tables(tables)
    (document,) = json.loads(command("sql", "--data-dir", str(tmp_path), "select 1", "--format", "json").out)
    assert document["rows"][0]["folder"] == str(tables)


def test_sql_prints_a_table(command: RunCommand, fake_spark: None, tmp_path: Path) -> None:
    """People see columns."""
    create_tables(tmp_path)
    ran = command("sql", "--tables-dir", str(tmp_path), "select 1")
    assert ran.out.splitlines()[0].split() == ["statement", "folder"]
    assert ran.out.splitlines()[1].split("  ")[0] == "select 1"


def test_sql_without_tables_says_so_before_spark_starts(command: RunCommand, tmp_path: Path) -> None:
    """Half a minute of waiting for "there is nothing" is too long."""
    ran = command("sql", "--tables-dir", str(tmp_path), "select 1")
    assert ran.status == ExitStatus.FAILED
    assert f"there are no tables in {tmp_path}: has the pipeline" in ran.err
    assert "starting Spark" not in ran.err


def test_missing_spark_is_named(command: RunCommand, monkeypatch: pytest.MonkeyPatch) -> None:
    """The base install has the command and not Spark."""
    monkeypatch.setitem(sys.modules, "streaming.query", None)
    monkeypatch.setitem(sys.modules, "pyspark", None)
    with pytest.raises(ModuleNotFoundError):
        # A module of ours that is missing is a defect, and keeps its traceback.
        command("sql", "select 1")
    for name in [name for name in sys.modules if name.startswith("streaming")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "pyspark.errors", None)
    ran = command("sql", "select 1")
    assert ran.status == ExitStatus.FAILED
    assert "controlplane[pipeline]" in ran.err


def test_rules_reach_the_pipeline(cluster_command: RunCommand, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A lowered threshold that is dropped on the way would be taken for a rule that does not work."""
    given: list[PipelineConfig] = []
    monkeypatch.setattr(pipeline, "spark_config", lambda *_: None)
    monkeypatch.setattr(job, "run", lambda config, _stop, on_started: given.append(config))
    ran = cluster_command(
        "pipeline", "run", "--tables-dir", str(tmp_path), "--trigger-interval-ms", "700",
        "--rule", "split.max_message_rate_per_s=5", "--rule", "evaluation_interval_ms=3000",
    )  # fmt: skip
    assert ran.status == ExitStatus.DONE, ran.err
    (config,) = given
    assert config.warehouse_dir == tmp_path
    assert config.trigger_interval_ms == 700
    assert (config.rules.split.max_message_rate_per_s, config.rules.evaluation_interval_ms) == (5, 3_000)
    assert config.rules.split.max_topics == 1_000
