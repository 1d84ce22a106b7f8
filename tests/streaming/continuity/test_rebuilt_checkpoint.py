"""A checkpoint made anew from tables of which some have the newest batch and some have not."""

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from deltalake import DeltaTable

from controlplane.codec.framing import default_framing
from controlplane.config import HEARTBEATS, ClusterConfig
from controlplane.core.values.identifiers import TopicPartition
from controlplane.errors import LogContinuityError, PrerequisiteError
from controlplane.ports import RawRecord
from streaming.continuity.checkpoints import (
    make_checkpoint,
    move_aside,
    read_checkpoint,
    store_topic_id,
    stored_topic_id,
)
from streaming.continuity.rebuilt_checkpoint import RebuiltCheckpoint, rebuild_checkpoint
from streaming.continuity.stored_offsets import stored_offsets
from streaming.contracts.records import HEARTBEATS_TABLE, TICKS_TABLE, tables_of
from streaming.contracts.table import TableContract
from streaming.records.decode import RawRow
from streaming.records.record_rows import record_rows, table_of
from streaming.records.tick_rows import tick_rows
from streaming.tables.created_tables import create_missing
from streaming.tables.day_files import DayFiles, without_day
from streaming.tables.table_writer import TableWriter
from tests.helpers.killed import KilledError
from tests.helpers.log_tables import busy_world
from tests.helpers.recorded_log import RecordedLog

CLUSTER = ClusterConfig("c")
LOG = RecordedLog(busy_world()).records
IDLE, OTHER, RECORDS = (LOG[TopicPartition(HEARTBEATS, partition)] for partition in (0, 1, 2))
"""Each has a heartbeat at offset 1 and ticks all the time; the last two have heartbeats behind offset 40, too."""
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
            table = TableWriter(folder, contract, query_id)
            files = DayFiles(table.folder, contract, dated_by)
            files.write(of_table)
            table.append_files(files.close(), batch)


def there(folder: Path, partition: int = 2) -> list[int]:
    """The offsets of a partition in both tables, as often as they are there."""
    tables = [stored_offsets(folder, table) for table in tables_of(HEARTBEATS)]
    return sorted(offset for each in tables for offset in each.within(HEARTBEATS, partition, range(100)).tolist())


class Damaged:
    """Tables of which some have the stream's newest batch, and a checkpoint that is damaged."""

    def __init__(
        self,
        folder: Path,
        written: Sequence[str],
        first: Sequence[RawRecord] = FIRST,
        second: Sequence[RawRecord] = SECOND,
    ) -> None:
        self.folder = folder
        self.topic_id: str | None = "first"
        self.checkpoint = folder / "_checkpoints" / "heartbeats"
        create_missing(folder, bucket_count=2)
        self.query_id = make_checkpoint(self.checkpoint, CLUSTER.topic(HEARTBEATS), {2: 0})
        write(folder, self.query_id, 4, first, ("heartbeats", "ticks"))
        write(folder, self.query_id, 5, second, written)
        (self.checkpoint / "offsets" / "0").write_bytes(b"")

    def rebuilt(self, kept: range = range(100)) -> int:
        """Where the stream goes on in the partition with a checkpoint that is made anew."""
        return self.rebuild({2: kept}).begin[2]

    def rebuild(self, kept: Mapping[int, range]) -> RebuiltCheckpoint:
        """Make the checkpoint anew."""
        made = rebuild_checkpoint(
            self.folder, self.checkpoint, CLUSTER, HEARTBEATS, lambda _: kept, lambda _: self.topic_id
        )
        anew = read_checkpoint(self.checkpoint, CLUSTER.topic(HEARTBEATS))
        assert anew is not None
        assert anew.begin == made.begin
        assert anew.query_id != self.query_id
        for table in tables_of(HEARTBEATS):
            assert not TableWriter(self.folder, table, anew.query_id).was_written_by_another
            assert TableWriter(self.folder, table, self.query_id).was_written_by_another
        self.query_id = anew.query_id
        return made


def test_a_batch_that_is_in_a_part_of_the_tables_is_read_again(tmp_path: Path) -> None:
    """The stream was killed before it wrote the ticks: nothing is lost or twice."""
    damaged = Damaged(tmp_path, ("heartbeats",))
    assert damaged.rebuilt() == FIRST[-1].offset + 1
    write(tmp_path, damaged.query_id, 1, SECOND, ("heartbeats", "ticks"))
    assert there(tmp_path) == [record.offset for record in RECORDS]


@pytest.mark.parametrize("is_aside", [False, True])
def test_which_topic_was_read_stays_known(tmp_path: Path, *, is_aside: bool) -> None:
    """Also after a crash behind the moving aside."""
    damaged = Damaged(tmp_path, ("heartbeats", "ticks"))
    store_topic_id(damaged.checkpoint, "first")
    if is_aside:
        move_aside(damaged.checkpoint)
    damaged.topic_id = None
    damaged.rebuilt()
    assert stored_topic_id(damaged.checkpoint) == "first"


def test_of_a_topic_that_was_made_again_nothing_is_taken_back(tmp_path: Path) -> None:
    """It has other records at the offsets of the batch that only one of the tables has."""
    damaged = Damaged(tmp_path, ("heartbeats",))
    store_topic_id(damaged.checkpoint, "former")
    before = there(tmp_path)
    with pytest.raises(LogContinuityError, match="heartbeats has the id first in Kafka"):
        damaged.rebuilt()
    assert (there(tmp_path), damaged.checkpoint.exists()) == (before, True)


def test_a_batch_that_is_in_all_tables_stays(tmp_path: Path) -> None:
    """Kafka may not have it any more."""
    damaged = Damaged(tmp_path, ("heartbeats", "ticks"))
    assert damaged.rebuilt(range(90, 100)) == SECOND[-1].offset + 1
    assert there(tmp_path) == [record.offset for record in RECORDS]


def test_a_batch_that_kafka_has_forgotten_stays(tmp_path: Path) -> None:
    """What the tables have of it is all that is left."""
    damaged = Damaged(tmp_path, ("heartbeats",))
    before = there(tmp_path)
    assert damaged.rebuilt(range(49, 100)) > 48, "a heartbeat"
    assert there(tmp_path) == before


def test_each_partition_counts_in_which_the_batch_has_rows(tmp_path: Path) -> None:
    """Kafka has forgotten earlier heartbeats of one in which the batch has ticks alone; another one begins with it."""
    damaged = Damaged(tmp_path, ("heartbeats",), [*IDLE[:40], *FIRST], [*IDLE[40:], *OTHER, *SECOND])
    made = damaged.rebuild({0: range(40, 100), 1: range(1, 100), 2: range(40, 100), 3: range(3, 100)})
    assert made.begin == {0: 40, 1: 1, 2: 40, 3: 3}
    write(tmp_path, damaged.query_id, 1, [*IDLE[40:], *OTHER[1:], *SECOND], ("heartbeats", "ticks"))
    assert there(tmp_path, 0) == [record.offset for record in IDLE]
    assert there(tmp_path, 1) == [record.offset for record in OTHER[1:]]
    assert there(tmp_path) == [record.offset for record in RECORDS]


@pytest.mark.parametrize("forgotten", [{1: range(2, 100)}, {2: range(49, 100)}, {1: range(60)}, {1: range(0)}])
def test_a_batch_of_which_kafka_has_forgotten_rows_of_one_partition_stays(
    tmp_path: Path, forgotten: dict[int, range]
) -> None:
    """Be it the first partition or another, one that begins with the batch, or one that was made again."""
    damaged = Damaged(tmp_path, ("heartbeats",), [*IDLE[:40], *FIRST], [*IDLE[40:], *OTHER, *SECOND])
    before = [there(tmp_path, partition) for partition in range(3)]
    damaged.rebuild(dict.fromkeys(range(3), range(100)) | forgotten)
    assert [there(tmp_path, partition) for partition in range(3)] == before


def test_a_crash_before_the_rows_are_taken_out_is_mended(tmp_path: Path) -> None:
    """The former checkpoint is aside, and still tells the id; without one no pipeline starts."""
    damaged = Damaged(tmp_path, ("heartbeats",))
    move_aside(damaged.checkpoint)
    assert not damaged.checkpoint.exists()
    assert damaged.rebuilt() == FIRST[-1].offset + 1


@pytest.mark.parametrize("older", tables_of(HEARTBEATS), ids=lambda table: table.name)
def test_a_table_that_was_restored_from_a_copy_takes_the_other_one_back(tmp_path: Path, older: TableContract) -> None:
    """The copies are of different times, by several batches: nothing is left out, and nothing is there twice."""
    damaged = Damaged(tmp_path / "delta", ("heartbeats", "ticks"), RECORDS[:20], RECORDS[20:40])
    folder, copy = damaged.folder / older.name, tmp_path / "copy"
    shutil.copytree(folder, copy)
    for batch, records in ((6, RECORDS[40:60]), (7, RECORDS[60:])):
        write(damaged.folder, damaged.query_id, batch, records, ("heartbeats", "ticks"))
    shutil.rmtree(folder)
    copy.rename(folder)
    assert damaged.rebuilt() == RECORDS[40].offset
    write(damaged.folder, damaged.query_id, 1, RECORDS[40:], ("heartbeats", "ticks"))
    assert there(damaged.folder) == [record.offset for record in RECORDS]


def test_a_table_that_was_made_anew_takes_the_other_one_back(tmp_path: Path) -> None:
    """Everything that Kafka has is read again."""
    damaged = Damaged(tmp_path, ("heartbeats", "ticks"))
    shutil.rmtree(tmp_path / "heartbeats")
    create_missing(tmp_path, bucket_count=2)
    assert damaged.rebuilt() == 0
    assert there(tmp_path) == []


def test_one_of_two_tables_that_another_program_took_back_is_refused(tmp_path: Path) -> None:
    """What it lacks of the other one's batches is unknown."""
    damaged = Damaged(tmp_path, ("heartbeats",))
    DeltaTable(tmp_path / "ticks").restore(0)
    with pytest.raises(PrerequisiteError, match=r"ticks .* was taken back .* of heartbeats and ticks from copies"):
        damaged.rebuilt()
    assert damaged.checkpoint.exists()


def test_a_crash_behind_the_taking_back_is_mended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is not taken for that of another program."""
    damaged = Damaged(tmp_path, ("heartbeats",))

    def killed(*_: object) -> str:
        raise KilledError

    with monkeypatch.context() as faults:
        faults.setattr("streaming.continuity.rebuilt_checkpoint.make_checkpoint", killed)
        with pytest.raises(KilledError):
            damaged.rebuilt()
    assert there(tmp_path) == [record.offset for record in FIRST]
    assert damaged.rebuilt() == FIRST[-1].offset + 1


def test_the_id_of_an_earlier_checkpoint_takes_nothing_back(tmp_path: Path) -> None:
    """The checkpoint that was made anew is gone as a whole, and the one before it still lies beside it.

    Under its id one table has a batch more than the other one, and both have many rows that were written since.
    """
    damaged = Damaged(tmp_path, ("heartbeats",))
    damaged.rebuilt()
    write(tmp_path, damaged.query_id, 1, SECOND, ("heartbeats", "ticks"))
    shutil.rmtree(damaged.checkpoint)
    assert damaged.rebuilt() == SECOND[-1].offset + 1
    assert there(tmp_path) == [record.offset for record in RECORDS]


def test_without_its_id_the_tables_are_taken_as_they_are(tmp_path: Path) -> None:
    """Nothing tells which batch was the newest."""
    folder, checkpoint = tmp_path / "delta", tmp_path / "delta" / "_checkpoints" / "heartbeats"
    create_missing(folder, bucket_count=2)
    write(folder, "any", 4, FIRST, ("heartbeats", "ticks"))
    kept = {2: range(100), 1: range(7, 9)}
    made = rebuild_checkpoint(folder, checkpoint, CLUSTER, HEARTBEATS, lambda _: kept, lambda _: None)
    assert made.begin == {2: FIRST[-1].offset + 1, 1: 7}
    assert made.former is None
