"""The stream of decisions on a real broker and a real table: every decision once, also when batches cut them."""

from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace

import pytest
from prometheus_client import CollectorRegistry
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from controlplane.codec.decisions import decision_key, encode_decision
from controlplane.config import DECISIONS
from controlplane.core.log.decision import Decision
from controlplane.core.values.identifiers import Seq
from controlplane.errors import LogContinuityError
from streaming.contracts.records import DECISIONS_TABLE
from streaming.jobs.decision_log import DecisionLogWriter, start_decisions
from streaming.jobs.restarts import stopping_error
from streaming.metrics import PipelineMetrics
from streaming.sql.local import LocalEngine
from streaming.tables.driver_tables import DriverTable
from tests.golden.samples import sample_of
from tests.helpers.pipeline_world import PipelineWorld, read_all

LARGE = sample_of(Decision, "everything")
SMALL = sample_of(Decision, "positions only")
PART_BYTES = 700


def numbered(*decisions: Decision) -> list[Decision]:
    """The decisions with seq 1, 2, ..."""
    return [replace(decision, seq=Seq(number)) for number, decision in enumerate(decisions, start=1)]


def batch_of(spark: SparkSession, values: Sequence[bytes | None]) -> DataFrame:
    """Records of the log, from offset 0 on."""
    rows = [(0, offset, 1_000, None, value) for offset, value in enumerate(values)]
    return spark.createDataFrame(rows, "partition int, offset long, append_time_ms long, key binary, value binary")


def test_stream_keeps_every_decision_once(spark: SparkSession, world: PipelineWorld) -> None:
    """Decisions in parts, batches of three, a restart, an aborted rival, foreign records: the table holds the log."""
    decisions = numbered(SMALL, LARGE, SMALL, LARGE)

    def records(chosen: Sequence[Decision]) -> list[tuple[bytes, bytes]]:
        return [(decision_key(each.seq), value) for each in chosen for value in encode_decision(each, PART_BYTES)]

    def disturb() -> None:
        """Others write into the log: what looks like a newer version's, garbage, nothing, a decision of another log."""
        world.send(DECISIONS, b"700", b"\xc3\x01" + b"12345678")
        for value in (b"garbage", None, encode_decision(replace(SMALL, log_id="another"))[0]):
            world.send(DECISIONS, b"\xff", value)

    registry = CollectorRegistry()
    metrics = PipelineMetrics(registry)
    config = world.config(max_records_per_batch=3)
    world.send_in_transaction(DECISIONS, records(decisions[:2]), commit=True)
    disturb()
    world.send_in_transaction(DECISIONS, records(numbered(LARGE)), commit=False)
    read_all(lambda: start_decisions(spark, config, metrics))
    disturb()
    world.send_in_transaction(DECISIONS, records(decisions[2:]), commit=True)
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
    with closing(LocalEngine(world.warehouse_dir)) as engine:
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
        DecisionLogWriter(world.config(), PipelineMetrics(registry)).write(batch, "app", 1)
        labels = {"stream": DECISIONS_TABLE.name}
        passed_over.append(registry.get_sample_value("controlplane_pipeline_passed_over_records_total", labels))
    assert [row["seq"] for row in world.rows(spark, DECISIONS_TABLE)] == [1, 2]
    assert passed_over == [1, 0]


@pytest.mark.parametrize("values", [[], [b"foreign", None]])
def test_a_batch_without_decisions_leaves_its_number(
    spark: SparkSession, world: PipelineWorld, values: list[bytes | None]
) -> None:
    """Such as one of aborted transactions alone: a table without its number is older than the checkpoint."""
    writer = DecisionLogWriter(world.config(), PipelineMetrics(CollectorRegistry()))
    writer.write(batch_of(spark, values), "app", 0)
    table = DriverTable(world.warehouse_dir, DECISIONS_TABLE, "app")
    assert (table.written_version, table.is_empty) == (0, True)


def test_decisions_that_do_not_follow_the_table_are_not_written(spark: SparkSession, world: PipelineWorld) -> None:
    """The table is an older copy, so that its checkpoint is ahead: decisions would be left out."""
    values = [part for decision in numbered(SMALL, LARGE, SMALL) for part in encode_decision(decision)]
    first, _, *later = values
    writer = DecisionLogWriter(world.config(), PipelineMetrics(CollectorRegistry()))
    writer.write(batch_of(spark, [first]), "app", 0)
    again = DecisionLogWriter(world.config(), PipelineMetrics(CollectorRegistry()))
    with pytest.raises(LogContinuityError, match=r"decisions .* ends with decision 1, .* decision 3: .* rebuild-check"):
        again.write(batch_of(spark, [b"foreign", *later]), "app", 2)
    assert [row["seq"] for row in world.rows(spark, DECISIONS_TABLE)] == [1]


def test_a_missing_part_stops_the_pipeline(spark: SparkSession, world: PipelineWorld) -> None:
    """The executor's error is known by its name: another start would meet it again."""
    first, _, *others = encode_decision(LARGE, PART_BYTES)
    batch = batch_of(spark, [first, *others])
    with pytest.raises(PySparkException) as failed:
        DecisionLogWriter(world.config(), PipelineMetrics(CollectorRegistry())).write(batch, "app", 1)
    assert isinstance(stopping_error(str(failed.value), world.kafka), LogContinuityError)
    assert world.rows(spark, DECISIONS_TABLE) == []
