"""The questions of docs/how-to/ask-the-tables.md, asked of a recorded history: both engines give the same answers."""

import random
import re
from collections.abc import Iterable, Iterator
from contextlib import closing
from datetime import date
from pathlib import Path
from typing import cast

import pytest
from pyspark.sql import SparkSession

from controlplane.core.bundles.load.averages import MessageLoad
from controlplane.core.bundles.load.reported_state import BundleSums, Position
from controlplane.core.bundles.load.resource_usage import ResourceWeights
from controlplane.core.bundles.load.view import Resources
from controlplane.core.intents.events import IntentAnswered
from controlplane.core.intents.intent import Intent
from controlplane.core.log.apply import apply_decision
from controlplane.core.log.decision import Decision
from controlplane.core.log.state import State
from controlplane.core.membership.events import NodeFenced
from controlplane.core.membership.inputs import Heartbeat, Tick
from controlplane.core.membership.node import NodeRole
from streaming.changes.follower import ChangesFollower
from streaming.contracts.loads import BROKER_LOAD_TABLE, BUNDLE_LOAD_TABLE
from streaming.contracts.records import (
    DEAD_LETTERS_TABLE,
    DECISIONS_TABLE,
    HEARTBEAT_COLUMNS,
    HEARTBEATS_TABLE,
    INTENT_COLUMNS,
    INTENTS_TABLE,
)
from streaming.contracts.table import TableContract
from streaming.load.state_rows import node_row
from streaming.load_history.follower import LoadHistoryFollower
from streaming.records.decision_rows import decision_rows
from streaming.records.tick_rows import PlacedTick
from streaming.sql.answers import QueryResult, plain
from streaming.sql.ddl import statements
from streaming.sql.local import LocalEngine
from streaming.sql.spark import SparkEngine
from streaming.tables.created_tables import create_missing
from streaming.tables.table_writer import TableWriter
from tests.helpers.decision_table import recorded
from tests.helpers.eventful import eventful_decisions
from tests.helpers.inline_tasks import InlineTasks
from tests.helpers.log_tables import add_ticks
from tests.helpers.membership_rows import add_membership_rows
from tests.helpers.pipeline_world import random_report
from tests.helpers.placed_report import PlacedReport
from tests.helpers.plain_load import PlainLoad, bundle_row
from tests.helpers.readme import ROOT
from tests.helpers.report_table import ReportTable

PAGE = ROOT / "docs" / "how-to" / "ask-the-tables.md"
TEXT = PAGE.read_text(encoding="utf-8")
QUESTIONS = [
    *re.findall(r"^\$ (controlplane sql) \"(.*)\"$", TEXT, re.MULTILINE),
    *re.findall(r"^## ([^\n]*)\?\n.*?```sql\n(.*?)```", TEXT, re.DOTALL | re.MULTILINE),
]
MORE_THAN_IT_HAD_TO = "Did a plan move more than it had to"
BUNDLE_IDS = [f"kv/0x{index}0000000_0x{index + 1}0000000" for index in range(6)]


@pytest.fixture(scope="module")
def asked_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the tables are."""
    return tmp_path_factory.mktemp("asked") / "delta"


@pytest.fixture(scope="module")
def history(spark: SparkSession, asked_folder: Path) -> Iterator[tuple[LocalEngine, SparkEngine]]:
    """Both engines over the tables of a small cluster to which something happened."""
    folder = asked_folder
    create_missing(folder, bucket_count=2)

    def write(rows: Iterable[tuple[object, ...]], table: TableContract) -> None:
        named = [dict(zip(table.columns, row, strict=True)) for row in rows]
        TableWriter(folder, table, "asked").append(named, 1)

    decisions = eventful_decisions()
    write(decision_rows(recorded(decisions)), DECISIONS_TABLE)
    follower = ChangesFollower(folder)
    assert sum(iter(follower.step, 0)) == len(decisions)
    write(asked_intents(decisions), INTENTS_TABLE)
    write([applied_epoch(node_id, each) for node_id in ("n1", "n2") for each in decisions[-3:]], HEARTBEATS_TABLE)
    ticks = [PlacedTick(0, 100 + number, 9_000 * number, Tick(f"c{number % 2}", 1)) for number in range(20)]
    add_ticks(folder, ticks[:5])
    add_ticks(folder, ticks[5:])
    reports = load_reports()
    ReportTable(folder).add(reports)
    LoadHistoryFollower(cast("SparkSession", InlineTasks()), folder, window_ms=5_000).step(10**13)
    loads = PlainLoad()
    loads.fold(reports, ResourceWeights())
    write(map(bundle_row, loads.bundles.values()), BUNDLE_LOAD_TABLE)
    sums = BundleSums(3, *2 * (MessageLoad(1.5, 2.5, 0.5, 0.25),))
    write((tuple(node_row(node._replace(sums=sums)).values()) for node in loads.nodes.values()), BROKER_LOAD_TABLE)
    add_membership_rows(folder, 3)
    places = [("dead-letters", 0, offset, 8, date(2026, 1, 2)) for offset in range(3)]
    sources = [("truncated", "detail", "heartbeats", 3, offset, offset + 5, "c1", b"\x00", 1) for offset in range(3)]
    write([(*place, *source) for place, source in zip(places, sources, strict=True)], DEAD_LETTERS_TABLE)
    with closing(LocalEngine(folder)) as local:
        yield local, SparkEngine(spark.newSession(), folder)


def asked_intents(decisions: Iterable[Decision]) -> Iterable[tuple[object, ...]]:
    """Rows of ``intents``: those that were answered, and one that was not."""
    answers = [event for decision in decisions for event in decision.events if isinstance(event, IntentAnswered)]
    intents = [Intent(each.intent_id, each.kind, each.principal, {"node": "n4"}) for each in answers]
    for offset, intent in enumerate([*intents, Intent("waiting", "drain_node", "tester", {})]):
        yield ("intents", 0, offset, 1_000 * offset, date(1970, 1, 1), *INTENT_COLUMNS.row(intent))


def applied_epoch(node_id: str, decision: Decision) -> tuple[object, ...]:
    """A row of ``heartbeats``: a node that has read the table up to a decision."""
    beat = Heartbeat(node_id, 1, 40_000, decision.epoch, NodeRole.DATA)
    return ("heartbeats", 0, decision.seq, 40_000 + decision.seq, date(1970, 1, 1), *HEARTBEAT_COLUMNS.row(beat))


def load_reports() -> list[PlacedReport]:
    """What two nodes have reported."""
    source, reports = random.Random(7), []
    for number in range(20):
        report = random_report(source, f"n{number % 2 + 1}", BUNDLE_IDS, number)
        resources = Resources(*(getattr(report, name) for name in Resources._fields))
        place = Position(1_000 * number, 0, number)
        reports.append(PlacedReport(place, report.node_id, 1, resources, "1", report.bundles))
    return reports


@pytest.fixture(scope="module")
def catalog(
    spark: SparkSession, history: tuple[LocalEngine, SparkEngine], asked_folder: Path
) -> Iterator[SparkSession]:
    """A session that knows the tables by the printed statements, and nothing of our commands."""
    session = spark.newSession()
    for _ in range(2):
        for statement in statements(asked_folder, "questions"):
            session.sql(statement)
    yield session
    session.sql("DROP SCHEMA questions CASCADE")


@pytest.mark.parametrize(
    "statement", [statement for _, statement in QUESTIONS], ids=[question for question, _ in QUESTIONS]
)
def test_plain_spark_answers_alike(
    catalog: SparkSession, history: tuple[LocalEngine, SparkEngine], statement: str
) -> None:
    """From a catalog, without our command."""
    found = catalog.sql(statement)
    rows = tuple(tuple(plain(value) for value in row) for row in found.collect())
    assert QueryResult(tuple(found.columns), rows) == history[0].run(statement)


def test_failures_are_counted_once(history: tuple[LocalEngine, SparkEngine]) -> None:
    """Each slot that a dead node led, however many heartbeats came later; the oracle is the log."""
    decisions = eventful_decisions()
    ((question, statement),) = [each for each in QUESTIONS if each[0].startswith("How long did each failure")]
    ((node_id, seq, silence_ms, slots, served, readable_ms),) = history[0].run(statement).rows
    (decision,) = [each for each in decisions if each.seq == seq]
    (fenced,) = [event for event in decision.events if isinstance(event, NodeFenced)]
    assert (node_id, silence_ms) == (fenced.node_id, fenced.silence_ms), question
    before = State()
    for each in decisions[: decisions.index(decision)]:
        before = apply_decision(before, each)
    led = [slot_id for slot_id, slot in before.slots.rows.items() if slot.leader == node_id]
    assert slots == served == len(led) > 1
    assert readable_ms == 40_000 + decision.seq - 1_000 * decisions.index(decision)


def test_the_page_has_questions() -> None:
    """A command, and one for each heading but the last, under which the tables are registered."""
    *asked, last = re.findall(r"^## (.+)$", TEXT, re.MULTILINE)
    assert [question for question, _ in QUESTIONS[1:]] == [each.removesuffix("?") for each in asked]
    assert len(asked) > 9
    assert not last.endswith("?")


@pytest.mark.parametrize(("question", "statement"), QUESTIONS, ids=[question for question, _ in QUESTIONS])
def test_both_engines_answer_alike(history: tuple[LocalEngine, SparkEngine], question: str, statement: str) -> None:
    """With rows, except where the page says that there are none."""
    local, spark = (engine.run(statement) for engine in history)
    assert local == spark
    assert bool(local.rows) == (question != MORE_THAN_IT_HAD_TO)
