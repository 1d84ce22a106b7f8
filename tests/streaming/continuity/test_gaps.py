"""What Kafka no longer has when a stream starts: found, told, recorded and passed once; on a real broker."""

import shutil
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient
from prometheus_client import CollectorRegistry
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

from controlplane.adapters.kafka_admin import apply_topics
from controlplane.bootstrap.connections import kept_offsets, topic_id
from controlplane.bootstrap.topics import topic_specs
from controlplane.config import DECISIONS, HEARTBEATS, LOAD_REPORTS, MEMBERSHIP, ClusterConfig, KafkaConfig
from controlplane.errors import LogContinuityError, PrerequisiteError
from streaming.config import PipelineConfig, SparkConfig
from streaming.continuity.checkpoints import Checkpoint, make_checkpoint, move_aside, read_checkpoint
from streaming.continuity.gaps import (
    Gap,
    GapsTable,
    check_continuity,
    gaps_between,
    refuse_recreated,
    unrecorded,
    written_up_to,
)
from streaming.contracts.gaps import GAPS_TABLE
from streaming.contracts.loads import BROKER_LOAD_TABLE
from streaming.contracts.records import HEARTBEATS_TABLE, LOAD_REPORTS_TABLE, MEMBERSHIP_TABLE, TICKS_TABLE
from streaming.jobs.records import start_records
from streaming.metrics import PipelineMetrics
from streaming.tables.created_tables import create_missing
from streaming.tables.stored_table import StoredTable
from streaming.tables.table_writer import TableWriter
from tests.helpers.local_paths import local
from tests.helpers.pipeline_world import PipelineWorld, read_all
from tests.helpers.polling import poll_until
from tests.streaming.records.test_record_streams import heartbeat

PARTITION = 3
NOW_MS = 1_700_000_000_000


class Stream:
    """The stream of heartbeats, all in one partition, and the retention of Kafka."""

    def __init__(self, world: PipelineWorld, spark: SparkSession) -> None:
        self._world = world
        self._spark = spark
        self.config = world.config()
        self._topic = world.cluster.topic(HEARTBEATS)

    def send(self, *numbers: int) -> None:
        """Append heartbeats that are told apart by these numbers, which are their offsets."""
        for number in numbers:
            self._world.send(HEARTBEATS, *heartbeat("node-1", number), partition=PARTITION)

    def forget(self, before: int) -> None:
        """Let Kafka delete the records before an offset."""
        admin = AdminClient({"bootstrap.servers": self._world.kafka.bootstrap_servers})
        for deletion in admin.delete_records([TopicPartition(self._topic, PARTITION, before)]).values():
            deletion.result(20)
        poll_until(lambda: self._kept()[PARTITION].start == before)

    def check(self, *, accepts_gap: bool = False) -> None:
        """What a start does first."""
        its_id = topic_id(self._world.cluster, self._world.kafka, HEARTBEATS)
        check_continuity(self.config, HEARTBEATS, self._kept(), NOW_MS, accepts_gap=accepts_gap, topic_id=its_id)

    def recreate_topic(self) -> None:
        """Delete the topic, and make it again."""
        admin = AdminClient({"bootstrap.servers": self._world.kafka.bootstrap_servers})
        admin.delete_topics([self._topic])[self._topic].result(20)
        poll_until(lambda: self._topic not in admin.list_topics(timeout=20).topics)
        apply_topics(self._world.kafka.bootstrap_servers, self._world.cluster.name, topic_specs(), {}, least_copies=1)

    def run(self) -> None:
        """Read all there is, and stop."""
        read_all(partial(start_records, self._spark, self.config, HEARTBEATS, PipelineMetrics(CollectorRegistry())))

    def run_after_crash(self) -> None:
        """Repeat the batch that was planned and not committed, after which Spark fails once; and read on."""
        with suppress(StreamingQueryException):
            self.run()
        self.run()

    def numbers(self) -> list[int]:
        """What the table has."""
        return sorted(row["sent_at_ms"] for row in self._world.rows(self._spark, HEARTBEATS_TABLE))

    def gaps(self) -> list[tuple[int, ...]]:
        """Partition, first and last offset of the recorded gaps."""
        rows = StoredTable(self.config.tables_dir, GAPS_TABLE).rows().to_pylist()
        return sorted((row["partition"], row["first_offset"], row["last_offset"]) for row in rows)

    def checkpoint(self) -> Checkpoint:
        """As it is now."""
        found = read_checkpoint(local(self.config.checkpoint_dir(HEARTBEATS_TABLE.name)), self._topic)
        assert found is not None
        return found

    def _kept(self) -> dict[int, range]:
        return kept_offsets(self._world.cluster, self._world.kafka, HEARTBEATS)


@pytest.fixture
def stream(world: PipelineWorld, spark: SparkSession) -> Stream:
    """A stream that has read offsets 0 to 2."""
    made = Stream(world, spark)
    made.check()
    made.send(0, 1, 2)
    made.run()
    return made


def test_a_gap_is_passed_by_the_start_that_accepts_it_and_a_later_one_is_not(stream: Stream) -> None:
    """Also where Spark has planned a batch over it, and failed; what is behind the gap is in the table once."""
    stream.check()
    stream.send(3, 4, 5, 6)
    stream.forget(5)
    with pytest.raises(LogContinuityError, match=r"heartbeats\[3\]@3 to 4, .* Start with --accept-gap"):
        stream.check()
    with pytest.raises(StreamingQueryException, match="not available in Kafka any more"):
        stream.run()
    assert not stream.checkpoint().is_committed
    for _ in range(2):  # a crash before the checkpoint was moved: the second one records nothing
        stream.check(accepts_gap=True)
    stream.run_after_crash()
    assert (stream.numbers(), stream.gaps()) == ([0, 1, 2, 5, 6], [(PARTITION, 3, 4)])
    stream.check()
    stream.send(7, 8)
    stream.forget(8)
    with pytest.raises(LogContinuityError, match=r"heartbeats\[3\]@7 to 7"):
        stream.check()
    with pytest.raises(StreamingQueryException, match="not available in Kafka any more"):
        stream.run()


def test_a_planned_batch_that_is_in_the_table_is_no_gap(stream: Stream) -> None:
    """Killed between the table's commit and the checkpoint's: only what the table does not have is recorded."""
    stream.send(3, 4)
    stream.run()
    commits = local(stream.config.checkpoint_dir(HEARTBEATS_TABLE.name)) / "commits"
    for name in ("1", ".1.crc"):
        (commits / name).unlink()
    stream.send(5, 6, 7)
    stream.forget(7)
    with pytest.raises(LogContinuityError, match=r"heartbeats\[3\]@5 to 6"):
        stream.check()
    stream.check(accepts_gap=True)
    assert stream.gaps() == [(PARTITION, 5, 6)]
    stream.run_after_crash()
    assert stream.numbers() == [0, 1, 2, 3, 4, 7]


def test_nothing_is_to_be_accepted_where_the_table_has_all_that_is_lost(stream: Stream) -> None:
    """Its last batch is written and not committed, and Kafka has forgotten just that."""
    commits = local(stream.config.checkpoint_dir(HEARTBEATS_TABLE.name)) / "commits"
    for name in ("0", ".0.crc"):
        (commits / name).unlink()
    stream.forget(3)
    stream.check()
    stream.send(3)
    stream.run_after_crash()
    assert (stream.numbers(), stream.gaps()) == ([0, 1, 2, 3], [])


def test_the_first_batch_may_be_the_one_that_is_lost(world: PipelineWorld, spark: SparkSession) -> None:
    """It was planned, and never committed: where it begins is in another file."""
    stream = Stream(world, spark)
    stream.send(0, 1)
    stream.run()
    shutil.rmtree(local(stream.config.checkpoint_dir(HEARTBEATS_TABLE.name)) / "commits")
    stream.send(2, 3)
    stream.forget(3)
    with pytest.raises(LogContinuityError, match=r"heartbeats\[3\]@2 to 2"):
        stream.check()
    stream.check(accepts_gap=True)
    stream.run_after_crash()
    assert (stream.numbers(), stream.gaps()) == ([0, 1, 3], [(PARTITION, 2, 2)])


def test_a_stream_may_be_stopped_before_its_first_batch(world: PipelineWorld, spark: SparkSession) -> None:
    """Spark had written where it was to begin, and nothing else: what Kafka loses from there on is a gap as well."""
    stream = Stream(world, spark)
    stream.run()  # the topic is empty
    for table in (HEARTBEATS_TABLE, TICKS_TABLE):
        shutil.rmtree(local(world.tables_dir) / table.name)
    create_missing(world.tables_dir, bucket_count=2)
    checkpoint = local(stream.checkpoint().folder)
    for name in ("offsets", "commits"):
        shutil.rmtree(checkpoint / name)
    stream.check()
    assert stream.checkpoint().batch is None
    stream.send(0, 1, 2)
    stream.forget(2)
    with pytest.raises(LogContinuityError, match=r"heartbeats\[3\]@0 to 1, .* before its first batch\. Start with"):
        stream.check()
    stream.check(accepts_gap=True)
    stream.run()
    assert (stream.numbers(), stream.gaps()) == ([2], [(PARTITION, 0, 1)])


def test_a_checkpoint_that_is_made_anew_goes_on_from_its_offsets(stream: Stream, world: PipelineWorld) -> None:
    """Spark takes it for its own, and Delta its batches for new ones; the former one is kept."""
    former = stream.checkpoint()
    kept = move_aside(former.folder)
    make_checkpoint(former.folder, world.cluster.topic(HEARTBEATS), former.end)
    stream.send(3)
    stream.check()
    stream.run()
    assert stream.numbers() == [0, 1, 2, 3]
    assert stream.checkpoint().query_id != former.query_id
    assert kept is not None
    assert read_checkpoint(kept, world.cluster.topic(HEARTBEATS)) == replace(former, folder=kept)


def test_damaged_checkpoints_are_told(stream: Stream, world: PipelineWorld) -> None:
    """What a full disk or a wrong hand leaves; each of them by its file, before Spark sees it."""
    stream.send(3)
    stream.run()
    whole = local(stream.checkpoint().folder)
    assert stream.checkpoint().end[PARTITION] == 4

    def cut(name: str, count: int) -> Callable[[], object]:
        return lambda: (whole / name).write_bytes((whole / name).read_bytes()[:count])

    damages: dict[str, Callable[[], object]] = {
        r"offsets/1 is empty": cut("offsets/1", 0),
        r"offsets/1 does not have the sum": cut("offsets/1", 400),
        r"commits/1 is empty": cut("commits/1", 0),
        r"metadata is no JSON": lambda: (whole / "metadata").write_bytes(b"rubbish"),
        r"offsets ends with 1 and commits with 3": lambda: (whole / "commits" / "3").write_bytes(b"v1\n{}"),
        r"offsets is empty": lambda: shutil.rmtree(whole / "offsets"),
    }
    (whole / ".metadata.crc").unlink()
    kept = whole.with_name("kept")
    shutil.copytree(whole, kept)
    for told, damage in damages.items():
        damage()
        with pytest.raises(PrerequisiteError, match=rf"{told}.*docs/how-to/mend-the-pipeline.md"):
            stream.check()
        shutil.rmtree(whole)
        shutil.copytree(kept, whole)
    (whole / "offsets" / ".1.crc").unlink()
    for count, told in ((2, "cut off"), (len((whole / "offsets" / "1").read_bytes()) - 3, "no JSON")):
        cut("offsets/1", count)()
        with pytest.raises(PrerequisiteError, match=told):
            read_checkpoint(whole, world.cluster.topic(HEARTBEATS))
        shutil.copy(kept / "offsets" / "1", whole / "offsets" / "1")
    with pytest.raises(PrerequisiteError, match=r"of .*heartbeats, not of another"):
        read_checkpoint(whole, "another")


@pytest.mark.parametrize("topic", [HEARTBEATS, LOAD_REPORTS, MEMBERSHIP])
def test_a_batch_is_written_when_every_table_of_its_stream_has_it(tables_dir: Path, topic: str) -> None:
    """Of load reports also the averages and the dead letters, which are written before ``broker_load``."""
    config = PipelineConfig(ClusterConfig("c"), KafkaConfig("nowhere:1"), tables_dir, SparkConfig(jars=()))
    checkpoint = Checkpoint(tables_dir, "app", 1, {0: 2}, {0: 4}, is_committed=False, planned_at_ms=1, topic_id=None)
    tables = {HEARTBEATS: (HEARTBEATS_TABLE, TICKS_TABLE), LOAD_REPORTS: (LOAD_REPORTS_TABLE, BROKER_LOAD_TABLE)}
    for table in tables.get(topic, (MEMBERSHIP_TABLE,)):
        assert written_up_to(config, topic, checkpoint) == checkpoint.begin
        TableWriter(tables_dir, table, "app").append((), 1)
    assert written_up_to(config, topic, checkpoint) == checkpoint.end


def test_a_gap_in_the_decisions_is_not_passed(world: PipelineWorld) -> None:
    """What they changed is unknown, and present rows would be wrong without a sign."""
    config = world.config()
    make_checkpoint(local(config.checkpoint_dir(DECISIONS)), world.cluster.topic(DECISIONS), {0: 5})
    with pytest.raises(LogContinuityError, match=r"decisions\[0\]@5 to 8, .* --accept-gap does not pass them"):
        check_continuity(config, DECISIONS, {0: range(9, 12)}, NOW_MS, accepts_gap=True, topic_id=None)


@pytest.mark.parametrize(("kept", "told"), [({0: range(4)}, "ends at offset 4"), ({}, "is gone")])
def test_a_recreated_topic_is_not_passed(world: PipelineWorld, kept: dict[int, range], told: str) -> None:
    """What is in it now is not the continuation of the tables, whatever is accepted."""
    config = world.config()
    make_checkpoint(local(config.checkpoint_dir(HEARTBEATS_TABLE.name)), world.cluster.topic(HEARTBEATS), {0: 5})
    with pytest.raises(LogContinuityError, match=rf"heartbeats\[0\] {told} in Kafka, but the stream goes on at 5"):
        check_continuity(config, HEARTBEATS, kept, NOW_MS, accepts_gap=True, topic_id=None)


def test_a_topic_that_was_made_again_is_told_by_its_id(stream: Stream) -> None:
    """It has more records than were read, so its offsets look like what follows."""
    stream.recreate_topic()
    stream.send(10, 11, 12, 13, 14)
    with pytest.raises(LogContinuityError, match=r"heartbeats has the id \S+ in Kafka, .*mend-the-pipeline\.md"):
        stream.check(accepts_gap=True)
    assert stream.numbers() == [0, 1, 2]


def test_gaps_are_between_the_next_offset_and_the_first_that_is_kept() -> None:
    """A partition that was added later is read from its first record."""
    kept = {0: range(5, 9), 1: range(4, 4), 2: range(2, 3), 3: range(7)}
    found = gaps_between(HEARTBEATS, {0: 5, 1: 3}, kept)
    assert found == [Gap(HEARTBEATS, 1, range(3, 4)), Gap(HEARTBEATS, 2, range(2))]
    assert str(found[0]) == "heartbeats[1]@3 to 3"
    refuse_recreated(HEARTBEATS, {0: 9, 1: 4}, kept)


def test_recorded_gaps_do_not_overlap(world: PipelineWorld) -> None:
    """A gap that has grown before the stream went on is recorded by its rest."""
    table = GapsTable(world.tables_dir)
    for stop in (4, 4, 6):
        table.record([Gap(HEARTBEATS, 0, range(2, stop)), Gap(HEARTBEATS, 1, range(1))], 1, NOW_MS)
    spans = [(gap.partition, gap.offsets) for gap in table.recorded(HEARTBEATS)]
    assert spans == [(0, range(2, 4)), (0, range(4, 6)), (1, range(1))]
    assert table.recorded(DECISIONS) == []
    later = Gap(HEARTBEATS, 0, range(9, 12))
    assert unrecorded(later, table.recorded(HEARTBEATS)) == later
