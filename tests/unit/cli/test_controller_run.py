"""``controller run`` before it follows the log: what it says of the settings that it was given."""

import pytest

from controlplane.bootstrap import controllers
from controlplane.cli.common.failures import ExitStatus
from controlplane.config import SnapshotConfig
from controlplane.errors import ConfigurationError
from controlplane.testing import MemoryLeaseStore
from tests.helpers.commands import RunCommand


@pytest.fixture(autouse=True)
def _no_controller(monkeypatch: pytest.MonkeyPatch) -> None:
    """It ends where it would begin to follow."""
    monkeypatch.setattr(controllers, "run_controller", lambda *_: None)


def test_a_policy_that_does_not_count_is_told(cluster_command: RunCommand) -> None:
    """The log rules: whoever asks for something else at a start must not believe that he has it."""
    ran = cluster_command(
        "controller", "run", "--log-format", "json",
        "--policy", "slot_policy=sofa", "--policy", "slot_policy_options.protected_nodes=1",
        "--policy", "slot_count=16",
    )  # fmt: skip
    assert ran.status == ExitStatus.DONE
    assert ran.err.count("the log of cluster local has") == 1
    assert "has slot_policy=minimal slot_policy_options.protected_nodes=; --policy counts only when a cl" in ran.err
    assert "use 'controlplane policy set slot_policy=sofa slot_policy_options.protected_nodes=1'" in ran.err


def test_a_policy_that_rules_already_is_not_worth_a_word(cluster_command: RunCommand) -> None:
    """A service manager starts a controller with the same words again and again."""
    ran = cluster_command("controller", "run", "--policy", "slot_count=16", "--policy", "slot_policy=minimal")
    assert (ran.status, "counts only" in ran.err) == (ExitStatus.DONE, False)


@pytest.mark.parametrize(
    ("options", "status"), [((), ExitStatus.CALLED_WRONGLY), (("--follow-only",), ExitStatus.DONE)]
)
def test_a_right_that_only_leading_needs_is_missed_at_the_start(
    cluster_command: RunCommand, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...], status: ExitStatus
) -> None:
    """Later on a refusal is no reason to end; an observer never asks for the log's name."""

    def refuse(_: MemoryLeaseStore) -> str:
        raise ConfigurationError("user 'c' may not run GET")

    monkeypatch.setattr(MemoryLeaseStore, "read_log_id", refuse)
    ran = cluster_command("controller", "run", *options)
    assert (ran.status, "may not run GET" in ran.err) == (status, not options)


def test_when_snapshots_are_written_is_a_setting(cluster_command: RunCommand, monkeypatch: pytest.MonkeyPatch) -> None:
    """One name that is wrong is told with those that are right."""
    seen: list[SnapshotConfig] = []
    monkeypatch.setattr(controllers, "run_controller", lambda config, *_: seen.append(config.snapshots))
    ran = cluster_command("controller", "run", "--snapshots", "after_decisions=7", "--snapshots", "after_ms=60000")
    assert (ran.status, seen) == (ExitStatus.DONE, [SnapshotConfig(after_decisions=7, after_ms=60_000)])
    ran = cluster_command("controller", "run", "--snapshots", "often=yes")
    assert ran.status != ExitStatus.DONE
    assert "after_decisions, after_bytes, after_ms" in ran.err
