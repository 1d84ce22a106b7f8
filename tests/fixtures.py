"""What the tests share that need a real broker or a real lease store; loaded by ``tests/conftest.py``.

Shared by the session, which is one of the three processes that run the tests with servers side by side:

- ``kafka_broker``, ``valkey_server`` and ``secured_kafka``. A test must not stop, pause or kill them, and uses clusters
  only whose names ``cluster_name`` or ``new_cluster_name`` gave: a cluster's name begins every topic, transactional id
  and key, so that nothing that one test leaves behind is met by another. The two unsecured ones look at their end for
  topics and keys of any other cluster, and fail where they find one.
- ``troubled_kafka``, a broker that a test may pause, kill and start again. It runs again before the next test.
- ``readme_cluster``, the cluster that the README tells people to start, and ``wheel``. A test must leave the cluster
  without nodes, and must not depend on its epochs.

What harms more takes a server of its own from ``own_kafka_broker`` or ``own_valkey_server``: a broker costs 4 s and as
many seconds of CPU time. A test that asks for a broker gets the marker ``kafka``.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Protocol

import pytest
import redis
from confluent_kafka.admin import AdminClient

from controlplane.embedded.kafka import EmbeddedKafka
from controlplane.embedded.valkey import EmbeddedValkey
from tests.helpers.certificates import Authority
from tests.helpers.compaction import CLEANING
from tests.helpers.readme import ReadmeCluster
from tests.helpers.secured_kafka import SecuredKafka
from tests.helpers.wheel import build_wheel

BROKER_FIXTURES = frozenset({"kafka_broker", "own_kafka_broker", "secured_kafka", "troubled_kafka", "readme_cluster"})

OTHERS = re.compile(r"^__|^[a-z]+\d*-[0-9a-f]{16}\.")
"""Topics of Kafka's own, and of benchmarks, which name their clusters by the nanosecond."""

NewClusterName = Callable[[str], str]


class BrokerFactory(Protocol):
    """Starts a broker for one test alone."""

    def __call__(self, **settings: str) -> EmbeddedKafka:
        """A started broker; ``log_cleaner_backoff_ms="100"`` sets ``log.cleaner.backoff.ms``."""


def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark every test that starts a broker, whichever fixture asks for it, so that ``-m 'not kafka'`` leaves it out."""
    if BROKER_FIXTURES.intersection(getattr(item, "fixturenames", ())):
        item.add_marker(pytest.mark.kafka)


@pytest.fixture(scope="session")
def cluster_names() -> list[str]:
    """The names of clusters that this session has given to tests."""
    return []


@pytest.fixture(scope="session")
def new_cluster_name(cluster_names: list[str]) -> NewClusterName:
    """Makes cluster names that no other test of this session has, of a word."""

    def make(word: str) -> str:
        cluster_names.append(f"{word}-{len(cluster_names) + 1}")
        return cluster_names[-1]

    return make


@pytest.fixture
def cluster_name(request: pytest.FixtureRequest, new_cluster_name: NewClusterName) -> str:
    """A cluster name that no other test of this session has, with the test's own name in it."""
    words = re.sub(r"[^a-z0-9]+", "-", request.node.name.lower()).strip("-")
    return new_cluster_name(words[:40])


@pytest.fixture(scope="session")
def kafka_broker(tmp_path_factory: pytest.TempPathFactory, cluster_names: list[str]) -> Iterator[EmbeddedKafka]:
    """One running broker for the whole session, which compacts as often as it can; never stop or pause it."""
    with EmbeddedKafka(tmp_path_factory.mktemp("kafka"), settings=dotted(CLEANING)) as broker:
        yield broker
        admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
        topics = [name for name in admin.list_topics(timeout=20).topics if not OTHERS.search(name)]
        shared = sorted(name for name in topics if name.rpartition(".")[0] not in cluster_names)
        assert not shared, f"take the cluster's name from a fixture: other tests may use these topics as well: {shared}"


@pytest.fixture(scope="session")
def valkey_server(tmp_path_factory: pytest.TempPathFactory, cluster_names: list[str]) -> Iterator[EmbeddedValkey]:
    """One running lease store for the whole session; never stop or pause it."""
    with EmbeddedValkey(tmp_path_factory.mktemp("valkey")) as server:
        yield server
        with redis.Redis.from_url(server.redis_url, decode_responses=True) as connection:
            keys = connection.keys()
        shared = sorted(key for key in keys if not any(name in key for name in cluster_names))
        assert not shared, f"take the cluster's name from a fixture: other tests may use these keys as well: {shared}"


@pytest.fixture(scope="session")
def _troubled_kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedKafka]:
    with EmbeddedKafka(tmp_path_factory.mktemp("troubled-kafka")) as broker:
        yield broker


@pytest.fixture
def troubled_kafka(_troubled_kafka: EmbeddedKafka) -> Iterator[EmbeddedKafka]:
    """A broker that a test may pause, kill and start again; afterwards it runs for the next one."""
    yield _troubled_kafka
    _troubled_kafka.resume()
    if not _troubled_kafka.running:
        _troubled_kafka.start()


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel as ``make dist`` builds it."""
    return build_wheel(tmp_path_factory.mktemp("dist"))


@pytest.fixture(scope="session")
def readme_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ReadmeCluster]:
    """``controlplane up``, the topics and a controller, as the README says, from this checkout."""
    with ReadmeCluster(tmp_path_factory.mktemp("readme")) as started:
        yield started


@pytest.fixture(scope="session")
def secured_kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredKafka]:
    """One broker that asks for logins and rights, for the whole session; never stop or pause it."""
    folder = tmp_path_factory.mktemp("secured-kafka")
    with SecuredKafka(folder / "kafka", Authority(folder / "certificates")) as broker:
        yield broker


@pytest.fixture
def own_kafka_broker(tmp_path: Path) -> Iterator[BrokerFactory]:
    """Starts brokers (4 s each) that this test may stop, kill and pause; they end with the test."""
    with ExitStack() as stack:

        def start(**settings: str) -> EmbeddedKafka:
            number = len(list(tmp_path.glob("kafka-*")))
            return stack.enter_context(EmbeddedKafka(tmp_path / f"kafka-{number}", settings=dotted(settings)))

        yield start


@pytest.fixture
def own_valkey_server(tmp_path: Path) -> Iterator[Callable[[], EmbeddedValkey]]:
    """Starts lease stores that this test may stop, kill and pause; they end with the test."""
    with ExitStack() as stack:

        def start() -> EmbeddedValkey:
            number = len(list(tmp_path.glob("valkey-*")))
            return stack.enter_context(EmbeddedValkey(tmp_path / f"valkey-{number}"))

        yield start


def dotted(settings: Mapping[str, str]) -> dict[str, str]:
    """A broker's settings by their names in its file."""
    return {name.replace("_", "."): value for name, value in settings.items()}
