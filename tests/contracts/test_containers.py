"""The same contracts against the containers of ``infra/compose.yaml``: opt-in, where a Docker engine runs.

``tests/conftest.py`` skips this tier elsewhere and says why. The two ports of the compose file have to be free.
"""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from unittest.mock import patch

import pytest
from testcontainers.compose import DockerCompose

from tests.contracts.lease_contract import LeaseContract, LeaseOutageContract
from tests.contracts.log_contract import EventWriterContract, ReaderContract
from tests.contracts.outage_contract import OutageContract
from tests.contracts.transaction_contract import TransactionContract
from tests.helpers.lease_worlds import LeaseWorld, RedisLeaseWorld
from tests.helpers.log_worlds import KafkaLogWorld, LogWorld

pytestmark = [pytest.mark.containers, pytest.mark.timeout(600)]

INFRA = Path(__file__).parents[2] / "infra"
BOOTSTRAP_SERVERS = "localhost:9092"
REDIS_URL = "redis://localhost:6379/0"


@pytest.fixture(scope="module")
def containers() -> Iterator[DockerCompose]:
    """Both containers, under a project name of their own: nobody's running ones are stopped or emptied by this."""
    named = {"COMPOSE_PROJECT_NAME": "controlplane-contracts"}
    with patch.dict(os.environ, named), DockerCompose(INFRA, "compose.yaml", wait=True) as running:
        yield running


def pausing(containers: DockerCompose, service: str) -> tuple[Callable[[], None], Callable[[], None]]:
    """How to freeze a container and let it go on."""
    from docker import from_env  # noqa: PLC0415 - only where an engine runs

    container = from_env().containers.get(containers.get_container(service).ID)
    return container.pause, container.unpause


@pytest.fixture
def log_world(containers: DockerCompose, cluster_name: str) -> Iterator[LogWorld]:
    """A cluster of this test's own on the broker in the container."""
    pause, resume = pausing(containers, "kafka")
    world = KafkaLogWorld(BOOTSTRAP_SERVERS, cluster_name, pause, resume)
    yield world
    world.close()


@pytest.fixture
def hasty_log_world(containers: DockerCompose, cluster_name: str) -> Iterator[LogWorld]:
    """The same, with clients that give up soon."""
    pause, resume = pausing(containers, "kafka")
    world = KafkaLogWorld(BOOTSTRAP_SERVERS, cluster_name, pause, resume, request_timeout_ms=1_500)
    yield world
    world.close()


@pytest.fixture
def lease_world(containers: DockerCompose, cluster_name: str) -> Iterator[LeaseWorld]:
    """A cluster of this test's own on the lease store in the container."""
    pause, resume = pausing(containers, "valkey")
    world = RedisLeaseWorld(REDIS_URL, cluster_name, pause, resume, timeout_ms=500)
    yield world
    world.close()


class _OnLog:
    """Runs a suite on the broker."""

    @pytest.fixture
    def world(self, log_world: LogWorld) -> LogWorld:
        """The broker in the container."""
        return log_world


class TestContainerReader(_OnLog, ReaderContract):
    """Reading from Kafka in a container."""


class TestContainerEventWriter(_OnLog, EventWriterContract):
    """Single records to Kafka in a container."""


class TestContainerTransactionalWriter(_OnLog, TransactionContract):
    """Atomic commits to Kafka in a container."""


class TestContainerOutage(OutageContract):
    """A container that is paused."""

    @pytest.fixture
    def world(self, hasty_log_world: LogWorld) -> LogWorld:
        """The broker in the container."""
        return hasty_log_world


class TestContainerLease(LeaseContract):
    """The lease in Valkey in a container."""

    @pytest.fixture
    def world(self, lease_world: LeaseWorld) -> LeaseWorld:
        """The lease store in the container."""
        return lease_world


class TestContainerLeaseOutage(LeaseOutageContract):
    """A lease store in a container that is paused."""

    @pytest.fixture
    def world(self, lease_world: LeaseWorld) -> LeaseWorld:
        """The lease store in the container."""
        return lease_world
