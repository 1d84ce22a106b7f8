"""The tables that the pipeline makes of a recorded log, written without Spark."""

from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa

from controlplane.codec.framing import default_framing
from controlplane.config import DECISIONS, HEARTBEATS, INTENTS, MEMBERSHIP
from controlplane.core.cluster.policy import ClusterPolicy
from controlplane.core.values.identifiers import TopicPartition
from controlplane.ports import RawRecord
from streaming.contracts.records import DEAD_LETTERS_TABLE, DECISIONS_TABLE, TABLE_OF_TOPIC, TICKS_TABLE
from streaming.contracts.table import TableContract
from streaming.records.decision_rows import decision_rows
from streaming.records.decode import RawRow
from streaming.records.record_rows import record_rows, table_of
from streaming.records.tick_rows import PlacedTick, tick_rows
from streaming.tables.created_tables import create_missing
from streaming.tables.day_files import DayFiles, without_day
from streaming.tables.table_writer import TableWriter
from tests.helpers.recorded_log import RecordedLog
from tests.helpers.world import World

INPUTS = (HEARTBEATS, MEMBERSHIP, INTENTS)


def busy_world() -> World:
    """Joins, a death, orders, a namespace, and two changes of the leader."""
    world = World(ClusterPolicy(slot_count=8, moves_in_flight=1))
    world.admit("n1", "n2", "n3")
    world.ask("pin_slots", node="n1", slots="3", reason="it has the disk")
    world.take_over(7_500)
    world.run(4_000, ("n1", "n2"))
    world.ask("create_namespace", namespace="kv")
    world.take_over(500)
    world.admit("n4")
    world.run(2_000, ("n1", "n2", "n4"))
    return world


def write_inputs(folder: Path, topic: str, records: Iterable[RawRecord]) -> None:
    """Add the records of a topic to its tables, as one batch; what is refused has a dead letter only."""
    raw = [RawRow(*record[1:6]) for record in records]
    rows, ticks, _ = record_rows(topic, raw, default_framing())
    add_rows(folder, TABLE_OF_TOPIC[topic], rows)
    if topic == HEARTBEATS:
        add_ticks(folder, ticks)


def add_ticks(folder: Path, ticks: Iterable[PlacedTick]) -> None:
    """Add ticks to their table, as one batch."""
    add_rows(folder, TICKS_TABLE, table_of(list(tick_rows(ticks)), without_day(TICKS_TABLE)), dated_by="minute_ms")


def add_rows(folder: Path, contract: TableContract, rows: pa.Table, dated_by: str = "append_time_ms") -> None:
    """Add rows to a table of history, as its writer does."""
    table = TableWriter(folder, contract, "test")
    files = DayFiles(table.folder, contract, dated_by)
    files.write(rows)
    table.append_files(files.close(), 1)


def write_tables(folder: Path, log: RecordedLog, refused: Iterable[RawRecord] = ()) -> None:
    """What the pipeline writes of a log."""
    create_missing(folder, bucket_count=2)
    for topic in INPUTS:
        records = [record for place, records in log.records.items() if place.topic == topic for record in records]
        write_inputs(folder, topic, records)
    written = log.records[TopicPartition(DECISIONS, 0)]
    parts = (RawRow(each.partition, each.offset, each.append_time_ms, each.key, each.value) for each in written)
    rows = [dict(zip(DECISIONS_TABLE.columns, row, strict=True)) for row in decision_rows(parts)]
    TableWriter(folder, DECISIONS_TABLE, "test").append(rows, 1)
    letters = [dead_letter_row(number, record) for number, record in enumerate(refused)]
    TableWriter(folder, DEAD_LETTERS_TABLE, "test").append(letters, 1)


def dead_letter_row(number: int, record: RawRecord) -> dict[str, Any]:
    """The row of a leader's dead letter."""
    day = datetime.fromtimestamp(record.append_time_ms / 1_000, UTC).date()
    source = (record.topic, record.partition, record.offset, record.append_time_ms)
    row = ("dead-letters", 0, number, record.append_time_ms, day, "truncated", "", *source, "c1", b"", 4)
    return dict(zip(DEAD_LETTERS_TABLE.columns, row, strict=True))
