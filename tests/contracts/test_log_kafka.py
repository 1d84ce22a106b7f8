"""The contracts of the log, on a real Kafka broker."""

from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controlplane.embedded.kafka import EmbeddedKafka
from tests.contracts.log_contract import EventWriterContract, ReaderContract, TopicInspectorContract
from tests.contracts.log_histories import History, check_history, histories
from tests.contracts.outage_contract import OutageContract
from tests.contracts.transaction_contract import TransactionContract
from tests.fixtures import NewClusterName
from tests.helpers.log_worlds import KafkaLogWorld, LogWorld


@pytest.fixture
def world(kafka_broker: EmbeddedKafka, cluster_name: str) -> Iterator[LogWorld]:
    """A cluster of this test's own on the shared broker."""
    world = KafkaLogWorld(kafka_broker.bootstrap_servers, cluster_name)
    yield world
    world.close()


@pytest.fixture(scope="module")
def lasting_world(kafka_broker: EmbeddedKafka, new_cluster_name: NewClusterName) -> Iterator[LogWorld]:
    """A cluster for many examples on the shared broker."""
    world = KafkaLogWorld(kafka_broker.bootstrap_servers, new_cluster_name("histories"))
    yield world
    world.close()


class TestKafkaTopicInspector(TopicInspectorContract):
    """Topics of Kafka."""


class TestKafkaReader(ReaderContract):
    """Reading from Kafka."""


class TestKafkaEventWriter(EventWriterContract):
    """Single records to Kafka."""


class TestKafkaTransactionalWriter(TransactionContract):
    """Atomic commits to Kafka."""


@settings(max_examples=6)
@given(history=histories, skipped=st.integers(min_value=0, max_value=40))
def test_histories_read_as_the_model_says(lasting_world: LogWorld, history: History, skipped: int) -> None:
    """Offsets, gaps and visibility are a function of what was written, the same as in memory."""
    check_history(lasting_world, history, skipped)


class TestKafkaOutage(OutageContract):
    """A broker that is frozen: its connections stay, and nobody answers."""

    pytestmark = pytest.mark.kafka

    @pytest.fixture
    def world(self, troubled_kafka: EmbeddedKafka, cluster_name: str) -> Iterator[LogWorld]:
        """A cluster of this test's own, with clients that give up soon."""
        broker = troubled_kafka
        world = KafkaLogWorld(
            broker.bootstrap_servers, cluster_name, broker.pause, broker.resume, request_timeout_ms=1_500
        )
        yield world
        broker.resume()
        world.close()
