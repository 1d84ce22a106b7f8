"""Faults of a real broker: it is paused, killed and started again. Each outcome told has to be what the log holds."""

import threading
import time
from collections.abc import Iterator

import pytest

from controlplane.adapters.kafka_log import KafkaEventWriter, KafkaLogReader, KafkaTransactionalWriter
from controlplane.config import DECISIONS, ROUTING_TABLE
from controlplane.core.values.identifiers import TopicPartition
from controlplane.embedded.kafka import EmbeddedKafka
from controlplane.errors import LogUnavailableError
from controlplane.ports import CommitOutcome, Delivery, OutgoingRecord
from tests.contracts.log_contract import decision, values
from tests.helpers.log_worlds import KafkaLogWorld, read_all, read_some, read_to_end, send_all
from tests.helpers.polling import poll_until

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

DECISIONS_0 = TopicPartition(DECISIONS, 0)
ROWS = [OutgoingRecord(ROUTING_TABLE, b"main/slot/%d" % number, bytes(100)) for number in range(500)]


@pytest.fixture
def broker(troubled_kafka: EmbeddedKafka) -> EmbeddedKafka:
    """The broker that is suspended and killed."""
    return troubled_kafka


@pytest.fixture
def world(broker: EmbeddedKafka, cluster_name: str) -> Iterator[KafkaLogWorld]:
    """A cluster of this test's own."""
    world = KafkaLogWorld(broker.bootstrap_servers, cluster_name)
    yield world
    broker.resume()
    world.close()


def resolved(writer: KafkaTransactionalWriter, outcome: CommitOutcome) -> CommitOutcome:
    """The outcome, asked for again until it is known."""
    deadline = time.monotonic() + 60
    while outcome is CommitOutcome.UNKNOWN:
        assert time.monotonic() < deadline, "the outcome stayed unknown for 60 s"
        outcome = writer.resolve(1_000)
    return outcome


def commit_at_last(writer: KafkaTransactionalWriter) -> None:
    """The writer works as before: a commit succeeds, on a busy machine not always the first one."""
    deadline = time.monotonic() + 60
    while resolved(writer, writer.commit([decision(b"last"), *ROWS])) is not CommitOutcome.COMMITTED:
        assert time.monotonic() < deadline, "no commit succeeded within 60 s"


def check_log(world: KafkaLogWorld, outcomes: dict[bytes, CommitOutcome]) -> None:
    """Each commit is in the log once or not at all, as its outcome said; a fenced one may be either."""
    seen = values(read_all(world, DECISIONS))
    assert len(seen) == len(set(seen))
    for value, outcome in outcomes.items():
        if outcome is not CommitOutcome.FENCED:
            assert (value in seen) == (outcome is CommitOutcome.COMMITTED), value
    assert len(read_all(world, ROUTING_TABLE)) == len(seen) * len(ROWS)


def test_a_broker_that_freezes_in_mid_commit_leaves_no_doubt(broker: EmbeddedKafka, world: KafkaLogWorld) -> None:
    """Frozen at any moment of a commit, the outcome is found out later, and decision and rows are there once or not."""
    writer = KafkaTransactionalWriter(world.cluster, world.kafka, 20_000, commit_timeout_ms=300)
    writer.open()
    outcomes: dict[bytes, CommitOutcome] = {}
    first_answers = []
    for number in range(12):
        freezing = threading.Timer(number * 0.002, broker.pause)
        freezing.start()
        value = b"%d" % number
        outcome = writer.commit([decision(value), *ROWS])
        first_answers.append(outcome)
        freezing.join()
        broker.resume()
        outcomes[value] = resolved(writer, outcome)
    assert CommitOutcome.UNKNOWN in first_answers
    commit_at_last(writer)
    check_log(world, {**outcomes, b"last": CommitOutcome.COMMITTED})
    writer.close()


def test_a_freeze_beyond_the_transactions_time_limit_leaves_no_doubt(
    broker: EmbeddedKafka, world: KafkaLogWorld
) -> None:
    """The broker may have aborted the transaction and fenced its writer, without any rival: open again and go on."""
    outcomes: dict[bytes, CommitOutcome] = {}
    writer = KafkaTransactionalWriter(world.cluster, world.kafka, 1_000, commit_timeout_ms=300)
    writer.open()
    for number in range(3):
        freezing = threading.Timer(number * 0.004, broker.pause)
        freezing.start()
        value = b"%d" % number
        outcome = writer.commit([decision(value), *ROWS])
        freezing.join()
        began = time.monotonic()
        while outcome is CommitOutcome.UNKNOWN and time.monotonic() < began + 3:
            outcome = writer.resolve(500)
        broker.resume()
        outcomes[value] = resolved(writer, outcome)
        if outcomes[value] is CommitOutcome.FENCED:
            writer.open()
    commit_at_last(writer)
    check_log(world, {**outcomes, b"last": CommitOutcome.COMMITTED})
    writer.close()


def test_a_broker_that_dies_in_mid_commit_loses_and_doubles_nothing(
    broker: EmbeddedKafka, world: KafkaLogWorld
) -> None:
    """Killed and started again, the writer recovers by itself, and a reader goes on from its offset."""
    writer = KafkaTransactionalWriter(world.cluster, world.kafka, 30_000, commit_timeout_ms=500)
    writer.open()
    reader = world.open_reader()
    reader.assign({DECISIONS_0: 0})
    outcomes: dict[bytes, CommitOutcome] = {}
    for number in range(2):
        outcomes[b"calm-%d" % number] = resolved(writer, writer.commit([decision(b"calm-%d" % number), *ROWS]))
        killing = threading.Timer(number * 0.008, broker.kill)
        killing.start()
        value = b"%d" % number
        outcome = writer.commit([decision(value), *ROWS])
        killing.join()
        broker.start()
        outcomes[value] = resolved(writer, outcome)
        if outcomes[value] is CommitOutcome.FENCED:
            writer.open()
    commit_at_last(writer)
    expected = read_all(world, DECISIONS)
    assert read_some(reader, len(expected)) == expected
    check_log(world, {**outcomes, b"last": CommitOutcome.COMMITTED})
    writer.close()


def test_readers_and_event_writers_survive_a_restart(broker: EmbeddedKafka, world: KafkaLogWorld) -> None:
    """Nothing has to be opened again: the reader continues at its offset, the writer's records arrive, none twice."""
    writer = KafkaEventWriter(world.cluster, world.kafka, message_timeout_ms=60_000)
    reader = world.open_reader()
    reader.assign({DECISIONS_0: 0})
    send_all(writer, [decision(b"before-%d" % number) for number in range(10)])
    seen = read_some(reader, 10)
    deliveries: list[Delivery] = []
    broker.kill()
    for number in range(10):
        writer.send(decision(b"during-%d" % number), deliveries.append)
    with pytest.raises(LogUnavailableError, match=r"refused|_TRANSPORT|_ALL_BROKERS_DOWN"):
        KafkaLogReader(world.cluster, world.kafka, request_timeout_ms=1_000).end_offsets(DECISIONS)
    broker.start()
    poll_until(lambda: writer.flush(500) == 0, 60)
    assert [delivery.error for delivery in deliveries] == [None] * 10
    # Not until the end: the reader may still be about to say that it ended before the broker died.
    seen += read_some(reader, 10)
    assert values(seen) == [b"before-%d" % i for i in range(10)] + [b"during-%d" % i for i in range(10)]
    assert [record.offset for record in seen] == list(range(20))
    assert not reader.poll(10, 500).records
    writer.close()


def test_a_dead_leaders_transaction_holds_readers_back_only_until_its_time_limit(world: KafkaLogWorld) -> None:
    """Readers continue without a successor; a dropped writer must neither abort nor wait."""
    writer = KafkaTransactionalWriter(world.cluster, world.kafka, 2_000)
    writer.open()
    began = time.monotonic()
    producer = writer._producer  # noqa: SLF001 - stopping between begin and commit is what no public call does
    assert producer is not None
    producer.begin_transaction()
    producer.produce(world.cluster.topic(DECISIONS), b"lost", b"key")
    assert producer.flush(10) == 0
    del producer
    writer.close()
    assert time.monotonic() - began < 2
    send_all(world.open_events(), [decision(b"behind")])
    reader = world.open_reader()
    reader.assign({DECISIONS_0: 0})
    assert read_to_end(reader, [DECISIONS_0]) == []
    assert values(read_some(reader, 1)) == [b"behind"]


def test_a_writer_whose_own_transaction_timed_out_is_fenced_and_opens_again(world: KafkaLogWorld) -> None:
    """Fenced does not mean that there is another writer."""
    writer = KafkaTransactionalWriter(world.cluster, world.kafka, 1_000)
    writer.open()
    producer = writer._producer  # noqa: SLF001 - a transaction that hangs is what no public call does
    assert producer is not None
    producer.begin_transaction()
    producer.produce(world.cluster.topic(DECISIONS), b"late", b"key")
    assert producer.flush(10) == 0
    send_all(world.open_events(), [decision(b"behind")])
    reader = world.open_reader()
    reader.assign({DECISIONS_0: 0})
    assert values(read_some(reader, 1)) == [b"behind"]
    assert writer._end(producer, 5) is CommitOutcome.FENCED  # noqa: SLF001 - as above
    writer.open()
    assert writer.commit([decision(b"again")]) is CommitOutcome.COMMITTED
    assert values(read_all(world, DECISIONS)) == [b"behind", b"again"]
    writer.close()
