"""``pipeline run`` without Spark: what the job is given."""

from pathlib import Path

import click
import pytest

from controlplane.cli.common.failures import ExitStatus
from controlplane.cli.pipeline.mending import rebuild_checkpoint
from streaming.config import PipelineConfig, SparkConfig
from streaming.contracts.records import TABLE_OF_TOPIC
from streaming.jobs import pipeline as job
from streaming.storage import ObjectPath
from tests.helpers.commands import RunCommand


class Given:
    """What the job was given, in place of its run."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.configs: list[PipelineConfig] = []
        self.options: list[dict[str, object]] = []
        monkeypatch.setattr("controlplane.cli.pipeline.commands.spark_config", self._spark_config)
        monkeypatch.setattr(job, "run", self._run)

    def _spark_config(self, cores: int, memory_mib: int, master: str, log_file: Path | None) -> SparkConfig:
        return SparkConfig((), None, cores, memory_mib, master=master, log_file=log_file)

    def _run(self, config: PipelineConfig, *_: object, **named: object) -> None:
        self.configs.append(config)
        self.options.append(named)


@pytest.fixture
def given(monkeypatch: pytest.MonkeyPatch) -> Given:
    """The job is not run."""
    return Given(monkeypatch)


def test_rules_reach_the_pipeline(cluster_command: RunCommand, given: Given, tmp_path: Path) -> None:
    """A lowered threshold that is dropped on the way would be taken for a rule that does not work."""
    ran = cluster_command(
        "pipeline", "run", "--tables-dir", str(tmp_path), "--trigger-interval-ms", "700",
        "--max-records-per-batch", "900",
        "--rule", "split.max_message_rate_per_s=5", "--rule", "evaluation_interval_ms=3000",
        "--keep", "load_reports=7", "--keep", "heartbeats=30", "--accept-gap",
    )  # fmt: skip
    assert ran.status == ExitStatus.DONE, ran.err
    (config,) = given.configs
    assert config.tables_dir == tmp_path
    assert (config.trigger_interval_ms, config.max_records_per_batch) == (700, 900)
    assert (config.rules.split.max_message_rate_per_s, config.rules.evaluation_interval_ms) == (5, 3_000)
    assert config.rules.split.max_topics == 1_000
    assert config.keep_days == {"load_reports": 7, "heartbeats": 30}
    assert given.options[0]["accepts_gap"] is True
    assert ran.err.splitlines()[-1] == "stopped; the next start goes on from here"


@pytest.mark.parametrize(
    ("words", "log_file"),
    [((), "data/spark-{cluster}.log"), (("--spark-log", "here.log"), "here.log"), (("--spark-log", "-"), None)],
    ids=["default", "a file", "standard error"],
)
def test_what_spark_prints_is_kept(
    cluster_command: RunCommand,
    given: Given,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    words: tuple[str, ...],
    log_file: str | None,
) -> None:
    """In the data folder, in another file, or not at all; the first line says where."""
    monkeypatch.chdir(tmp_path)
    ran = cluster_command("--data-dir", "data", "pipeline", "run", "--tables-dir", "delta", *words)
    assert ran.status == ExitStatus.DONE, ran.err
    (config,) = given.configs
    wanted = None if log_file is None else tmp_path / log_file.format(cluster=config.cluster.name)
    assert config.spark.log_file == wanted
    assert ("its log is" in ran.err) == (wanted is not None)


def test_places_of_tables_and_checkpoints(cluster_command: RunCommand, given: Given, tmp_path: Path) -> None:
    """Tables in an object store, and checkpoints on a disk."""
    ran = cluster_command(
        "pipeline", "run", "--tables-dir", "s3a://tables/eu/", "--checkpoints-dir", str(tmp_path / "checkpoints")
    )
    assert ran.status == ExitStatus.DONE, ran.err
    (config,) = given.configs
    assert config.tables_dir == ObjectPath("tables", "eu")
    assert config.checkpoint_dir("intents") == tmp_path / "checkpoints" / "intents"
    refused = cluster_command("pipeline", "run", "--tables-dir", "hdfs://tables/eu")
    assert refused.status == ExitStatus.CALLED_WRONGLY
    assert "is no place for tables" in refused.err


@pytest.mark.parametrize(
    ("kept", "told"),
    [
        ("load_reports", "no TABLE=DAYS"),
        ("load_reports=-1", "no TABLE=DAYS"),
        ("load_reports=0", "0 days of load_reports cannot be kept"),
        (
            "bundle_load=3",
            "3 days of bundle_load cannot be kept: at least 1 day of one of bundle_changes, ",
        ),
    ],
)
def test_days_that_cannot_be_kept_are_refused(
    cluster_command: RunCommand, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, kept: str, told: str
) -> None:
    """A table of present rows has no days, and none of history is without today."""
    monkeypatch.setattr("controlplane.cli.pipeline.commands.spark_config", lambda *_: None)
    ran = cluster_command("pipeline", "run", "--tables-dir", str(tmp_path), "--keep", kept)
    assert ran.status == ExitStatus.CALLED_WRONGLY, ran.err
    assert told in " ".join(ran.err.split())


@pytest.mark.parametrize(
    "master", ["foo", "spark://host", "http://host:7077", "local[", "mesos://host:5050", "SPARK://a:1"]
)
def test_a_master_that_spark_does_not_know_is_refused(
    cluster_command: RunCommand, given: Given, tmp_path: Path, master: str
) -> None:
    """At the option, with the forms; Spark's JVM would just end."""
    ran = cluster_command("pipeline", "run", "--tables-dir", str(tmp_path), "--master", master)
    assert ran.status == ExitStatus.CALLED_WRONGLY, ran.err
    assert f"{master!r} is no master of Spark: give local[CORES], spark://HOST:PORT, yarn or" in " ".join(
        ran.err.split()
    )
    assert not given.configs


@pytest.mark.parametrize(
    "master",
    [
        "",
        "local",
        "local[*]",
        "local[2,3]",
        "spark://a:7077,b:7077",
        "spark://[::1]:7077",
        "yarn",
        "k8s://https://a:6443",
    ],
)
def test_masters_that_spark_knows_are_taken(
    cluster_command: RunCommand, given: Given, tmp_path: Path, master: str
) -> None:
    """All forms of its documentation."""
    ran = cluster_command("pipeline", "run", "--tables-dir", str(tmp_path), "--master", master)
    assert ran.status == ExitStatus.DONE, ran.err
    assert given.configs[0].spark.master == master


@pytest.mark.parametrize("topic", ["load-reports", "load_reports"])
def test_a_checkpoint_is_named_as_its_topic_or_as_its_folder(
    cluster_command: RunCommand, tmp_path: Path, topic: str
) -> None:
    """The sentence about a damaged one has the folder's name. Here are no tables at all."""
    ran = cluster_command("pipeline", "rebuild-checkpoint", topic, "--tables-dir", str(tmp_path))
    assert ran.status == ExitStatus.FAILED, ran.err
    assert "no tables of cluster" in ran.err


def test_every_stream_of_a_topic_can_have_its_checkpoint_rebuilt() -> None:
    """The command knows their names without Spark."""
    (argument,) = (each for each in rebuild_checkpoint.params if each.name == "topic")
    assert isinstance(argument.type, click.Choice)
    assert sorted(argument.type.choices) == sorted(TABLE_OF_TOPIC)
