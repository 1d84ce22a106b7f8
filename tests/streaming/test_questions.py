"""The questions of docs/how-to/ask-the-tables.md, asked of a recorded history: both engines give the same answers."""

import random
import re
import shutil
from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from controlplane.codec.decisions import encode_decision
from controlplane.core.bundles.load.averages import MessageLoad
from controlplane.core.bundles.load.reported_state import BundleSums, Position
from controlplane.core.bundles.load.resource_usage import ResourceWeights
from controlplane.core.bundles.load.view import Resources
from controlplane.core.cluster.policy import ClusterPolicy
from controlplane.core.log.decision import Decision
from controlplane.core.values.identifiers import Term
from streaming.load.rows import node_row
from streaming.sinks import BatchWriter
from streaming.sql.local import LocalEngine
from streaming.sql.spark import SparkEngine
from streaming.table_contracts import (
    BROKER_LOAD_TABLE,
    BUNDLE_LOAD_TABLE,
    DEAD_LETTERS_TABLE,
    DECISIONS_TABLE,
    MEMBERSHIP_TABLE,
    TableContract,
)
from streaming.transforms.decision_rows import LogRecord, decision_rows
from tests.helpers.membership_rows import membership_rows
from tests.helpers.pipeline_world import random_report
from tests.helpers.placed_report import PlacedReport
from tests.helpers.plain_load import PlainLoad, bundle_row
from tests.helpers.world import World

PAGE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "ask-the-tables.md"
TEXT = PAGE.read_text(encoding="utf-8")
QUESTIONS = [
    *re.findall(r"^\$ (controlplane sql) \"(.*)\"$", TEXT, re.MULTILINE),
    *re.findall(r"^## ([^\n]*)\?\n.*?```sql\n(.*?)```", TEXT, re.DOTALL | re.MULTILINE),
]
MORE_THAN_IT_HAD_TO = "Did a plan move more than it had to"
BUNDLE_IDS = [f"kv/0x{index}0000000_0x{index + 1}0000000" for index in range(6)]


@pytest.fixture(scope="module")
def history(
    spark: SparkSession, created_tables: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[LocalEngine, SparkEngine]]:
    """Both engines over the tables of a small cluster to which something happened."""
    folder = shutil.copytree(created_tables, tmp_path_factory.mktemp("asked") / "delta")
    writer = BatchWriter(spark, folder, "asked", 1)

    def write(rows: Iterable[tuple[object, ...]], table: TableContract) -> None:
        writer.append(spark.createDataFrame(list(rows), table.schema).coalesce(1), table)

    write(decision_rows(recorded(decisions())), DECISIONS_TABLE)
    loads = loaded()
    write(map(bundle_row, loads.bundles.values()), BUNDLE_LOAD_TABLE)
    sums = BundleSums(3, *2 * (MessageLoad(1.5, 2.5, 0.5, 0.25),))
    write((node_row(node._replace(sums=sums)) for node in loads.nodes.values()), BROKER_LOAD_TABLE)
    writer.append(membership_rows(spark, 3), MEMBERSHIP_TABLE)
    letters = spark.sql(
        "select 'dead-letters' topic, 0 partition, id offset, 8L append_time_ms, date'2026-01-02' day, "
        "'truncated' reason, 'detail' detail, 'heartbeats' source_topic, 3L source_partition, id source_offset, "
        "id + 5 source_append_time_ms, 'c1' writer, X'00' raw, 1L raw_length_bytes from range(3)"
    )
    writer.append(letters, DEAD_LETTERS_TABLE)
    with closing(LocalEngine(folder)) as local:
        yield local, SparkEngine(spark.newSession(), folder)


def decisions() -> list[Decision]:
    """Nodes join, one leaves, one falls silent, and another leader goes on."""
    world = World(ClusterPolicy(slot_count=64))
    world.admit("n1", "n2", "n3", "n4")
    world.leave("n4")
    world.run(3_000, ("n1", "n2", "n3"))
    world.run(6_000, ("n1", "n2"))
    world.open_term(Term(2))
    world.run(1_000, ("n1", "n2"))
    return world.decisions


def recorded(whole: Iterable[Decision]) -> list[LogRecord]:
    """The decisions as records of the log."""
    parts = [part for decision in whole for part in encode_decision(decision)]
    return [LogRecord(0, offset, 1_000 * offset, None, part) for offset, part in enumerate(parts)]


def loaded() -> PlainLoad:
    """What two nodes have reported."""
    source, state = random.Random(7), PlainLoad()
    for number in range(20):
        report = random_report(source, f"n{number % 2 + 1}", BUNDLE_IDS, number)
        resources = Resources(*(getattr(report, name) for name in Resources._fields))
        place = Position(1_000 * number, 0, number)
        state.fold([PlacedReport(place, report.node_id, 1, resources, "1", report.bundles)], ResourceWeights())
    return state


def test_the_page_has_questions() -> None:
    """A command, and one for each heading."""
    assert len(QUESTIONS) == 1 + TEXT.count("\n## ") > 9


@pytest.mark.parametrize(("question", "statement"), QUESTIONS, ids=[question for question, _ in QUESTIONS])
def test_both_engines_answer_alike(history: tuple[LocalEngine, SparkEngine], question: str, statement: str) -> None:
    """With rows, except where the page says that there are none."""
    local, spark = (engine.run(statement) for engine in history)
    assert local == spark
    assert bool(local.rows) == (question != MORE_THAN_IT_HAD_TO)
