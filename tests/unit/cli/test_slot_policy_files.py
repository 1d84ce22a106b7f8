"""Commands that look at a cluster which runs a slot policy of its user's own: they take its file."""

import json
from pathlib import Path

import pytest

from controlplane.bootstrap.slot_policies import load_slot_policies
from controlplane.cli.common.failures import ExitStatus
from controlplane.config import ClusterConfig
from controlplane.core.cluster.policy import ClusterPolicy
from tests.helpers.commands import RunCommand
from tests.helpers.published_world import PublishedWorld

LAZY = '''
from dataclasses import replace

from controlplane.core.slots.policies.minimal import MinimalPolicy
from controlplane.core.slots.policy_contract import SlotAnswer


class Lazy(MinimalPolicy):
    """Plans the first table, and then leaves it as it is, with everybody who is gone still in it."""

    name = "lazy"
    dead_may_hold = True

    def plan(self, request):
        if any(slot.leader for slot in request.slots):
            return SlotAnswer(request.as_published(), evidence="nothing is done any more")
        return replace(super().plan(request), certificate=None)


SLOT_POLICIES = (Lazy(),)
'''


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """The policy's file."""
    path = tmp_path / "lazy.py"
    path.write_text(LAZY, encoding="utf-8")
    return path


@pytest.fixture
def world(file: Path) -> PublishedWorld:
    """Three nodes, of which one has died and is still in the table."""
    policies = load_slot_policies([file])
    world = PublishedWorld(ClusterConfig("local"), ClusterPolicy(slot_count=16, slot_policy="lazy"), policies)
    world.admit("n1", "n2", "n3")
    world.run(4_000, ("n1", "n2"))
    assert world.held("n3")
    return world


def test_a_log_with_the_dead_in_its_tables_is_verified_with_the_policys_file(
    cluster_command: RunCommand, file: Path
) -> None:
    """Without it the log is refused, and the option that is missing is named."""
    ran = cluster_command("log", "verify")
    assert ran.status == ExitStatus.FAILED
    assert "slot policy 'lazy' is not known here" in ran.err
    assert "--slot-policy-file" in ran.err
    ran = cluster_command("log", "verify", "--slot-policy-file", str(file))
    assert (ran.status, ran.err) == (ExitStatus.DONE, "")
    assert ran.out.endswith(": every one holds\n")


def test_the_status_asks_the_policy_of_the_file(cluster_command: RunCommand, file: Path) -> None:
    """What it calls balanced and what it says is known only to itself."""
    ran = cluster_command("table", "status", "--format", "json")
    assert (json.loads(ran.out)["leaders_balanced"], json.loads(ran.out)["policy_says"]) == (None, "")
    assert "slot policy 'lazy' is not known here" in ran.err
    assert "--slot-policy-file" in ran.err
    ran = cluster_command("table", "status", "--format", "json", "--slot-policy-file", str(file))
    shown = json.loads(ran.out)
    assert (shown["leaders_balanced"], shown["policy_says"]) == (True, "nothing is done any more")
    assert (ran.status, ran.err) == (ExitStatus.DONE, "")
