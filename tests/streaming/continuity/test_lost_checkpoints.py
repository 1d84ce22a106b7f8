"""A checkpoint and tables that do not belong together keep the pipeline from starting."""

import shutil
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from controlplane.config import DECISIONS, HEARTBEATS, LOAD_REPORTS, MEMBERSHIP, ClusterConfig, KafkaConfig
from controlplane.core.membership.inputs import Tick
from controlplane.errors import PrerequisiteError
from streaming.config import PipelineConfig, SparkConfig
from streaming.continuity.checkpoints import make_checkpoint
from streaming.continuity.lost_checkpoints import refuse_lost_checkpoints
from streaming.contracts.loads import BROKER_LOAD_TABLE, BUNDLE_LOAD_TABLE
from streaming.contracts.records import DECISIONS_TABLE, MEMBERSHIP_TABLE, TABLE_OF_TOPIC, TICKS_TABLE, tables_of
from streaming.contracts.table import TableContract
from streaming.records.tick_rows import PlacedTick
from streaming.tables.created_tables import create_missing
from streaming.tables.table_writer import TableWriter
from tests.helpers.local_paths import local
from tests.helpers.log_tables import add_ticks
from tests.helpers.membership_rows import add_membership_rows
from tests.helpers.pipeline_world import PipelineWorld


def test_lost_checkpoint_is_refused(world: PipelineWorld) -> None:
    """Without its checkpoint a stream would begin again and add every row a second time, in silence."""
    config = world.config()
    refuse_lost_checkpoints(config)
    add_membership_rows(world.tables_dir, 1)
    with pytest.raises(PrerequisiteError, match=r"membership .* its checkpoint .* is gone"):
        refuse_lost_checkpoints(config)
    checkpoint = local(config.checkpoint_dir(MEMBERSHIP_TABLE.name))
    checkpoint.mkdir(parents=True)
    (checkpoint / "metadata").write_text('{"id":"app"}', encoding="utf-8")
    with pytest.raises(PrerequisiteError, match=r"membership .* its checkpoint .* is gone"):
        refuse_lost_checkpoints(config)
    shutil.rmtree(checkpoint)
    made = make_checkpoint(checkpoint, world.cluster.topic(MEMBERSHIP), {0: 1})
    with pytest.raises(PrerequisiteError, match=r"membership .* is not the one with which it was written"):
        refuse_lost_checkpoints(config)
    TableWriter(world.tables_dir, MEMBERSHIP_TABLE, made).append_files((), 0)
    refuse_lost_checkpoints(config)
    TableWriter(world.tables_dir, MEMBERSHIP_TABLE, made).append_files((), 1)
    with pytest.raises(PrerequisiteError, match=r"membership .* is older than it"):
        refuse_lost_checkpoints(config)
    shutil.rmtree(checkpoint)
    shutil.rmtree(local(world.tables_dir / MEMBERSHIP_TABLE.name))
    create_missing(world.tables_dir, bucket_count=2)
    add_ticks(world.tables_dir, [PlacedTick(0, 0, 0, Tick("c1", 0))])
    with pytest.raises(PrerequisiteError, match=r"ticks .* its checkpoint .*heartbeats is gone"):
        refuse_lost_checkpoints(config)


class Written:
    """A stream's checkpoint with batches that are committed, each of which is in every table of its topic."""

    def __init__(self, tables_dir: Path, topic: str, begin: int = 7, batches: int = 3) -> None:
        self.folder = tables_dir
        self.config = PipelineConfig(ClusterConfig("c"), KafkaConfig("nowhere:1"), tables_dir, SparkConfig(jars=()))
        self.checkpoint = local(self.config.checkpoint_dir(TABLE_OF_TOPIC[topic].name))
        self.query_id = make_checkpoint(self.checkpoint, self.config.cluster.topic(topic), {0: begin})
        self.tables = tables_of(topic)
        for batch in range(batches):
            self.write(batch, *self.tables)
            self.note(batch, "offsets", "commits")

    def write(self, batch: int, *tables: TableContract) -> None:
        """A batch without rows, into some tables."""
        for table in tables:
            TableWriter(self.folder, table, self.query_id).append_files((), batch)

    def fold(self, batch: int, *tables: TableContract) -> None:
        """A batch that changes no averages."""
        for table in tables:
            TableWriter(self.folder, table, self.query_id).append((), batch)

    def note(self, batch: int, *names: str) -> None:
        """What Spark writes before and after a batch."""
        for name in names:
            if batch:
                shutil.copy(self.checkpoint / name / "0", self.checkpoint / name / str(batch))

    def empty(self, table: TableContract) -> None:
        """Move the table's folder away, and let the next start make it anew."""
        shutil.rmtree(self.folder / table.name)
        create_missing(self.folder, bucket_count=2)

    def refusal(self) -> str:
        """What a start says; empty if it takes the tables."""
        try:
            refuse_lost_checkpoints(self.config)
        except PrerequisiteError as error:
            return str(error)
        return ""

    @property
    def is_older(self) -> bool:
        """Whether a start says that a table is older than the checkpoint."""
        return f"is older than its checkpoint {self.checkpoint}: going on would leave records out" in self.refusal()


@pytest.mark.parametrize("topic", TABLE_OF_TOPIC)
def test_a_table_that_was_made_anew_beside_its_checkpoint_is_refused(tables_dir: Path, topic: str) -> None:
    """The stream would go on behind the checkpoint, and leave out all records before, in silence."""
    written = Written(tables_dir, topic)
    assert written.refusal() == ""
    written.empty(TABLE_OF_TOPIC[topic])
    assert written.is_older


@pytest.mark.parametrize("topic", [HEARTBEATS, MEMBERSHIP, LOAD_REPORTS])
def test_a_table_that_is_an_older_copy_is_refused(tables_dir: Path, tmp_path: Path, topic: str) -> None:
    """By the batches that are committed: the one in work is repeated."""
    written = Written(tables_dir, topic)
    written.note(3, "offsets")
    assert written.refusal() == ""
    written.write(3, *written.tables)
    assert written.refusal() == ""
    for table in written.tables:
        shutil.copytree(tables_dir / table.name, tmp_path / "copies" / table.name)
    written.write(4, *written.tables)
    written.note(4, "offsets", "commits")
    for table in written.tables:
        folder, copy, aside = (place / table.name for place in (tables_dir, tmp_path / "copies", tmp_path))
        assert written.refusal() == ""
        folder.rename(aside)
        copy.rename(folder)
        assert written.is_older
        shutil.rmtree(folder)
        aside.rename(folder)


@pytest.mark.parametrize("topic", [HEARTBEATS, DECISIONS])
def test_a_table_that_was_taken_back_is_refused(tables_dir: Path, topic: str) -> None:
    """Delta's RESTORE leaves the number of the newest batch as it was; also where maintenance follows."""
    written = Written(tables_dir, topic)
    for batch, table in enumerate(written.tables, start=3):
        there = DeltaTable(tables_dir / table.name)
        there.restore(there.version() - 1)
        assert there.transaction_version(written.query_id) == batch - 1
        there.vacuum(dry_run=False, full=True)
        assert "was taken back to an older version, and not its checkpoint" in written.refusal()
        written.write(batch, *written.tables)
        written.note(batch, "offsets", "commits")


@pytest.mark.parametrize("table", [BUNDLE_LOAD_TABLE, BROKER_LOAD_TABLE], ids=lambda table: table.name)
def test_a_table_of_loads_that_is_an_older_copy_is_refused(
    tables_dir: Path, tmp_path: Path, table: TableContract
) -> None:
    """Reports between the copy and the checkpoint would be missing in the averages; one that begins anew has none."""
    written = Written(tables_dir, LOAD_REPORTS)
    sentence = f"the table {table.name} in {tables_dir} is older than the checkpoint"
    written.fold(1, table)
    assert sentence in written.refusal()
    written.fold(2, BUNDLE_LOAD_TABLE, BROKER_LOAD_TABLE)
    assert written.refusal() == ""
    written.empty(table)
    assert written.refusal() == ""
    TableWriter(tables_dir, table, "the query of a former checkpoint").append((), 7)
    assert sentence in written.refusal()


def test_loads_may_be_those_of_a_former_checkpoint_until_the_first_batch(tables_dir: Path) -> None:
    """A checkpoint that is made anew leaves them as they are."""
    written = Written(tables_dir, LOAD_REPORTS, batches=1)
    for table in (BUNDLE_LOAD_TABLE, BROKER_LOAD_TABLE):
        TableWriter(tables_dir, table, "the query of a former checkpoint").append((), 7)
    assert written.refusal() == ""


def test_a_second_table_may_be_newer_than_its_checkpoint(tables_dir: Path) -> None:
    """It came with an upgrade, or was moved away: it begins with the next batch."""
    written = Written(tables_dir, HEARTBEATS)
    written.empty(TICKS_TABLE)
    assert written.refusal() == ""


def test_decisions_of_an_earlier_version_are_told_by_their_own_numbers(tables_dir: Path) -> None:
    """Batches without decisions left none in the table, also that of a topic that had no record yet."""
    written = Written(tables_dir, DECISIONS)
    written.note(3, "offsets", "commits")
    assert written.refusal() == ""
    shutil.rmtree(written.checkpoint)
    written.empty(DECISIONS_TABLE)
    assert Written(tables_dir, DECISIONS, begin=0).refusal() == ""
    written.empty(DECISIONS_TABLE)
    assert written.refusal() == ""


def test_checkpoints_are_compared_with_tables_that_are_opened_once(
    tables_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In an object store each time is several requests."""
    opened: list[str] = []
    init = DeltaTable.__init__

    def noted(table: DeltaTable, place: str, **how: Any) -> None:  # noqa: ANN401 - passed on
        opened.append(Path(place).name)
        init(table, place, **how)

    monkeypatch.setattr(DeltaTable, "__init__", noted)
    config = PipelineConfig(ClusterConfig("test"), KafkaConfig("nowhere:1"), tables_dir, SparkConfig(jars=()))
    refuse_lost_checkpoints(config)
    assert sorted(opened) == sorted(table.name for topic in TABLE_OF_TOPIC for table in tables_of(topic))
