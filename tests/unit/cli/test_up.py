"""``up`` looks after what it started."""

from pathlib import Path

import pytest

from controlplane.cli.common.failures import ExitStatus
from controlplane.embedded.kafka import EmbeddedKafka
from controlplane.embedded.valkey import EmbeddedValkey
from tests.helpers.commands import RunCommand


def test_a_part_that_ends_by_itself_ends_the_command(
    command: RunCommand, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A screen that says it is ready above a dead Kafka is worse than no cluster."""
    for kind in (EmbeddedKafka, EmbeddedValkey):
        monkeypatch.setattr(kind, "start", lambda _: None)
        monkeypatch.setattr(kind, "stop", lambda _: None)
    monkeypatch.setattr(EmbeddedKafka, "running", property(lambda _: False))
    ran = command("up", "--data-dir", str(tmp_path))
    assert ran.status == ExitStatus.FAILED
    assert "Kafka ended by itself: look at the end of" in ran.err
