"""``pipeline run`` without Spark: what the job is given."""

from pathlib import Path

import pytest

from controlplane.cli.common.failures import ExitStatus
from streaming.config import PipelineConfig
from streaming.jobs import pipeline as job
from tests.helpers.commands import RunCommand


def test_rules_reach_the_pipeline(cluster_command: RunCommand, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A lowered threshold that is dropped on the way would be taken for a rule that does not work."""
    given: list[PipelineConfig] = []
    options: list[dict[str, object]] = []
    monkeypatch.setattr("controlplane.cli.pipeline.commands.spark_config", lambda *_: None)

    def run(config: PipelineConfig, *_: object, **named: object) -> None:
        given.append(config)
        options.append(named)

    monkeypatch.setattr(job, "run", run)
    ran = cluster_command(
        "pipeline", "run", "--tables-dir", str(tmp_path), "--trigger-interval-ms", "700",
        "--rule", "split.max_message_rate_per_s=5", "--rule", "evaluation_interval_ms=3000",
        "--keep", "load_reports=7", "--keep", "heartbeats=30", "--accept-gap",
    )  # fmt: skip
    assert ran.status == ExitStatus.DONE, ran.err
    (config,) = given
    assert config.warehouse_dir == tmp_path
    assert config.trigger_interval_ms == 700
    assert (config.rules.split.max_message_rate_per_s, config.rules.evaluation_interval_ms) == (5, 3_000)
    assert config.rules.split.max_topics == 1_000
    assert config.keep_days == {"load_reports": 7, "heartbeats": 30}
    assert options[0]["accepts_gap"] is True


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
