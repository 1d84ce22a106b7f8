"""A checkpoint made anew from tables of which some have the newest batch and some have not."""

from collections.abc import Sequence
from pathlib import Path

from controlplane.codec.framing import default_framing
from controlplane.config import HEARTBEATS, ClusterConfig
from controlplane.core.values.identifiers import TopicPartition
from controlplane.ports import RawRecord
from streaming.continuity.checkpoints import make_checkpoint, move_aside, read_checkpoint
from streaming.continuity.rebuilt_checkpoint import rebuild_checkpoint
from streaming.continuity.stored_offsets import joined_extents, stored_offsets
from streaming.contracts.records import HEARTBEATS_TABLE, TICKS_TABLE, tables_of
from streaming.records.decode import RawRow
from streaming.records.record_rows import record_rows, table_of, without_day
from streaming.records.tick_rows import tick_rows
from streaming.tables.created_tables import create_missing
from streaming.tables.day_files import DayFiles
from streaming.tables.driver_tables import DriverTable
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
            files = DayFiles(table.folder, contract, dated_by)
            files.write(of_table)
            table.append_files(files.close(), batch)


def there(folder: Path) -> list[int]:
    """The offsets in both tables, as often as they are there."""
    tables = [stored_offsets(folder, table) for table in tables_of(HEARTBEATS)]
    ends = joined_extents(each.extents(HEARTBEATS) for each in tables)
    return sorted(offset for each in tables for offset in each.within(HEARTBEATS, 2, range(ends[2].stop)).tolist())


class Damaged:
    """Tables of which some have the stream's newest batch, and a checkpoint that is damaged."""

    def __init__(self, folder: Path, written: Sequence[str]) -> None:
        self.folder = folder
        self.checkpoint = folder / "_checkpoints" / "heartbeats"
        create_missing(folder, bucket_count=2)
        self.query_id = make_checkpoint(self.checkpoint, CLUSTER.topic(HEARTBEATS), {2: 0})
        write(folder, self.query_id, 4, FIRST, ("heartbeats", "ticks"))
        write(folder, self.query_id, 5, SECOND, written)
        (self.checkpoint / "offsets" / "0").write_bytes(b"")

    def rebuilt(self, kept: range = range(100)) -> int:
        """Where the stream goes on with a checkpoint that is made anew."""
        made = rebuild_checkpoint(self.folder, self.checkpoint, CLUSTER, HEARTBEATS, lambda _: {2: kept})
        anew = read_checkpoint(self.checkpoint, CLUSTER.topic(HEARTBEATS))
        assert anew is not None
        assert anew.begin == made.begin
        assert anew.query_id != self.query_id
        for table in tables_of(HEARTBEATS):
            assert not DriverTable(self.folder, table, anew.query_id).was_written_by_another
            assert DriverTable(self.folder, table, self.query_id).was_written_by_another
        self.query_id = anew.query_id
        return made.begin[2]


def test_a_batch_that_is_in_a_part_of_the_tables_is_read_again(tmp_path: Path) -> None:
    """The stream was killed before it wrote the ticks: nothing is lost or twice."""
    damaged = Damaged(tmp_path, ("heartbeats",))
    assert damaged.rebuilt() == FIRST[-1].offset + 1
    write(tmp_path, damaged.query_id, 1, SECOND, ("heartbeats", "ticks"))
    assert there(tmp_path) == [record.offset for record in RECORDS]


def test_a_batch_that_is_in_all_tables_stays(tmp_path: Path) -> None:
    """Kafka may not have it any more."""
    damaged = Damaged(tmp_path, ("heartbeats", "ticks"))
    assert damaged.rebuilt(range(90, 100)) == SECOND[-1].offset + 1
    assert there(tmp_path) == [record.offset for record in RECORDS]


def test_a_batch_that_kafka_has_forgotten_stays(tmp_path: Path) -> None:
    """What the tables have of it is all that is left."""
    damaged = Damaged(tmp_path, ("heartbeats",))
    before = there(tmp_path)
    assert damaged.rebuilt(range(SECOND[0].offset + 1, 100)) > SECOND[0].offset
    assert there(tmp_path) == before


def test_a_crash_before_the_rows_are_taken_out_is_mended(tmp_path: Path) -> None:
    """The former checkpoint is aside, and still tells the id; without one no pipeline starts."""
    damaged = Damaged(tmp_path, ("heartbeats",))
    move_aside(damaged.checkpoint)
    assert not damaged.checkpoint.exists()
    assert damaged.rebuilt() == FIRST[-1].offset + 1


def test_without_its_id_the_tables_are_taken_as_they_are(tmp_path: Path) -> None:
    """Nothing tells which batch was the newest."""
    folder, checkpoint = tmp_path / "delta", tmp_path / "delta" / "_checkpoints" / "heartbeats"
    create_missing(folder, bucket_count=2)
    write(folder, "any", 4, FIRST, ("heartbeats", "ticks"))
    made = rebuild_checkpoint(folder, checkpoint, CLUSTER, HEARTBEATS, lambda _: {2: range(100), 1: range(7, 9)})
    assert made.begin == {2: FIRST[-1].offset + 1, 1: 7}
    assert made.former is None
