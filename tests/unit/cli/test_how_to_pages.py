"""How-to pages whose commands need no real parts: each command succeeds, in the order of its page."""

from pathlib import Path

import pytest

from controlplane.cli.common.failures import ExitStatus
from controlplane.config import ClusterConfig
from controlplane.core.values.identifiers import Term
from controlplane.testing import MemoryLeaseServer, MemoryLeaseStore
from tests.helpers.answering import answering_leader
from tests.helpers.commands import RunCommand
from tests.helpers.log_tables import busy_world, write_tables
from tests.helpers.published_world import PublishedWorld
from tests.helpers.readme import ROOT, commands, console_commands
from tests.helpers.recorded_log import RecordedLog

HOW_TO = ROOT / "docs" / "how-to"
PAGES = (
    "audit-the-log.md",
    "choose-a-profile.md",
    "come-from-hivemq.md",
    "come-from-pulsar.md",
    "keep-replicas-apart.md",
    "limit-tenants-to-clusters.md",
    "read-the-table-status.md",
    "survive-silence-and-failures.md",
    "upgrade-controllers.md",
)
LEASE_MS = 600_000


@pytest.fixture
def led(world: PublishedWorld, lease_server: MemoryLeaseServer) -> PublishedWorld:
    """Four nodes, and a controller that holds the lease."""
    world.admit("n1", "n2", "n3", "n4")
    MemoryLeaseStore(lease_server).acquire("c1", Term(0), LEASE_MS)
    return world


@pytest.fixture
def beside_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A working directory in which the pipeline has written its tables."""
    write_tables(tmp_path / "delta", RecordedLog(busy_world()))
    monkeypatch.chdir(tmp_path)


@pytest.mark.usefixtures("beside_tables")
@pytest.mark.parametrize("page", PAGES)
def test_page_works_as_it_stands(cluster_command: RunCommand, led: PublishedWorld, page: str) -> None:
    """What people copy has to work."""
    with answering_leader(led):
        for words in console_commands("controlplane", HOW_TO / page):
            ran = cluster_command(*words)
            assert ran.status == ExitStatus.DONE, (words, ran)


@pytest.mark.parametrize("page", PAGES)
def test_what_a_page_names_is_there(command: RunCommand, page: str) -> None:
    """Commands in sentences as well."""
    for words in commands("controlplane", HOW_TO / page):
        assert command(*words, "--help").status == ExitStatus.DONE, words


def test_hard_zones_cost_what_the_page_says(cluster_command: RunCommand, led: PublishedWorld) -> None:
    """With a rack gone there is one replica of each slot, and the plan says that it falls short."""
    words = console_commands("controlplane", HOW_TO / "keep-replicas-apart.md")
    (look,) = (index for index, each in enumerate(words) if each[:2] == ["table", "plan"])
    with answering_leader(led):
        outputs = [cluster_command(*each).out for each in words[: look + 1]]
    assert "falls short" in outputs[-1]


def test_status_page_names_every_property(cluster_command: RunCommand, led: PublishedWorld) -> None:
    """A property that nobody explains is read wrongly."""
    explained = (HOW_TO / "read-the-table-status.md").read_text(encoding="utf-8")
    printed = cluster_command("table", "status").out.split("\nnode ")[0].splitlines()[1:]
    names = [line.split("  ")[0].strip() for line in printed]
    assert "epoch" in names
    assert [name for name in names if f"`{name}`" not in explained] == []


def test_who_begins_a_new_cluster_is_told_every_key_of_the_old_one() -> None:
    """One that stays, the log id before all, stops the new cluster's controllers."""
    page = (HOW_TO / "survive-silence-and-failures.md").read_text(encoding="utf-8")
    cluster = ClusterConfig("cluster")
    properties = [name for name, value in vars(ClusterConfig).items() if isinstance(value, property)]
    keys = {getattr(cluster, name) for name in properties if name.endswith("_key")}
    keys |= {cluster.lock_key("DATA_CENTER", "LOCK_NAME")}
    assert len(keys) == 7
    assert [key for key in sorted(keys) if f"`{key.replace('{cluster}', '{CLUSTER}')}`" not in page] == []
