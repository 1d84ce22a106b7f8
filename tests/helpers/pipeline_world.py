"""A cluster's topics on a real broker, with the writes and reads of tests of the pipeline."""

import random
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from confluent_kafka import Consumer, Producer
from pyspark.sql import Row, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from controlplane.adapters.kafka_admin import apply_topics
from controlplane.bootstrap.topics import topic_specs
from controlplane.codec.inputs import encode_input
from controlplane.config import LOAD_REPORTS, ClusterConfig, KafkaConfig
from controlplane.core.bundles.reports import BundleLoad, LoadReport, ResourceUsage
from controlplane.core.bundles.splitting.limits import SplitSettings
from streaming.config import LoadRuleConfig, PipelineConfig, SparkConfig
from streaming.contracts.table import TableContract
from streaming.sql import spark_tables
from tests.helpers.end_markers import await_end_markers

UNKNOWN_USAGE = ResourceUsage(-1.0, -1.0)
EAGER_RULES = LoadRuleConfig(split=SplitSettings(max_message_rate_per_s=1), evaluation_interval_ms=1)
"""Every batch is evaluated, and every bundle with traffic is to be split."""


def bundle_load(bundle_id: str, rate_per_s: float = 10.0, bytes_per_s: float = 1_000.0, topics: int = 3) -> BundleLoad:
    """A bundle's figures; half of the rate and of the bytes go each way."""
    return BundleLoad(bundle_id, rate_per_s / 2, rate_per_s / 2, bytes_per_s / 2, bytes_per_s / 2, topics, 1, 1, 0)


def load_report(
    node_id: str, bundles: Iterable[BundleLoad] = (), cpu_percent: float = 10.0, number: int = 0
) -> LoadReport:
    """A report; ``number`` ends up in ``sent_at_ms``, so that a test can tell reports apart."""
    cpu = ResourceUsage(cpu_percent, 100.0)
    others = (UNKNOWN_USAGE,) * 4
    return LoadReport(node_id, 1, number, cpu, *others, (), "1", 0, tuple(bundles), ())


def random_report(source: random.Random, node_id: str, bundle_ids: Sequence[str], number: int = 0) -> LoadReport:
    """A report with arbitrary figures for a random choice of bundles."""
    chosen = sorted(source.sample(bundle_ids, source.randint(0, len(bundle_ids))))
    source.shuffle(chosen)
    bundles = [
        BundleLoad._make(
            (
                bundle_id,
                *(source.choice([0.0, source.uniform(0, 1e3), source.uniform(0, 1e9)]) for _ in range(4)),
                *(source.randint(0, 2_000) for _ in range(4)),
            )
        )
        for bundle_id in chosen
    ]
    known = [ResourceUsage(source.uniform(0, 400), source.choice([100.0, 400.0])) for _ in range(5)]
    cpu, memory, direct_memory, bandwidth_in, bandwidth_out = (source.choice([usage, UNKNOWN_USAGE]) for usage in known)
    return LoadReport(
        node_id, 1, number, cpu, memory, direct_memory, bandwidth_in, bandwidth_out, (), "1", 0, tuple(bundles), ()
    )


class PipelineWorld:
    """One cluster: its topics, a producer, the pipeline's settings, and its tables."""

    def __init__(self, cluster: str, bootstrap_servers: str, folder: Path, jars: tuple[Path, ...]) -> None:
        """Create the topics."""
        self.cluster = ClusterConfig(cluster)
        self.kafka = KafkaConfig(bootstrap_servers)
        self.tables_dir = folder / "delta"
        self.spark_config = SparkConfig(jars=jars)
        apply_topics(bootstrap_servers, cluster, topic_specs(), {}, least_copies=1)
        self._producer = Producer({"bootstrap.servers": bootstrap_servers, "linger.ms": 0})

    def config(self, max_records_per_batch: int = 20_000, rules: LoadRuleConfig | None = None) -> PipelineConfig:
        """Settings that look for new records all the time."""
        return PipelineConfig(
            cluster=self.cluster,
            kafka=self.kafka,
            tables_dir=self.tables_dir,
            spark=self.spark_config,
            rules=rules or LoadRuleConfig(),
            bucket_count=2,
            trigger_interval_ms=100,
            max_records_per_batch=max_records_per_batch,
        )

    def send(self, topic: str, key: bytes | None, value: bytes | None, partition: int | None = None) -> None:
        """Append one record, and wait until it is there."""
        any_partition = -1  # librdkafka's own word for: chosen by the key
        where = any_partition if partition is None else partition
        self._producer.produce(self.cluster.topic(topic), value=value, key=key, partition=where)
        assert self._producer.flush(20) == 0

    def report(self, *reports: LoadReport) -> None:
        """Append load reports as nodes do."""
        for report in reports:
            self._producer.produce(
                self.cluster.topic(LOAD_REPORTS), value=encode_input(report), key=report.node_id.encode()
            )
        assert self._producer.flush(20) == 0

    def send_in_transaction(self, topic: str, records: Iterable[tuple[bytes, bytes]], *, commit: bool) -> None:
        """Append records to a topic of one partition in one transaction, and commit or abort it."""
        producer = Producer(
            {"bootstrap.servers": self.kafka.bootstrap_servers, "transactional.id": self.cluster.transactional_id}
        )
        producer.init_transactions(20)
        producer.begin_transaction()
        for key, value in records:
            producer.produce(self.cluster.topic(topic), value=value, key=key)
        assert producer.flush(20) == 0
        if commit:
            producer.commit_transaction(20)
        else:
            producer.abort_transaction(20)
        await_end_markers(self.kafka.bootstrap_servers, [(self.cluster.topic(topic), 0)])

    def received(self, topic: str, count: int) -> list[tuple[bytes, bytes]]:
        """Keys and values of the first records of a topic of one partition."""
        consumer = Consumer(
            {
                "bootstrap.servers": self.kafka.bootstrap_servers,
                "group.id": f"test-{self.cluster.name}",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
            }
        )
        try:
            consumer.subscribe([self.cluster.topic(topic)])
            messages = consumer.consume(count, 20)
            assert all(message.error() is None for message in messages), messages
            return [(message.key() or b"", message.value() or b"") for message in messages]
        finally:
            consumer.close()

    def rows(self, session: SparkSession, table: TableContract) -> list[Row]:
        """The table's rows in the order of its key."""
        return spark_tables.read(session, self.tables_dir, table).orderBy(*table.key).collect()


def read_all(start: Callable[[], StreamingQuery]) -> StreamingQuery:
    """Let a stream read everything that is there, and stop it."""
    query = start()
    try:
        query.processAllAvailable()
    finally:
        query.stop()
    return query
