"""Inputs that are unusual and come all the same, through the real streams: each is kept or refused, exactly once."""

from collections import Counter
from dataclasses import replace
from functools import partial

from confluent_kafka import Producer
from prometheus_client import CollectorRegistry
from pyspark.sql import SparkSession

from controlplane.codec.inputs import MAX_RECORD_BYTES, encode_input
from controlplane.config import DEAD_LETTERS, HEARTBEATS, LOAD_REPORTS
from controlplane.core.membership.inputs import Heartbeat
from controlplane.core.membership.node import NodeRole
from controlplane.core.values.dead_letter import RAW_KEPT_BYTES
from controlplane.core.values.identifiers import Epoch
from streaming.contracts.loads import BROKER_LOAD_TABLE, BUNDLE_LOAD_TABLE
from streaming.contracts.records import DEAD_LETTERS_TABLE, HEARTBEATS_TABLE, LOAD_REPORTS_TABLE
from streaming.jobs.load import start_load
from streaming.jobs.records import start_records
from streaming.metrics import PipelineMetrics
from tests.helpers.end_markers import await_end_markers
from tests.helpers.pipeline_world import PipelineWorld, bundle_load, load_report, read_all

NEWER = b"\xc3\x01" + b"unknown!" + b"a datum of a later version"
"""Framed as a record whose schema this version does not know."""
DAY_MS = 86_400_000


def read_loads(spark: SparkSession, world: PipelineWorld) -> None:
    """Let the stream of load reports read all there is."""
    read_all(partial(start_load, spark, world.config(), PipelineMetrics(CollectorRegistry())))


def largest(count: int) -> bytes:
    """The value of a report of node ``big`` that is, with its key, as long as a record may be."""
    report = load_report("big", [bundle_load(f"kv/0x{number:08x}_0x{number + 1:08x}") for number in range(count)])
    without = len(encode_input(replace(report, version="1" * 10_000)))  # its length takes 3 bytes
    return encode_input(replace(report, version="1" * (10_000 + MAX_RECORD_BYTES - len("big") - without)))


def test_newer_schemas_and_clocks_that_are_off(spark: SparkSession, world: PipelineWorld) -> None:
    """A record of a newer schema is refused with its bytes; days are those of the broker, whatever a sender's clock."""
    now_ms = 1_800_000_000_000
    for sent_at_ms in (now_ms - DAY_MS, now_ms + DAY_MS):
        beat = Heartbeat("node-1", 1, sent_at_ms, Epoch(0), NodeRole.DATA)
        world.send(HEARTBEATS, b"node-1", encode_input(beat))
        world.send(HEARTBEATS, b"node-1", NEWER)
    world.report(load_report("node-1", number=now_ms + DAY_MS))
    world.send(LOAD_REPORTS, b"node-1", NEWER)
    read_all(partial(start_records, spark, world.config(), HEARTBEATS, PipelineMetrics(CollectorRegistry())))
    read_loads(spark, world)
    read_all(partial(start_records, spark, world.config(), DEAD_LETTERS, PipelineMetrics(CollectorRegistry())))

    rows = world.rows(spark, HEARTBEATS_TABLE)
    assert [row["sent_at_ms"] for row in rows] == [now_ms - DAY_MS, now_ms + DAY_MS]
    (report,) = world.rows(spark, LOAD_REPORTS_TABLE)
    for row in (*rows, report):
        assert row["day"].toordinal() - 719_163 == row["append_time_ms"] // DAY_MS
    (letter,) = world.rows(spark, DEAD_LETTERS_TABLE)
    assert (letter["reason"], bytes(letter["raw"]), letter["source_topic"]) == (
        "unknown_fingerprint",
        NEWER,
        LOAD_REPORTS,
    )
    (node,) = world.rows(spark, BROKER_LOAD_TABLE)
    assert node["report_time_ms"] == report["append_time_ms"]


def test_reports_as_large_as_they_may_be_and_nodes_of_20_000_bundles(spark: SparkSession, world: PipelineWorld) -> None:
    """The largest record is kept, a byte more is refused; a node may report its bundles in several records."""
    value = largest(2_000)
    world.send(LOAD_REPORTS, b"big", value)
    world.send(LOAD_REPORTS, b"big", value + b"1")
    for part in range(10):
        numbers = range(part * 2_000, (part + 1) * 2_000)
        bundles = [bundle_load(f"kv/0x{number:08x}_0x{number + 1:08x}") for number in numbers]
        world.report(load_report("node-1", bundles, number=part))
    read_loads(spark, world)
    read_all(partial(start_records, spark, world.config(), DEAD_LETTERS, PipelineMetrics(CollectorRegistry())))
    assert Counter(row["node_id"] for row in world.rows(spark, LOAD_REPORTS_TABLE)) == {"big": 1, "node-1": 10}
    (letter,) = world.rows(spark, DEAD_LETTERS_TABLE)
    assert (letter["reason"], letter["raw_length_bytes"]) == ("record_too_large", MAX_RECORD_BYTES + 1 - len("big"))
    assert bytes(letter["raw"]) == value[:RAW_KEPT_BYTES]
    rows = world.rows(spark, BUNDLE_LOAD_TABLE)
    samples = Counter(row["long_term"]["sample_count"] for row in rows)
    assert samples == {1: 18_000, 2: 2_000}  # the first 2,000 are the other node's, too


def test_a_late_record_and_a_bundle_of_two_nodes(spark: SparkSession, world: PipelineWorld) -> None:
    """A record that was hidden by an open transaction comes a batch after one that was appended later."""
    bundle = "kv/0x00000000_0x40000000"
    topic = world.cluster.topic(LOAD_REPORTS)
    producer = Producer({"bootstrap.servers": world.kafka.bootstrap_servers, "transactional.id": f"late-{topic}"})
    producer.init_transactions(20)
    producer.begin_transaction()
    late = load_report("node-1", [bundle_load(bundle, 100.0)], number=1)
    producer.produce(topic, value=encode_input(late), key=b"node-1", partition=0)
    assert producer.flush(20) == 0
    for number, node in ((2, "node-2"), (3, "node-3")):
        report = load_report(node, [bundle_load(bundle, 10.0)], number=number)
        world.send(LOAD_REPORTS, node.encode(), encode_input(report), partition=number)
    read_loads(spark, world)
    assert [row["sent_at_ms"] for row in world.rows(spark, LOAD_REPORTS_TABLE)] == [2, 3]
    (row,) = world.rows(spark, BUNDLE_LOAD_TABLE)
    assert (row["node_id"], row["long_term"]["sample_count"]) == ("node-3", 2)

    producer.commit_transaction(20)
    await_end_markers(world.kafka.bootstrap_servers, [(topic, 0)])
    read_loads(spark, world)
    rows = world.rows(spark, LOAD_REPORTS_TABLE)
    assert [row["sent_at_ms"] for row in rows] == [1, 2, 3]
    assert rows[0]["append_time_ms"] <= rows[1]["append_time_ms"] <= rows[2]["append_time_ms"]
    (row,) = world.rows(spark, BUNDLE_LOAD_TABLE)
    assert row["long_term"]["sample_count"] == 3
    assert {node["node_id"] for node in world.rows(spark, BROKER_LOAD_TABLE)} == {"node-1", "node-2", "node-3"}
