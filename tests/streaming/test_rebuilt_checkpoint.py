"""A checkpoint made anew from tables of which some have the newest batch and some have not."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from controlplane.codec.framing import default_framing
from controlplane.config import HEARTBEATS, ClusterConfig
from controlplane.core.values.identifiers import TopicPartition
from controlplane.ports import RawRecord
from streaming.checkpoints import make_checkpoint, read_checkpoint, stored_query_id
from streaming.contracts.records import HEARTBEATS_TABLE, TICKS_TABLE, tables_of
from streaming.created_tables import create_missing
from streaming.decode import RawRow
from streaming.driver_tables import DriverTable
from streaming.history_files import HistoryFiles
from streaming.rebuilt_checkpoint import rebuild_checkpoint
from streaming.stored_offsets import joined_extents, stored_offsets
from streaming.transforms.record_rows import record_rows, table_of, without_day
from streaming.transforms.tick_rows import tick_rows
from tests.helpers.log_tables import busy_world
from tests.helpers.recorded_log import RecordedLog

CLUSTER = ClusterConfig("c")
RECORDS = RecordedLog(busy_world()).records[TopicPartition(HEARTBEATS, 2)]
FIRST, SECOND = RECORDS[:40], RECORDS[40:]


def write(folder: Path, query_id: str, batch: int, records: Sequence[RawRecord], table_names: Sequence[str]) -> None:
    """What the stream writes of one batch into some of its tables."""
    raw = [RawRow(*record[1:6]) for record in records]
    rows, ticks, _ = record_rows(HEARTBEATS, raw, default_framing())
    of_ticks = table_of(list(tick_rows(ticks)), without_day(TICKS_TABLE))
    for contract, of_table, dated_by in (
        (HEARTBEATS_TABLE, rows, "append_time_ms"),
        (TICKS_TABLE, of_ticks, "minute_ms"),
    ):
        if contract.name in table_names:
            table = DriverTable(folder, contract, query_id)
            files = HistoryFiles(table.folder, contract, dated_by)
            files.write(of_table)
            table.append_files(files.close(), batch)


def there(folder: Path) -> list[int]:
    """The offsets in both tables, as often as they are there."""
    tables = [stored_offsets(folder, table) for table in tables_of(HEARTBEATS)]
    ends = joined_extents(each.extents(HEARTBEATS) for each in tables)
    return sorted(offset for each in tables for offset in each.within(HEARTBEATS, 2, range(ends[2].stop)).tolist())


@pytest.mark.parametrize(
    "written", [("heartbeats",), ("ticks",), ("heartbeats", "ticks")], ids=["one", "the other", "both"]
)
def test_a_batch_that_is_in_a_part_of_the_tables_is_read_again(tmp_path: Path, written: Sequence[str]) -> None:
    """Nothing is lost or twice, whichever tables have it."""
    folder, checkpoint = tmp_path / "delta", tmp_path / "delta" / "_checkpoints" / "heartbeats"
    create_missing(folder, bucket_count=2)
    make_checkpoint(checkpoint, CLUSTER.topic(HEARTBEATS), {2: 0})
    query_id = stored_query_id(checkpoint)
    assert query_id is not None
    write(folder, query_id, 4, FIRST, ("heartbeats", "ticks"))
    write(folder, query_id, 5, SECOND, written)
    (checkpoint / "offsets" / "0").write_bytes(b"")
    made = rebuild_checkpoint(folder, checkpoint, CLUSTER, HEARTBEATS, lambda _: {2: range(100)})
    assert made.begin == {2: FIRST[-1].offset + 1}
    assert made.former is not None
    anew = read_checkpoint(checkpoint, CLUSTER.topic(HEARTBEATS))
    assert anew is not None
    assert anew.begin == made.begin
    assert anew.query_id != query_id
    write(folder, anew.query_id, 1, SECOND, ("heartbeats", "ticks"))
    assert there(folder) == [record.offset for record in RECORDS]


def test_without_its_id_the_tables_are_taken_as_they_are(tmp_path: Path) -> None:
    """Nothing tells which batch was the newest."""
    folder, checkpoint = tmp_path / "delta", tmp_path / "delta" / "_checkpoints" / "heartbeats"
    create_missing(folder, bucket_count=2)
    write(folder, "any", 4, FIRST, ("heartbeats", "ticks"))
    made = rebuild_checkpoint(folder, checkpoint, CLUSTER, HEARTBEATS, lambda _: {2: range(100), 1: range(7, 9)})
    assert made.begin == {2: FIRST[-1].offset + 1, 1: 7}
    assert made.former is None
