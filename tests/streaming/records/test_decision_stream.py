"""The stream of decisions on a real broker and a real table: every decision once, also when batches cut them."""

from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient
from prometheus_client import CollectorRegistry
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from controlplane.codec.decisions import decision_key, encode_decision
from controlplane.config import DECISIONS
from controlplane.core.log.decision import Decision
from controlplane.core.values.identifiers import Seq
from controlplane.errors import LogContinuityError
from streaming.contracts.records import DECISIONS_TABLE
from streaming.jobs.decision_log import DecisionBatchWriter, start_decisions
from streaming.jobs.failures import stopping_error
from streaming.metrics import PipelineMetrics
from streaming.sql.local import LocalEngine
from streaming.tables.table_writer import TableWriter
from tests.golden.samples import sample_of
from tests.helpers.pipeline_world import PipelineWorld, read_all
from tests.helpers.raw_batches import RAW

LARGE = sample_of(Decision, "everything")
SMALL = sample_of(Decision, "positions only")
PART_BYTES = 700


def records_of(decisions: Sequence[Decision]) -> list[tuple[bytes, bytes]]:
    """Keys and values of their records."""
    return [(decision_key(each.seq), value) for each in decisions for value in encode_decision(each, PART_BYTES)]


def numbered(*decisions: Decision) -> list[Decision]:
    """The decisions with seq 1, 2, ..."""
    return [replace(decision, seq=Seq(number)) for number, decision in enumerate(decisions, start=1)]


def batch_of(spark: SparkSession, values: Sequence[bytes | None]) -> DataFrame:
    """Records of the log, from offset 0 on."""
    rows = [(0, offset, 1_000, None, value, True) for offset, value in enumerate(values)]
    return spark.createDataFrame(rows, RAW)


def test_stream_keeps_every_decision_once(spark: SparkSession, world: PipelineWorld) -> None:
    """Decisions in parts, batches of three, a restart, an aborted rival, foreign records: the table holds the log."""
    decisions = numbered(SMALL, LARGE, SMALL, LARGE)

    def disturb() -> None:
        """Others write into the log: what looks like a newer version's, garbage, nothing, a decision of another log."""
        world.send(DECISIONS, b"700", b"\xc3\x01" + b"12345678")
        for value in (b"garbage", None, encode_decision(replace(SMALL, log_id="another"))[0]):
            world.send(DECISIONS, b"\xff", value)

    registry = CollectorRegistry()
    metrics = PipelineMetrics(registry)
    config = world.config(max_records_per_batch=3)
    world.send_in_transaction(DECISIONS, records_of(decisions[:2]), commit=True)
    disturb()
    world.send_in_transaction(DECISIONS, records_of(numbered(LARGE)), commit=False)
    read_all(lambda: start_decisions(spark, config, metrics))
    disturb()
    world.send_in_transaction(DECISIONS, records_of(decisions[2:]), commit=True)
    disturb()
    read_all(lambda: start_decisions(spark, config, metrics))
    rows = world.rows(spark, DECISIONS_TABLE)
    assert [(row["seq"], row["digest"]) for row in rows] == [(each.seq, each.digest()) for each in decisions]
    labels = {"stream": DECISIONS_TABLE.name}
    assert registry.get_sample_value("controlplane_pipeline_passed_over_records_total", labels) == 3 * 4
    question = (
        "select seq, moves_carried_out, array_contains(cause_kinds, 'term_opened') as opened, lost_slots "
        "from decisions where moves_carried_out > 0 order by seq"
    )
    with closing(LocalEngine(world.tables_dir)) as engine:
        result = engine.run(question)
    assert result.columns == ("seq", "moves_carried_out", "opened", "lost_slots")
    assert result.rows == ((2, 5, True, [11, 12]), (4, 5, True, [11, 12]))


def test_a_repeated_batch_adds_nothing(spark: SparkSession, world: PipelineWorld) -> None:
    """After a crash behind the commit, and before Spark noted that the batch is done."""
    values = [part for decision in numbered(SMALL, LARGE) for part in encode_decision(decision)]
    batch = batch_of(spark, [b"foreign", *values])
    passed_over = []
    for _ in range(2):
        registry = CollectorRegistry()
        DecisionBatchWriter(world.config(), PipelineMetrics(registry)).write(batch, "app", 1)
        labels = {"stream": DECISIONS_TABLE.name}
        passed_over.append(registry.get_sample_value("controlplane_pipeline_passed_over_records_total", labels))
    assert [row["seq"] for row in world.rows(spark, DECISIONS_TABLE)] == [1, 2]
    assert passed_over == [1, 0]


@pytest.mark.parametrize("values", [[], [b"foreign", None]])
def test_a_batch_without_decisions_leaves_its_number(
    spark: SparkSession, world: PipelineWorld, values: list[bytes | None]
) -> None:
    """Such as one of aborted transactions alone: a table without its number is older than the checkpoint."""
    writer = DecisionBatchWriter(world.config(), PipelineMetrics(CollectorRegistry()))
    writer.write(batch_of(spark, values), "app", 0)
    table = TableWriter(world.tables_dir, DECISIONS_TABLE, "app")
    assert (table.written_version, table.is_empty) == (0, True)


def test_decisions_that_do_not_follow_the_table_are_not_written(spark: SparkSession, world: PipelineWorld) -> None:
    """The table is an older copy, so that its checkpoint is ahead: decisions would be left out."""
    values = [part for decision in numbered(SMALL, LARGE, SMALL) for part in encode_decision(decision)]
    first, _, *later = values
    writer = DecisionBatchWriter(world.config(), PipelineMetrics(CollectorRegistry()))
    writer.write(batch_of(spark, [first]), "app", 0)
    again = DecisionBatchWriter(world.config(), PipelineMetrics(CollectorRegistry()))
    with pytest.raises(PySparkException) as failed:
        again.write(batch_of(spark, [b"foreign", *later]), "app", 2)
    error = stopping_error(str(failed.value), world.kafka)
    assert isinstance(error, LogContinuityError)
    assert "decision 2 is due, and decision 3 is there. " in str(error)
    assert "run 'controlplane pipeline rebuild-checkpoint decisions'; " in str(error)
    assert [row["seq"] for row in world.rows(spark, DECISIONS_TABLE)] == [1]


def test_a_missing_part_stops_the_pipeline(spark: SparkSession, world: PipelineWorld) -> None:
    """The executor's error is known by its name: another start would meet it again."""
    first, _, *others = encode_decision(LARGE, PART_BYTES)
    batch = batch_of(spark, [first, *others])
    with pytest.raises(PySparkException) as failed:
        DecisionBatchWriter(world.config(), PipelineMetrics(CollectorRegistry())).write(batch, "app", 1)
    assert isinstance(stopping_error(str(failed.value), world.kafka), LogContinuityError)
    assert world.rows(spark, DECISIONS_TABLE) == []


class Log:
    """The topic of decisions, and the stream that reads it in batches of at most three records."""

    def __init__(self, world: PipelineWorld, spark: SparkSession) -> None:
        self.world = world
        self._spark = spark

    def append(self, decisions: Sequence[Decision], first_part: int = 0, end_part: int | None = None) -> None:
        """Write them as a leader does, but for some parts of all together."""
        self.world.send_in_transaction(DECISIONS, records_of(decisions)[first_part:end_part], commit=True)

    def forget(self, before: int) -> None:
        """Let Kafka delete the records before an offset."""
        admin = AdminClient({"bootstrap.servers": self.world.kafka.bootstrap_servers})
        place = TopicPartition(self.world.cluster.topic(DECISIONS), 0, before)
        for deletion in admin.delete_records([place]).values():
            deletion.result(20)

    def read(self) -> list[int]:
        """Read on to the end; the seqs in the table."""
        config = self.world.config(max_records_per_batch=3)
        read_all(lambda: start_decisions(self._spark, config, PipelineMetrics(CollectorRegistry())))
        return [row["seq"] for row in self.world.rows(self._spark, DECISIONS_TABLE)]

    def refused(self) -> str:
        """With what a pipeline ends that reads on; the table stays as it was."""
        before = self.world.rows(self._spark, DECISIONS_TABLE)
        with pytest.raises(PySparkException) as failed:
            self.read()
        assert self.world.rows(self._spark, DECISIONS_TABLE) == before
        error = stopping_error(str(failed.value), self.world.kafka)
        assert isinstance(error, LogContinuityError)
        return str(error)


@pytest.fixture
def log(world: PipelineWorld, spark: SparkSession) -> Log:
    """Without records."""
    return Log(world, spark)


@pytest.mark.parametrize("seq", [2, 4])
def test_a_log_that_is_not_continued_stops_the_pipeline(log: Log, seq: int) -> None:
    """A decision that is there twice, or missing; also after an aborted one, and behind foreign records."""
    log.append(numbered(SMALL, SMALL))
    assert log.read() == [1, 2]
    log.world.send_in_transaction(DECISIONS, records_of([replace(SMALL, seq=Seq(3))]), commit=False)
    log.world.send(DECISIONS, b"3", b"garbage")
    log.append([replace(SMALL, seq=Seq(seq))])
    told = log.refused()
    assert f"decision 3 is due, and decision {seq} is there. 'controlplane log verify' says" in told
    assert told.startswith("decisions[0]@")
    assert told.endswith("docs/how-to/mend-the-pipeline.md has the steps")


def test_the_table_begins_with_the_first_decision_that_kafka_has_whole(log: Log) -> None:
    """The log may begin within a decision, and batches before the next one have none."""
    log.append(numbered(LARGE, SMALL, LARGE))
    assert len(encode_decision(LARGE, PART_BYTES)) > 4
    log.forget(1)
    assert log.read() == [2, 3]


@pytest.mark.parametrize("forgotten", [True, False])
def test_a_decision_without_its_first_parts_is_not_passed(log: Log, *, forgotten: bool) -> None:
    """It comes next in the table, and can never be written; that its parts were read in a batch before says nothing."""
    large = [replace(LARGE, seq=Seq(2))]
    log.append(numbered(SMALL))
    if forgotten:
        log.append(large, 0, 2)
    assert log.read() == [1]
    if forgotten:
        log.forget(4)
    log.append(large, 2)
    assert "part 2 of" in log.refused()
