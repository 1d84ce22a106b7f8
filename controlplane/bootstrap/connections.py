"""Connections to a cluster, to Kafka and to the lease store, for processes that only read it or send intents."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Final

from controlplane.adapters.system_clock import SystemClock
from controlplane.codec.framing import framing_with
from controlplane.config import ClusterConfig, KafkaConfig, SofaLeaseConfig
from controlplane.inspection.source import LogSource
from controlplane.intents_client import SEND_TIMEOUT_MS
from controlplane.ports import EventWriter, LeaseStore, LockStore, LogReader

LEASE_LOOK_TIMEOUT_MS: Final = 2_000
"""Time limit of a request to Redis by a process that only reads; a leader waits for less."""


def open_reader(cluster: ClusterConfig, kafka: KafkaConfig) -> LogReader:
    """A reader of the cluster's topics in Kafka; the caller closes it."""
    from controlplane.adapters.kafka_log import KafkaLogReader

    return KafkaLogReader(cluster, kafka)


def kept_offsets(cluster: ClusterConfig, kafka: KafkaConfig, topic: str) -> dict[int, range]:
    """The offsets that Kafka has of each partition of a topic, up to the last stable one.

    Raises:
        LogUnavailableError: Kafka did not answer in time.
        PrerequisiteError: there is no such topic.
    """
    with closing(open_reader(cluster, kafka)) as reader:
        return kept_by(reader, topic)


def kept_by(reader: LogReader, topic: str) -> dict[int, range]:
    """As :func:`kept_offsets`, asked by a reader that is open."""
    firsts, ends = reader.start_offsets(topic), reader.end_offsets(topic)
    return {place.partition: range(first, ends[place]) for place, first in firsts.items()}


def topic_id(cluster: ClusterConfig, kafka: KafkaConfig, topic: str) -> str | None:
    """Kafka's id of a topic; see :func:`controlplane.adapters.kafka_topic_ids.topic_id`."""
    from controlplane.adapters import kafka_topic_ids

    return kafka_topic_ids.topic_id(cluster, kafka, topic)


def open_source(cluster: ClusterConfig, kafka: KafkaConfig) -> LogSource:
    """A reader of the cluster's topics in the form that inspection takes; the caller closes it."""
    return LogSource(open_reader(cluster, kafka), SystemClock(), framing_with(kafka.schema_ids))


def open_intent_writer(cluster: ClusterConfig, kafka: KafkaConfig) -> EventWriter:
    """A writer of intents in Kafka, which bears the death of a broker; the caller closes it."""
    from controlplane.adapters.kafka_log import KafkaEventWriter

    return KafkaEventWriter(cluster, kafka, SEND_TIMEOUT_MS)


@contextmanager
def lease_store(cluster: ClusterConfig, redis_url: str) -> Iterator[LeaseStore]:
    """The cluster's lease in Redis, for reading; closed at the end of the context."""
    from controlplane.adapters.redis_lease import RedisLeaseStore

    store = RedisLeaseStore(cluster, redis_url, LEASE_LOOK_TIMEOUT_MS)
    try:
        yield store
    finally:
        store.close()


@contextmanager
def lock_store(cluster: ClusterConfig, redis_url: str, lock: SofaLeaseConfig) -> Iterator[LockStore]:
    """A lock of lease profile ``sofa`` in Redis, for reading this one or all; closed at the end of the context."""
    from controlplane.adapters.redis_lock import RedisLockStore

    store = RedisLockStore(cluster, redis_url, lock.data_center, lock.lock_name, LEASE_LOOK_TIMEOUT_MS)
    try:
        yield store
    finally:
        store.close()
