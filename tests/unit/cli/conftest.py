"""Running the command in this process against an in-memory cluster."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from controlplane.adapters.system_clock import SystemClock
from controlplane.bootstrap import connections
from controlplane.cli.root import run
from controlplane.config import ClusterConfig, SofaLeaseConfig
from controlplane.testing import (
    MemoryEventWriter,
    MemoryLeaseServer,
    MemoryLeaseStore,
    MemoryLockServer,
    MemoryLockStore,
)
from tests.helpers.commands import Ran, RunCommand
from tests.helpers.published_world import PublishedWorld

# A plain module, so pytest has to be told to explain its assertions.
pytest.register_assert_rewrite("tests.unit.cli.intent_checks")

CLUSTER = ClusterConfig("local")


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunCommand:
    """Runs a command line in an empty folder and gives its status and what it printed.

    The default data folder lies in the present one: in the checkout it could be that of a cluster which runs there.
    """
    monkeypatch.chdir(tmp_path)

    def run_command(*arguments: str) -> Ran:
        capsys.readouterr()
        status = run(arguments)
        printed = capsys.readouterr()
        return Ran(int(status), printed.out, printed.err)

    return run_command


@pytest.fixture
def world() -> PublishedWorld:
    """A cluster that has just been created: one term, no nodes."""
    return PublishedWorld(CLUSTER)


@pytest.fixture
def played(world: PublishedWorld) -> PublishedWorld:
    """Three nodes and a namespace; one node was fenced, another left."""
    world.admit("n1", "n2", "n3", "n4")
    world.intent("i1", "create_namespace", namespace="kv")
    world.run(300, ("n1", "n2", "n3", "n4"))
    world.run(4_000, ("n1", "n2", "n4"))
    world.left("n4")
    world.run(400, ("n1", "n2"))
    return world


@pytest.fixture
def lease_server(world: PublishedWorld) -> MemoryLeaseServer:
    """The lease store of that cluster."""
    return MemoryLeaseServer(world.clock)


@pytest.fixture
def lock_server(world: PublishedWorld) -> MemoryLockServer:
    """SOFARegistry's locks of that cluster."""
    return MemoryLockServer(world.clock)


@pytest.fixture
def cluster_command(
    command: RunCommand,
    world: PublishedWorld,
    lease_server: MemoryLeaseServer,
    lock_server: MemoryLockServer,
    monkeypatch: pytest.MonkeyPatch,
) -> RunCommand:
    """Runs a command line against the in-memory cluster."""

    @contextmanager
    def lease_store(_cluster: ClusterConfig, _redis_url: str) -> Iterator[MemoryLeaseStore]:
        yield MemoryLeaseStore(lease_server)

    @contextmanager
    def lock_store(_cluster: ClusterConfig, _redis_url: str, lock: SofaLeaseConfig) -> Iterator[MemoryLockStore]:
        yield MemoryLockStore(lock_server, lock.data_center, lock.lock_name)

    monkeypatch.setattr(connections, "open_reader", lambda _cluster, _kafka: world.reader())
    # The limits of waits pass by the system's clock; what time it is, the world says.
    monkeypatch.setattr(SystemClock, "wall_ms", lambda _: world.clock.wall_ms())
    monkeypatch.setattr(connections, "lease_store", lease_store)
    monkeypatch.setattr(connections, "lock_store", lock_store)
    monkeypatch.setattr(
        connections, "open_intent_writer", lambda _cluster, _kafka: MemoryEventWriter(CLUSTER, world.broker)
    )

    def run_command(*arguments: str) -> Ran:
        return command("--bootstrap-servers", "memory:1", "--redis-url", "redis://memory", *arguments)

    return run_command
