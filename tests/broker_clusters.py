"""Clusters of several brokers for tests, the tier ``clusters``; loaded by ``tests/conftest.py``.

- ``kafka_cluster``: three brokers that a test may kill, pause, stop and start again one by one. Before the next test
  all run again, and every partition is in sync.
- ``proxied_kafka``: the same with a link of the proxy from each caller to each broker, and with ``broker_clocks`` a
  clock for each broker, where clocks can be shifted. Before the next test all links are open and all clocks right.

Both are started once for the session, so a test takes the names of its clusters from ``cluster_name``. A
start costs 13 s, and three brokers 600 MB. A test that asks for one gets the markers ``clusters`` and ``kafka``.
"""

from collections.abc import Iterator
from typing import NamedTuple

import pytest

from controlplane.embedded.kafka_cluster import EmbeddedKafkaCluster
from tests.helpers.partition_leaders import PartitionLeaders
from tests.helpers.proxied_kafka import ProxiedKafka
from tests.helpers.shifted_clock import ShiftedClock, shifted_clocks, why_no_shifted_clocks

CLUSTER_FIXTURES = frozenset({"kafka_cluster", "proxied_kafka", "broker_clocks"})
BROKERS = 3


class _Proxied(NamedTuple):
    kafka: ProxiedKafka
    clocks: dict[int, ShiftedClock]


def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark every test that starts several brokers, whichever fixture asks for them."""
    if CLUSTER_FIXTURES.intersection(getattr(item, "fixturenames", ())):
        item.add_marker(pytest.mark.clusters)
    if item.get_closest_marker("clusters"):
        item.add_marker(pytest.mark.kafka)


@pytest.fixture(scope="session")
def _kafka_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedKafkaCluster]:
    with EmbeddedKafkaCluster(tmp_path_factory.mktemp("kafka-cluster"), BROKERS) as cluster:
        yield cluster


@pytest.fixture
def kafka_cluster(_kafka_cluster: EmbeddedKafkaCluster) -> Iterator[EmbeddedKafkaCluster]:
    """Three brokers that a test may kill, pause and start again; afterwards all run, in sync, for the next one."""
    yield _kafka_cluster
    _restore(_kafka_cluster)


@pytest.fixture(scope="session")
def _proxied_kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[_Proxied]:
    folder = tmp_path_factory.mktemp("proxied-kafka")
    clocks = shifted_clocks(folder, BROKERS)
    environments = {broker: clock.environment for broker, clock in clocks.items()}
    with ProxiedKafka(folder / "kafka", BROKERS, environments=environments) as kafka:
        yield _Proxied(kafka, clocks)


@pytest.fixture
def proxied_kafka(_proxied_kafka: _Proxied) -> Iterator[ProxiedKafka]:
    """Three brokers behind links; afterwards every link is open and all run, in sync, for the next test."""
    yield _proxied_kafka.kafka
    _proxied_kafka.kafka.heal()
    _restore(_proxied_kafka.kafka.kafka)


@pytest.fixture
def broker_clocks(proxied_kafka: ProxiedKafka, _proxied_kafka: _Proxied) -> Iterator[dict[int, ShiftedClock]]:
    """The wall clocks of the brokers of ``proxied_kafka`` by id; afterwards they are right again.

    The brokers are started again then: one whose clock is set back by an hour may connect to no other one for that
    hour, because Kafka counts the pause before it connects again by the wall clock.
    """
    reason = why_no_shifted_clocks()
    if reason is not None:
        pytest.skip(reason)
    yield _proxied_kafka.clocks
    for broker, clock in _proxied_kafka.clocks.items():
        clock.shift(0)
        proxied_kafka.kafka.brokers[broker].kill()


def _restore(cluster: EmbeddedKafkaCluster) -> None:
    for broker in cluster.brokers.values():
        broker.resume()
    cluster.start()
    PartitionLeaders(cluster.bootstrap_servers).wait_until_in_sync()
