"""``pipeline run`` and ``sql`` without Spark: what they are given, and what they say when something is missing."""

import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

import streaming.query
import streaming.session
from controlplane.cli.common.failures import ExitStatus
from controlplane.cli.root import run
from controlplane.embedded.services import addresses_path
from controlplane.errors import PrerequisiteError
from streaming.config import PipelineConfig
from streaming.jobs import pipeline as job
from streaming.warehouse import claim
from tests.helpers.commands import RunCommand


@pytest.fixture
def fake_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    """A session that answers each statement with its own words."""
    monkeypatch.setattr("controlplane.cli.pipeline.commands.spark_config", lambda *_: None)
    monkeypatch.setattr("controlplane.cli.pipeline.sql.spark_config", lambda *_: None)
    monkeypatch.setattr(streaming.session, "build_session", lambda *_: SimpleNamespace(stop=lambda: None))
    monkeypatch.setattr(streaming.query, "newest_seq", lambda *_: 7)
    monkeypatch.setattr(
        streaming.query,
        "run_sql",
        lambda _session, folder, statement: streaming.query.QueryResult(
            ("statement", "folder"), ((statement, str(folder)),)
        ),
    )


def create_tables(folder: Path, cluster: str | None = "local") -> None:
    """As much of the tables as is looked at before Spark starts."""
    (folder / "decisions" / "_delta_log").mkdir(parents=True)
    if cluster is not None:
        claim(folder, cluster)


def leave_addresses(folder: Path, servers: str) -> None:
    """What ``controlplane up`` leaves while it runs."""
    folder.mkdir(parents=True, exist_ok=True)
    addresses = {"bootstrap_servers": servers, "redis_url": "redis://127.0.0.1:1/0"}
    addresses_path(folder).write_text(json.dumps(addresses), encoding="utf-8")


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


def test_sql_never_answers_for_another_cluster(command: RunCommand, fake_spark: None, tmp_path: Path) -> None:
    """Beside a cluster that runs here the demo's tables are not meant: they have to be named."""
    demo = tmp_path / "demo"
    create_tables(demo / "delta")
    leave_addresses(tmp_path, "127.0.0.1:1")
    ran = command("sql", "--data-dir", str(tmp_path), "select 1")
    assert ran.status == ExitStatus.FAILED
    assert f"no tables of cluster local in {tmp_path / 'delta'}: run 'controlplane pipeline run'" in ran.err
    assert f"the demo's are read with --tables-dir {demo / 'delta'}" in ran.err
    named = command("sql", "--data-dir", str(tmp_path), "--tables-dir", str(demo / "delta"), "select 1")
    assert (named.status, f"answered from {demo / 'delta'}: cluster local" in named.err) == (ExitStatus.DONE, True)


@pytest.mark.parametrize(("servers", "found"), [("127.0.0.1:1", True), ("kafka.example:9092", False)])
def test_sql_follows_the_address(
    command: RunCommand, fake_spark: None, tmp_path: Path, servers: str, *, found: bool
) -> None:
    """While the demo runs its tables are meant, unless another Kafka is named."""
    create_tables(tmp_path / "demo" / "delta")
    leave_addresses(tmp_path / "demo", "127.0.0.1:1")
    assert command("sql", "--data-dir", str(tmp_path), "select 1").status == ExitStatus.DONE
    ran = command("sql", "--data-dir", str(tmp_path), "--bootstrap-servers", servers, "select 1")
    assert (ran.status == ExitStatus.DONE) == found


def test_sql_knows_whose_tables_a_folder_holds(command: RunCommand, fake_spark: None, tmp_path: Path) -> None:
    """Two clusters with one data folder must not be taken for each other."""
    create_tables(tmp_path / "delta", "green")
    ran = command("sql", "--data-dir", str(tmp_path), "--cluster", "blue", "select 1")
    assert (ran.status, "no tables of cluster blue" in ran.err) == (ExitStatus.FAILED, True)
    assert "those in it are of cluster green" in ran.err
    ran = command("sql", "--data-dir", str(tmp_path), "--cluster", "green", "select 1")
    assert (ran.status, "cluster green, newest seq 7" in ran.err) == (ExitStatus.DONE, True)
    with pytest.raises(PrerequisiteError, match="those of cluster green"):
        claim(tmp_path / "delta", "blue")


def test_start_of_spark_is_quiet_unless_it_fails(
    fake_spark: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Eight lines of warnings say nothing to whoever asks a question; of a failure they are all that is known."""
    create_tables(tmp_path / "delta")

    def start(*_: object) -> SimpleNamespace:
        subprocess.run(["sh", "-c", "echo WARN loopback >&2"], check=True)
        return SimpleNamespace(stop=lambda: None)

    def fail(*_: object) -> None:
        start()
        raise PrerequisiteError("Spark does not start")

    monkeypatch.setattr(streaming.session, "build_session", start)
    assert run(("sql", "--data-dir", str(tmp_path), "select 1")) == ExitStatus.DONE
    assert "WARN" not in capfd.readouterr().err
    monkeypatch.setattr(streaming.session, "build_session", fail)
    assert run(("sql", "--data-dir", str(tmp_path), "select 1")) == ExitStatus.FAILED
    assert "WARN loopback" in capfd.readouterr().err


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
    assert f"no tables of cluster local in {tmp_path}: run 'controlplane pipeline run'" in ran.err
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
    monkeypatch.setattr("controlplane.cli.pipeline.commands.spark_config", lambda *_: None)
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
