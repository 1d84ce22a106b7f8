"""The demo's folder, its processes' environment, and what its clients counted."""

import json
import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from controlplane.cli.common.failures import ExitStatus
from controlplane.cli.common.invocation import Invocation
from controlplane.cli.demo.checks import StepFailedError
from controlplane.cli.demo.stage import Stage
from controlplane.cli.demo.traffic import Counts, read_counts
from controlplane.config import ClusterConfig
from controlplane.errors import PrerequisiteError
from tests.helpers.commands import RunCommand


def stage_in(folder: Path) -> Stage:
    """A stage whose data folder is given."""
    return Stage(Invocation(ClusterConfig("c"), None, None, {}, {}, folder, 1))


def test_stage_begins_with_an_empty_folder(tmp_path: Path) -> None:
    """Rows and epochs of an earlier demo would be taken for this one's; other data is left alone."""
    (tmp_path / "demo" / "delta").mkdir(parents=True)
    (tmp_path / "own.txt").touch()
    stage = stage_in(tmp_path)
    assert [path.name for path in stage.home.iterdir()] == ["logs"]
    assert (tmp_path / "own.txt").exists()


def test_stage_is_refused_while_a_kept_demo_runs(tmp_path: Path) -> None:
    """Its data would be deleted under it."""
    (tmp_path / "demo").mkdir()
    held = {"holder": os.getpid(), "created_s": psutil.Process().create_time(), "processes": {}}
    (tmp_path / "demo" / "held.json").write_text(json.dumps(held))
    with pytest.raises(PrerequisiteError, match="demo --stop"):
        stage_in(tmp_path)
    assert (tmp_path / "demo" / "held.json").exists()


def test_installation_without_the_service_is_named(
    command: RunCommand, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A package that somebody built without the example says what is missing, and leaves an earlier demo's data."""
    monkeypatch.setattr("controlplane.cli.demo.stage.NODE_EXAMPLE", "examples/left-out")
    (tmp_path / "demo").mkdir()
    ran = command("--data-dir", str(tmp_path), "demo")
    assert ran.status == ExitStatus.FAILED
    assert "examples/left-out is missing" in ran.err
    assert [*(tmp_path / "demo").iterdir()] == []


@pytest.mark.parametrize("module", ["examples.kv_and_pubsub", "examples.kv.client", "examples.pubsub.client"])
def test_modules_of_the_service_are_found(tmp_path: Path, module: str) -> None:
    """By the processes of the demo, which run in the demo's folder with an environment of their own."""
    stage = stage_in(tmp_path)
    command = [sys.executable, "-m", module, "--help"]
    done = subprocess.run(command, cwd=stage.home, env=stage.environment(), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "service" in done.stdout


def test_nothing_to_stop_is_no_error(command: RunCommand, tmp_path: Path) -> None:
    """``--stop`` can be called to be sure."""
    ran = command("--data-dir", str(tmp_path), "demo", "--stop")
    assert ran.status == ExitStatus.DONE
    assert "nothing runs" in ran.out


def test_processes_are_not_led_to_another_cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Settings of the user's own cluster stay out; what speaks of the machine stays in."""
    monkeypatch.setenv("CONTROLPLANE_BOOTSTRAP_SERVERS", "production:9092")
    monkeypatch.setenv("CONTROLPLANE_CACHE_DIR", "cache")
    monkeypatch.chdir(tmp_path)
    environment = stage_in(tmp_path).environment()
    assert "CONTROLPLANE_BOOTSTRAP_SERVERS" not in environment
    assert environment["CONTROLPLANE_CACHE_DIR"] == str(tmp_path / "cache")
    assert environment["PATH"] == os.environ["PATH"]


def test_process_that_falls_over_fails_the_demo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its name and its last words are in the message; one that was killed on purpose is none of these."""
    stage = stage_in(tmp_path)
    monkeypatch.setattr(stage, "_command", lambda: [sys.executable, "-c", "raise SystemExit('no memory')"])
    stage.start_services()
    stage.processes["parts"].wait()
    with pytest.raises(StepFailedError, match=r"(?s)parts ended by itself.*no memory"):
        stage.watch()
    stage.stop()
    stage.watch()


def test_newest_whole_line_of_counts_is_read(tmp_path: Path) -> None:
    """Log lines stand between the counts, and the last line may be half written."""
    log = tmp_path / "traffic.log"
    assert read_counts(log) == Counts()
    log.write_text(
        '{"answered": 1, "refused": 0, "failed": 0}\n'
        '{"answered": 7, "refused": 2, "failed": 1, "more": []}\n'
        "2026-01-01 [info] something\n"
        '{"answered": 9, "ref'
    )
    assert read_counts(log) == Counts(7, 2, 1)
