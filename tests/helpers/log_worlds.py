"""The same log twice, for the contract suites: in memory on a virtual clock, and on a real Kafka broker."""

import time
from collections.abc import Callable, Sequence
from typing import Protocol

from confluent_kafka import KafkaException, Producer
from confluent_kafka import TopicPartition as KafkaPosition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)

from controlplane.adapters.kafka_admin_client import KafkaAdmin
from controlplane.adapters.kafka_log import KafkaEventWriter, KafkaLogReader, KafkaTransactionalWriter
from controlplane.adapters.kafka_topic_inspector import KafkaTopicInspector
from controlplane.config import DECISIONS, HEARTBEATS, ROUTING_TABLE, ClusterConfig, KafkaConfig
from controlplane.core.values.identifiers import TopicPartition
from controlplane.errors import LogUnavailableError
from controlplane.ports import (
    CommitOutcome,
    Delivery,
    EventWriter,
    LogReader,
    OutgoingRecord,
    PartitionEnd,
    RawRecord,
    TopicInspector,
    TransactionalWriter,
)
from controlplane.testing import (
    CommitFault,
    MemoryBroker,
    MemoryEventWriter,
    MemoryLogReader,
    MemoryTopicInspector,
    MemoryTransactionalWriter,
    VirtualClock,
)
from tests.helpers.end_markers import await_end_markers
from tests.helpers.polling import poll_until

PARTITION_COUNTS = {HEARTBEATS: 3, DECISIONS: 1, ROUTING_TABLE: 1}
_READ_DEADLINE_S = 20.0
_OPEN_DEADLINE_S = 20.0
_CREATE_DEADLINE_S = 40.0


class LogWorld(Protocol):
    """A log with the topics of :data:`PARTITION_COUNTS`, and what a contract needs besides the ports."""

    cluster: ClusterConfig

    def open_reader(self) -> LogReader:
        """A new reader."""

    def open_transactions(self) -> TransactionalWriter:
        """A new transactional writer that is not open yet."""

    def open_events(self) -> EventWriter:
        """A new writer of single records."""

    def leave_transaction_open(self, records: Sequence[OutgoingRecord]) -> Callable[[], bool]:
        """Let a leader append records and stop before its commit. The result is a function that tries the commit."""

    def abort_transaction(self, records: Sequence[OutgoingRecord]) -> None:
        """Append records and abort them."""

    def settle(self) -> None:
        """Wait until readers see what was committed: a broker answers a commit before it has marked its end."""

    def delete_before(self, place: TopicPartition, offset: int) -> None:
        """Drop a partition's records before an offset, as retention does."""

    def recreate_topic(self, topic: str) -> None:
        """Delete a topic and create it again, empty."""

    def open_inspector(self) -> TopicInspector:
        """A new inspector of topics."""

    def keep_create_time(self, topic: str) -> None:
        """Let a topic keep the time at which its records were created, by their sender's clock."""

    def let_time_pass(self, milliseconds: int) -> None:
        """Advance the broker's clock."""

    def take_away(self) -> None:
        """The broker stops answering; its connections stay."""

    def bring_back(self) -> None:
        """The broker answers again."""

    def close(self) -> None:
        """Close every client."""


class MemoryLogWorld:
    """The fake."""

    def __init__(self) -> None:
        self.cluster = ClusterConfig("memory")
        self._clock = VirtualClock()
        self._broker = MemoryBroker(self._clock)
        for topic, count in PARTITION_COUNTS.items():
            self._broker.create_topic(self.cluster.topic(topic), count, {"message.timestamp.type": "LogAppendTime"})

    def open_reader(self) -> LogReader:
        """See :meth:`LogWorld.open_reader`."""
        return MemoryLogReader(self.cluster, self._broker)

    def open_transactions(self) -> TransactionalWriter:
        """See :meth:`LogWorld.open_transactions`."""
        return MemoryTransactionalWriter(self.cluster, self._broker)

    def open_events(self) -> EventWriter:
        """See :meth:`LogWorld.open_events`."""
        return MemoryEventWriter(self.cluster, self._broker)

    def leave_transaction_open(self, records: Sequence[OutgoingRecord]) -> Callable[[], bool]:
        """See :meth:`LogWorld.leave_transaction_open`."""
        writer = self.open_transactions()
        writer.open()
        self._broker.fail_next_commit(CommitFault.ANSWER_LOST_BEFORE_COMMIT)
        assert writer.commit(records) is CommitOutcome.UNKNOWN
        return lambda: writer.resolve(0) is CommitOutcome.COMMITTED

    def abort_transaction(self, records: Sequence[OutgoingRecord]) -> None:
        """See :meth:`LogWorld.abort_transaction`."""
        writer = self.open_transactions()
        writer.open()
        self._broker.fail_next_commit(CommitFault.ABORTED)
        assert writer.commit(records) is CommitOutcome.ABORTED

    def settle(self) -> None:
        """A commit is visible at once."""

    def delete_before(self, place: TopicPartition, offset: int) -> None:
        """See :meth:`LogWorld.delete_before`."""
        self._broker.delete_before(self.cluster.topic(place.topic), place.partition, offset)

    def recreate_topic(self, topic: str) -> None:
        """See :meth:`LogWorld.recreate_topic`."""
        self._broker.create_topic(self.cluster.topic(topic), PARTITION_COUNTS[topic])

    def open_inspector(self) -> TopicInspector:
        """See :meth:`LogWorld.open_inspector`."""
        return MemoryTopicInspector(self._broker)

    def keep_create_time(self, topic: str) -> None:
        """See :meth:`LogWorld.keep_create_time`."""
        self._broker.alter_topic(self.cluster.topic(topic), {"message.timestamp.type": "CreateTime"})

    def let_time_pass(self, milliseconds: int) -> None:
        """See :meth:`LogWorld.let_time_pass`."""
        self._clock.advance(milliseconds)

    def take_away(self) -> None:
        """See :meth:`LogWorld.take_away`."""
        self._broker.available = False

    def bring_back(self) -> None:
        """See :meth:`LogWorld.bring_back`."""
        self._broker.available = True

    def close(self) -> None:
        """There is nothing to give back."""


class KafkaLogWorld:
    """A real broker.

    Args:
        bootstrap_servers: where it is.
        cluster_name: a name that no other test uses on this broker.
        pause, resume: freeze the broker and resume it, if that is possible.
        request_timeout_ms: how long the clients wait for answers; short where a test waits until they give up.
    """

    def __init__(
        self,
        bootstrap_servers: str,
        cluster_name: str,
        pause: Callable[[], None] | None = None,
        resume: Callable[[], None] | None = None,
        request_timeout_ms: int = 15_000,
    ) -> None:
        self.cluster = ClusterConfig(cluster_name)
        self.kafka = KafkaConfig(bootstrap_servers)
        self._pause = pause
        self._resume = resume
        self._request_timeout_ms = request_timeout_ms
        self._admin = AdminClient({"bootstrap.servers": bootstrap_servers, "log_level": 0})
        self._clients: list[LogReader | TransactionalWriter | EventWriter] = []
        for topic in PARTITION_COUNTS:
            self._create_topic(topic)

    def open_reader(self) -> LogReader:
        """See :meth:`LogWorld.open_reader`."""
        reader = KafkaLogReader(self.cluster, self.kafka, request_timeout_ms=self._request_timeout_ms)
        self._clients.append(reader)
        return reader

    def open_transactions(self) -> TransactionalWriter:
        """See :meth:`LogWorld.open_transactions`."""
        writer = KafkaTransactionalWriter(
            self.cluster,
            self.kafka,
            commit_timeout_ms=self._request_timeout_ms,
            open_timeout_ms=self._request_timeout_ms,
        )
        self._clients.append(writer)
        return writer

    def open_events(self) -> EventWriter:
        """See :meth:`LogWorld.open_events`."""
        writer = KafkaEventWriter(self.cluster, self.kafka, request_timeout_ms=self._request_timeout_ms)
        self._clients.append(writer)
        return writer

    def leave_transaction_open(self, records: Sequence[OutgoingRecord]) -> Callable[[], bool]:
        """See :meth:`LogWorld.leave_transaction_open`."""
        producer = self._plain_transaction(records)

        def try_to_commit() -> bool:
            try:
                producer.commit_transaction(10)
            except KafkaException:
                return False
            return True

        return try_to_commit

    def abort_transaction(self, records: Sequence[OutgoingRecord]) -> None:
        """See :meth:`LogWorld.abort_transaction`."""
        self._plain_transaction(records).abort_transaction(10)

    def settle(self) -> None:
        """See :meth:`LogWorld.settle`."""
        counts = PARTITION_COUNTS.items()
        places = [(self.cluster.topic(topic), partition) for topic, count in counts for partition in range(count)]
        await_end_markers(self.kafka.bootstrap_servers, places)

    def delete_before(self, place: TopicPartition, offset: int) -> None:
        """See :meth:`LogWorld.delete_before`."""
        position = KafkaPosition(self.cluster.topic(place.topic), place.partition, offset)
        for future in self._admin.delete_records([position]).values():
            future.result(10)

    def recreate_topic(self, topic: str) -> None:
        """See :meth:`LogWorld.recreate_topic`."""
        name = self.cluster.topic(topic)
        self._admin.delete_topics([name])[name].result(10)
        self._create_topic(topic)

    def open_inspector(self) -> TopicInspector:
        """See :meth:`LogWorld.open_inspector`."""
        return KafkaTopicInspector(KafkaAdmin(self.cluster.name, self.kafka.bootstrap_servers, {}))

    def keep_create_time(self, topic: str) -> None:
        """See :meth:`LogWorld.keep_create_time`."""
        change = ConfigEntry("message.timestamp.type", "CreateTime", incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(ResourceType.TOPIC, self.cluster.topic(topic), incremental_configs=[change])
        self._admin.incremental_alter_configs([resource])[resource].result(10)

    def let_time_pass(self, milliseconds: int) -> None:
        """See :meth:`LogWorld.let_time_pass`."""
        time.sleep(milliseconds / 1_000)

    def take_away(self) -> None:
        """See :meth:`LogWorld.take_away`."""
        assert self._pause is not None, "this world's broker is shared: use a broker of the test's own"
        self._pause()

    def bring_back(self) -> None:
        """See :meth:`LogWorld.bring_back`."""
        assert self._resume is not None, "this world's broker is shared: use a broker of the test's own"
        self._resume()

    def close(self) -> None:
        """See :meth:`LogWorld.close`."""
        for client in self._clients:
            client.close()

    def _create_topic(self, topic: str) -> None:
        """Create a topic and wait until it is there to be asked for."""
        name = self.cluster.topic(topic)
        wanted = NewTopic(name, PARTITION_COUNTS[topic], 1, config={"message.timestamp.type": "LogAppendTime"})
        # A broker that was frozen until a moment ago may first have to register again.
        self._admin.create_topics([wanted], operation_timeout=10)[name].result(_CREATE_DEADLINE_S)
        poll_until(lambda: self._has_leaders(name, PARTITION_COUNTS[topic]))

    def _has_leaders(self, name: str, partition_count: int) -> bool:
        found = self._admin.list_topics(name, timeout=10).topics[name]
        return [found.partitions[number].leader for number in sorted(found.partitions)] == [1] * partition_count

    def _plain_transaction(self, records: Sequence[OutgoingRecord]) -> Producer:
        """The steps of a leader between begin and commit, with a producer outside the package."""
        producer = Producer(
            {
                "bootstrap.servers": self.kafka.bootstrap_servers,
                "transactional.id": self.cluster.transactional_id,
                "transaction.timeout.ms": 60_000,
                "partitioner": "murmur2_random",
                "log_level": 0,
            }
        )
        producer.init_transactions(20)
        producer.begin_transaction()
        for record in records:
            partition = -1 if record.partition is None else record.partition
            producer.produce(self.cluster.topic(record.topic), record.value, record.key, partition)
        assert producer.flush(10) == 0
        return producer


def open_at_last(writer: TransactionalWriter) -> None:
    """Open a writer, with retries like a controller: a new broker may still be loading its coordinator."""
    deadline = time.monotonic() + _OPEN_DEADLINE_S
    while True:
        try:
            writer.open()
        except LogUnavailableError:
            if time.monotonic() > deadline:
                raise
        else:
            return


def read_to_end(reader: LogReader, places: Sequence[TopicPartition]) -> list[RawRecord]:
    """Everything that a reader gets until each of the partitions has ended; they have to be assigned just before."""
    records: list[RawRecord] = []
    missing = set(places)
    deadline = time.monotonic() + _READ_DEADLINE_S
    while missing:
        assert time.monotonic() < deadline, f"no end of {missing} within {_READ_DEADLINE_S} s"
        batch = reader.poll(1_000, 200)
        records.extend(batch.records)
        missing -= batch.ended.keys()
    return records


def read_until_ended(reader: LogReader, places: Sequence[TopicPartition]) -> dict[TopicPartition, PartitionEnd]:
    """The last end that a reader is told of for each of the partitions; they have to be assigned just before."""
    ends: dict[TopicPartition, PartitionEnd] = {}
    deadline = time.monotonic() + _READ_DEADLINE_S
    while not ends.keys() >= set(places):
        assert time.monotonic() < deadline, f"no end of {set(places) - ends.keys()} within {_READ_DEADLINE_S} s"
        ends |= reader.poll(1_000, 200).ended
    return ends


def read_some(reader: LogReader, count: int) -> list[RawRecord]:
    """The next ``count`` records, not one more."""
    records: list[RawRecord] = []
    deadline = time.monotonic() + _READ_DEADLINE_S
    while len(records) < count:
        assert time.monotonic() < deadline, f"only {len(records)} of {count} records within {_READ_DEADLINE_S} s"
        records.extend(reader.poll(count - len(records), 200).records)
    return records


def read_all(world: LogWorld, topic: str) -> list[RawRecord]:
    """Everything in a topic, read from its start by a new reader; no transaction may be left open."""
    world.settle()
    reader = world.open_reader()
    starts = reader.start_offsets(topic)
    reader.assign(starts)
    records = read_to_end(reader, list(starts))
    reader.close()
    return records


def send_all(writer: EventWriter, records: Sequence[OutgoingRecord]) -> list[Delivery]:
    """Send records and wait for their deliveries."""
    deliveries: list[Delivery] = []
    for record in records:
        writer.send(record, deliveries.append)
    deadline = time.monotonic() + _READ_DEADLINE_S
    while len(deliveries) < len(records):
        assert time.monotonic() < deadline, f"{len(deliveries)} of {len(records)} deliveries in {_READ_DEADLINE_S} s"
        writer.flush(500)
    return deliveries
