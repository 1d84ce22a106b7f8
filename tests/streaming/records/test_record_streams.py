"""The streams that only add rows, on a real broker and real tables: what is committed and usable, once, and no more."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from prometheus_client import CollectorRegistry
from pyspark.sql import DataFrame, SparkSession

from controlplane.codec.framing import SINGLE_OBJECT_HEADER_BYTES
from controlplane.codec.inputs import encode_input
from controlplane.config import DEAD_LETTERS, HEARTBEATS, MEMBERSHIP
from controlplane.core.bundles.reports import BundleStep, BundleStepReport
from controlplane.core.membership.inputs import Heartbeat, NodeJoined, Tick
from controlplane.core.membership.node import NodeRole
from controlplane.core.values.canonical import to_canonical
from controlplane.core.values.identifiers import Epoch, Seq
from streaming.config import PipelineConfig
from streaming.contracts.records import DEAD_LETTERS_TABLE, HEARTBEATS_TABLE, MEMBERSHIP_TABLE, TICKS_TABLE
from streaming.jobs.records import RecordBatchWriter, start_records
from streaming.metrics import PipelineMetrics, ProgressListener
from streaming.records.tick_rows import PlacedTick, ticks_of
from streaming.tables.table_files import WrittenFile
from streaming.tables.table_writer import TableWriter
from tests.helpers.pipeline_world import PipelineWorld, read_all
from tests.helpers.raw_batches import RAW

DIVIDED = BundleStepReport("kv/0x00000000_0x40000000", 2, BundleStep.DIVIDED, (7, 8))


def heartbeat(node_id: str, number: int, *steps: BundleStepReport) -> tuple[bytes, bytes]:
    """Key and value of a heartbeat that a test can tell from others by ``sent_at_ms``."""
    beat = Heartbeat(node_id, 1, number, Epoch(0), NodeRole.DATA, bundle_steps=steps)
    return node_id.encode(), encode_input(beat)


def read_topic(spark: SparkSession, config: PipelineConfig, topic: str) -> tuple[float | None, float | None]:
    """Let the stream of a topic read everything; what the metrics count as read, and as passed over."""
    registry = CollectorRegistry()
    metrics = PipelineMetrics(registry)
    query = read_all(lambda: start_records(spark, config, topic, metrics))
    listener = ProgressListener(metrics)
    for progress in query.recentProgress:
        listener.record(progress)
    labels = {"stream": query.name}
    names = ("controlplane_pipeline_records_total", "controlplane_pipeline_passed_over_records_total")
    read, passed_over = (registry.get_sample_value(name, labels) for name in names)
    return read, passed_over


def test_heartbeats_and_ticks_are_kept_once_over_restarts(spark: SparkSession, world: PipelineWorld) -> None:
    """A stream that starts again goes on where it stopped; what the leader refuses is counted and not stored."""
    config = world.config()
    world.send(HEARTBEATS, *heartbeat("node-1", 1))
    world.send(HEARTBEATS, None, encode_input(Tick("controller-1", 5)), partition=0)
    first = read_topic(spark, config, HEARTBEATS)
    world.send(HEARTBEATS, b"node-1", b"junk")
    world.send(HEARTBEATS, *heartbeat("node-1", 2, DIVIDED))
    second = read_topic(spark, config, HEARTBEATS)
    rows = world.rows(spark, HEARTBEATS_TABLE)
    assert sorted((row["topic"], row["node_id"], row["sent_at_ms"]) for row in rows) == [
        (HEARTBEATS, "node-1", 1),
        (HEARTBEATS, "node-1", 2),
    ]
    steps = {row["sent_at_ms"]: [each.asDict() for each in row["bundle_steps"]] for row in rows}
    assert steps == {1: [], 2: [to_canonical(DIVIDED)]}
    ((tick_row, tick),) = ((row, tick) for row in world.rows(spark, TICKS_TABLE) for tick in ticks_of(row.asDict()))
    assert (tick.partition, tick.tick) == (0, Tick("controller-1", 5))
    for day, time_ms in (
        (tick_row["day"], tick.append_time_ms),
        *((row["day"], row["append_time_ms"]) for row in rows),
    ):
        assert time_ms // 86_400_000 == day.toordinal() - 719_163
    assert (first, second) == ((2, 0), (2, 1))


def test_each_table_has_a_batch_once(
    spark: SparkSession, world: PipelineWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A driver that is killed between the two commits of a batch repeats it; every offset is in one place."""
    config = world.config()
    batches = [mixed_batch(spark, number) for number in range(3)]
    commit = TableWriter.append_files

    def commit_but_ticks(table: TableWriter, files: Sequence[WrittenFile], version: int) -> None:
        if table.contract is TICKS_TABLE and version == 1:
            raise KeyboardInterrupt
        commit(table, files, version)

    registry = CollectorRegistry()
    first = RecordBatchWriter(config, HEARTBEATS, PipelineMetrics(CollectorRegistry()))
    monkeypatch.setattr(TableWriter, "append_files", commit_but_ticks)
    first.write(batches[0], "app", 0)
    with pytest.raises(KeyboardInterrupt):
        first.write(batches[1], "app", 1)
    monkeypatch.undo()
    second = RecordBatchWriter(config, HEARTBEATS, PipelineMetrics(registry))
    for number in (1, 2, 2):
        second.write(batches[number], "app", number)
    offsets = [(row["partition"], row["offset"]) for row in world.rows(spark, HEARTBEATS_TABLE)]
    ticks = [tick for row in world.rows(spark, TICKS_TABLE) for tick in ticks_of(row.asDict())]
    assert sorted(offsets) == [(partition, 10 * batch + 1) for partition in (0, 1) for batch in range(3)]
    assert sorted(ticks) == [tick for partition in (0, 1) for batch in range(3) for tick in ticks_in(partition, batch)]
    labels = {"stream": HEARTBEATS_TABLE.name}
    assert registry.get_sample_value("controlplane_pipeline_passed_over_records_total", labels) == 2 * 2


def ticks_in(partition: int, batch: int) -> list[PlacedTick]:
    """Two ticks, in two minutes."""
    places = ((10 * batch, 60_000 * batch + 59_999), (10 * batch + 2, 60_000 * batch + 60_001))
    return [PlacedTick(partition, offset, time_ms, Tick("c1", offset, Seq(batch))) for offset, time_ms in places]


def mixed_batch(session: SparkSession, number: int) -> DataFrame:
    """Of each partition two ticks, a heartbeat and a record that is refused."""
    rows = []
    for partition in (0, 1):
        ticks = ticks_in(partition, number)
        rows += [(partition, each.offset, each.append_time_ms, b"c1", encode_input(each.tick), True) for each in ticks]
        time_ms = 60_000 * number + 60_000
        rows.append((partition, 10 * number + 1, time_ms, *heartbeat("node-1", number), True))
        rows.append((partition, 10 * number + 3, time_ms, b"n", b"junk", True))
    return session.createDataFrame(rows, RAW)


def test_records_of_a_schema_registry_are_read(spark: SparkSession, world: PipelineWorld) -> None:
    """A producer that frames as Confluent's serializers do is understood where its ids are named."""
    key, framed = heartbeat("node-1", 1)
    datum = framed[SINGLE_OBJECT_HEADER_BYTES:]
    world.send(HEARTBEATS, key, b"\x00" + (17).to_bytes(4, "big") + datum)
    world.send(HEARTBEATS, key, b"\x00" + (18).to_bytes(4, "big") + datum)
    config = world.config()
    named = replace(config, kafka=replace(config.kafka, schema_ids={17: "Heartbeat.v1"}))
    read_topic(spark, named, HEARTBEATS)
    (row,) = world.rows(spark, HEARTBEATS_TABLE)
    assert (row["node_id"], row["sent_at_ms"]) == ("node-1", 1)


def test_aborted_transactions_are_invisible(spark: SparkSession, world: PipelineWorld) -> None:
    """What a fenced or failed writer left behind never reaches a table: Spark's default would read it."""
    world.send_in_transaction(HEARTBEATS, [heartbeat("node-1", number) for number in range(5)], commit=False)
    world.send_in_transaction(HEARTBEATS, [heartbeat("node-1", number) for number in range(10, 13)], commit=True)
    read_topic(spark, world.config(), HEARTBEATS)
    assert [row["sent_at_ms"] for row in world.rows(spark, HEARTBEATS_TABLE)] == [10, 11, 12]


def test_membership_keeps_every_field(spark: SparkSession, world: PipelineWorld) -> None:
    """A join is stored whole: an operator asks the table for addresses and zones."""
    joined = NodeJoined("node-1", 7, NodeRole.DATA, (), "zone-a", 2, 100, "1.0.0", 5, "5d1f0c7a", hands_off=True)
    world.send(MEMBERSHIP, b"node-1", encode_input(joined))
    read_topic(spark, world.config(), MEMBERSHIP)
    (row,) = world.rows(spark, MEMBERSHIP_TABLE)
    found = (row["kind"], row["incarnation"], row["role"], row["zone"], row["weight"], row["capacity"], row["reason"])
    assert found == ("joined", 7, "data", "zone-a", 2, 100, None)
    assert (row["process_id"], row["hands_off"]) == ("5d1f0c7a", True)


def test_junk_among_dead_letters_is_kept_as_such(spark: SparkSession, world: PipelineWorld) -> None:
    """A record on ``dead-letters`` that is none must not stop the stream that people look into when things go wrong."""
    world.send(DEAD_LETTERS, b"key", b"junk")
    read_topic(spark, world.config(), DEAD_LETTERS)
    (row,) = world.rows(spark, DEAD_LETTERS_TABLE)
    assert (row["source_topic"], row["source_offset"], row["raw"], row["reason"]) == (
        DEAD_LETTERS,
        0,
        bytearray(b"junk"),
        "not_avro_framed",
    )
