"""Readers and writers replace a Kafka client that has lost the address of every broker, on a real broker.

Such a client is imitated by one with an address where no broker is, in a reader or writer whose next client has the
right address. How a client loses the addresses by itself, `python -m tests.chaos` shows: it pauses Kafka until it is
fenced.
"""

from collections.abc import Set as AbstractSet

import pytest
from confluent_kafka import Consumer
from prometheus_client import REGISTRY

from controlplane.adapters import kafka_probe
from controlplane.adapters.kafka_log import KafkaEventWriter, KafkaLogReader
from controlplane.adapters.kafka_probe import Place, leader_answers
from controlplane.config import HEARTBEATS, ROUTING_TABLE, KafkaConfig
from controlplane.core.values.identifiers import TopicPartition
from controlplane.embedded.kafka import EmbeddedKafka
from controlplane.embedded.server import HOST, free_port
from controlplane.errors import LogUnavailableError
from controlplane.ports import Delivery, OutgoingRecord
from tests.helpers.log_worlds import KafkaLogWorld, read_all, send_all
from tests.helpers.polling import poll_until

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

TABLE = TopicPartition(ROUTING_TABLE, 0)
ROWS = [OutgoingRecord(ROUTING_TABLE, b"main/slot/%d" % number, b"%d" % number) for number in range(4)]
DEADLINE_S = 60.0


@pytest.fixture
def world(kafka_broker: EmbeddedKafka, cluster_name: str) -> KafkaLogWorld:
    """A cluster of this test's own on the shared broker."""
    return KafkaLogWorld(kafka_broker.bootstrap_servers, cluster_name)


@pytest.fixture
def nowhere() -> KafkaConfig:
    """An address where no broker is."""
    return KafkaConfig(f"{HOST}:{free_port()}")


def replaced(client: str) -> float:
    """How many clients of a role were replaced in this process."""
    return REGISTRY.get_sample_value("controlplane_kafka_clients_replaced_total", {"client": client}) or 0.0


def next_client_finds(world: KafkaLogWorld, reader: KafkaLogReader) -> None:
    """Give the right address to the clients that the reader makes from now on."""
    right = KafkaLogReader(world.cluster, world.kafka)
    reader._consumer._make = right._consumer._make  # noqa: SLF001 - only the first client is to have the wrong address
    right.close()


def read_rows(reader: KafkaLogReader, count: int) -> list[bytes | None]:
    """The table's next rows, and then its end."""
    values: list[bytes | None] = []
    ended = False

    def read() -> bool:
        nonlocal ended
        batch = reader.poll(100, 100)
        values.extend(record.value for record in batch.records)
        ended = TABLE in batch.ended
        return len(values) >= count and ended

    poll_until(read, DEADLINE_S)
    return values


def test_a_reader_whose_client_is_lost_reads_on(world: KafkaLogWorld, nowhere: KafkaConfig) -> None:
    """The records behind the assigned position arrive through another client."""
    send_all(world.open_events(), ROWS[:2])
    reader, before = KafkaLogReader(world.cluster, nowhere), replaced("reader")
    reader.assign({TABLE: 1})
    next_client_finds(world, reader)
    assert read_rows(reader, 1) == [b"1"]
    assert replaced("reader") == before + 1
    reader.close()
    world.close()


def test_a_reader_at_the_end_notices_that_its_client_is_lost(world: KafkaLogWorld, nowhere: KafkaConfig) -> None:
    """No record is expected there, so it asks for the end again from time to time."""
    send_all(world.open_events(), ROWS[:2])
    reader, before = KafkaLogReader(world.cluster, world.kafka), replaced("reader")
    reader.assign({TABLE: 0})
    assert read_rows(reader, 2) == [b"0", b"1"]
    owner = reader._consumer  # noqa: SLF001 - no public call makes a client lose its brokers
    owner.current.close()
    owner._current = Consumer({"bootstrap.servers": nowhere.bootstrap_servers, "group.id": "lost"})  # noqa: SLF001
    send_all(world.open_events(), ROWS[2:])
    assert read_rows(reader, 2) == [b"2", b"3"], "no record is read twice, and none is left out"
    assert replaced("reader") == before + 1
    reader.close()
    world.close()


def test_a_reader_whose_client_is_lost_is_answered(world: KafkaLogWorld, nowhere: KafkaConfig) -> None:
    """A client that did not answer in time is not asked again."""
    reader = KafkaLogReader(world.cluster, nowhere, request_timeout_ms=1_000)
    next_client_finds(world, reader)
    with pytest.raises(LogUnavailableError):
        reader.end_offsets(ROUTING_TABLE)
    poll_until(lambda: reader.end_offsets(ROUTING_TABLE) == {TABLE: 0})
    reader.close()
    world.close()


def test_a_writer_whose_client_is_lost_writes_on(world: KafkaLogWorld, nowhere: KafkaConfig) -> None:
    """Records sent meanwhile are given up and reported; later ones are in the topic, in order."""
    writer, before = KafkaEventWriter(world.cluster, nowhere, 1_000), replaced("events")
    right = KafkaEventWriter(world.cluster, world.kafka, 1_000)._producer  # noqa: SLF001 - of the next clients
    writer._producer._make = right._make  # noqa: SLF001 - as above
    writer._producer._make_probing = right._make_probing  # noqa: SLF001 - as above
    delivered: list[Delivery] = []
    sent = 0

    def beat() -> bool:
        nonlocal sent
        writer.send(OutgoingRecord(HEARTBEATS, b"n1", b"%d" % sent, 0), delivered.append)
        sent += 1
        writer.poll(200)
        return any(delivery.error is None for delivery in delivered)

    poll_until(beat, DEADLINE_S)
    assert writer.flush(5_000) == 0
    assert len(delivered) == sent, "every record is accounted for"
    assert replaced("events") == before + 1
    arrived = {record.offset: int(record.value or b"") for record in read_all(world, HEARTBEATS)}
    assert {delivery.offset for delivery in delivered if delivery.error is None} <= set(arrived)
    assert list(arrived.values()) == sorted(arrived.values())
    writer.close()
    world.close()


def test_a_client_is_kept_while_its_broker_is_away(
    world: KafkaLogWorld, nowhere: KafkaConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No other client is answered either, and this one finds the broker when it is back."""
    reader, before = KafkaLogReader(world.cluster, nowhere), replaced("reader")
    reader.assign({TABLE: 0})
    answers: list[bool] = []

    def ask(asking: Consumer, places: AbstractSet[Place], timeout_s: float) -> bool:
        answers.append(leader_answers(asking, places, timeout_s))
        return answers[-1]

    monkeypatch.setattr(kafka_probe, "leader_answers", ask)
    client = reader._consumer.current  # noqa: SLF001 - whether it is the same one
    poll_until(lambda: reader.poll(10, 100).records or len(answers) == 2, DEADLINE_S)
    assert answers == [False, False]
    assert reader._consumer.current is client  # noqa: SLF001 - as above
    assert replaced("reader") == before
    reader.close()
    world.close()
