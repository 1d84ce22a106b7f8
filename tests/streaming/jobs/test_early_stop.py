"""The pipeline is stopped before it runs: while it waits for Kafka."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers.polling import poll_until
from tests.helpers.readme import ROOT, clean_environment

pytestmark = pytest.mark.spark


def test_sigterm_ends_the_wait_for_kafka(tmp_path: Path) -> None:
    """At once and without a trace, as nothing was begun."""
    kafka = ("--bootstrap-servers", "127.0.0.1:1", "--connect-timeout", "600")
    printed = tmp_path / "printed"
    with printed.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "controlplane.cli", *kafka, "pipeline", "run", "--tables-dir", "delta"],
            cwd=tmp_path,
            env=clean_environment() | {"PYTHONPATH": str(ROOT)},
            stderr=output,
        )
    try:
        poll_until(lambda: "does not answer yet" in printed.read_text() or process.poll() is not None, 60)
        process.send_signal(signal.SIGTERM)
        assert process.wait(10) == -signal.SIGTERM
    finally:
        process.kill()
        process.wait()
    assert "Traceback" not in printed.read_text()
    assert not (tmp_path / "delta").exists()
