"""Tables against a recorded log, without Kafka and Spark: what is whole passes, and each kind of loss is told."""

import json
import shutil
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path

import pytest
from deltalake import DeltaTable

from controlplane.bootstrap.connections import kept_by
from controlplane.codec.framing import default_framing
from controlplane.config import (
    DEAD_LETTERS,
    DECISIONS,
    HEARTBEATS,
    LOAD_REPORTS,
    MEMBERSHIP,
    ClusterConfig,
    KafkaConfig,
)
from controlplane.core.membership.inputs import Heartbeat, Tick
from controlplane.core.values.identifiers import TopicPartition
from controlplane.errors import LogUnavailableError
from controlplane.ports import RawRecord
from streaming.config import PipelineConfig, SparkConfig
from streaming.continuity import table_check as module
from streaming.continuity.checkpoints import make_checkpoint, move_aside
from streaming.continuity.gaps import Gap, GapsTable
from streaming.continuity.table_check import TableCheck, TopicReport
from streaming.contracts.records import (
    DEAD_LETTERS_TABLE,
    DECISIONS_TABLE,
    HEARTBEATS_TABLE,
    TABLE_OF_TOPIC,
    TICKS_TABLE,
)
from streaming.records.decode import RawRow, decode_payload
from streaming.tables.maintenance import maintain
from tests.helpers.local_paths import local
from tests.helpers.log_tables import busy_world, write_inputs, write_tables
from tests.helpers.recorded_log import RecordedLog

NOW_MS = 2_000_000_000_000
DAY_MS = 86_400_000
SECOND_DAY = datetime(1970, 1, 2, tzinfo=UTC)
PLACE = TopicPartition(HEARTBEATS, 0)
OF_NODES = TopicPartition(HEARTBEATS, 2)
"""A partition with several heartbeats, and ticks as in every one."""


class Checked:
    """A recorded log with a refused heartbeat behind it, the tables made of it, and their check.

    Args:
        folder: of the tables.
        next_day_from: the offset of heartbeats from which on they are of the second day of 1970, not of the first one.
    """

    def __init__(self, folder: Path, next_day_from: int = 1_000) -> None:
        self.log = RecordedLog(busy_world())
        for place, records in self.log.records.items():
            if place.topic == HEARTBEATS:
                late = [each._replace(append_time_ms=each.append_time_ms + DAY_MS) for each in records[next_day_from:]]
                records[next_day_from:] = late
        heartbeats = self.log.records[PLACE]
        refused = RawRecord(HEARTBEATS, 0, heartbeats[-1].offset + 1, heartbeats[-1].append_time_ms, b"n1", b"junk")
        write_tables(folder, self.log, [refused])
        heartbeats.append(refused)
        letters = TopicPartition(DEAD_LETTERS, 0)
        self.log.records[letters].append(RawRecord(DEAD_LETTERS, 0, 0, NOW_MS, b"", b""))
        self.log.records[TopicPartition(LOAD_REPORTS, 0)] = []
        self.config = PipelineConfig(ClusterConfig("c"), KafkaConfig("nowhere:1"), folder, SparkConfig(jars=()))
        for topic in TABLE_OF_TOPIC:
            self.read_up_to(topic, {partition: span.stop for partition, span in self.kept(topic).items()})
        self.refused_offset = refused.offset
        self.topic_id: str | None = "first"

    def read_up_to(self, topic: str, ends: Mapping[int, int]) -> None:
        """The stream of a topic has read these."""
        folder = local(self.config.checkpoint_dir(TABLE_OF_TOPIC[topic].name))
        move_aside(folder)
        make_checkpoint(folder, self.config.cluster.topic(topic), ends, "first")

    def kept(self, topic: str) -> dict[int, range]:
        """What the log has of a topic."""
        return kept_by(self.log.reader(), topic)

    def of_kind(self, kind: type) -> list[RawRecord]:
        """The heartbeats or ticks of one partition."""
        raw = ((each, RawRow(*each[1:6])) for each in self.log.records[OF_NODES])
        decoded = ((each, decode_payload(HEARTBEATS, row, default_framing())) for each, row in raw)
        return [record for record, (_, payload) in decoded if isinstance(payload, kind)]

    def remove(self, table: str, condition: str) -> None:
        """Take rows out of a table."""
        DeltaTable(str(self.config.tables_dir / table)).delete(condition)

    def reports(self, now_ms: int = NOW_MS) -> dict[str, TopicReport]:
        """The check's."""
        check = TableCheck(self.config, self.kept, self._id_of, self._records, now_ms)
        return {report.topic: report for report in check.reports()}

    def problems(self) -> list[str]:
        """All of them."""
        return [problem for report in self.reports().values() for problem in report.problems]

    def _id_of(self, topic: str) -> str:
        if self.topic_id is None:
            raise LogUnavailableError(f"Kafka did not describe topic {topic} in time")
        return self.topic_id

    def _records(self, topic: str, partition: int, span: range) -> Iterator[RawRow]:
        for each in self.log.records[TopicPartition(topic, partition)]:
            if each.offset in span:
                yield RawRow(each.partition, each.offset, each.append_time_ms, each.key, each.value)


@pytest.fixture(params=[7, 500_000])
def checked(tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Checked:
    """Whole tables, compared in many pieces or in one."""
    monkeypatch.setattr(module, "_PIECE_OFFSETS", request.param)
    return Checked(tmp_path / "delta")


def test_whole_tables_pass(checked: Checked) -> None:
    """Decisions, inputs and dead letters, every record of them."""
    reports = checked.reports()
    assert [(report.problems, report.notes) for report in reports.values()] == [([], [])] * len(TABLE_OF_TOPIC)
    counts = {topic: report.record_count for topic, report in reports.items()}
    heartbeats = [records for place, records in checked.log.records.items() if place.topic == HEARTBEATS]
    assert counts[HEARTBEATS] == sum(map(len, heartbeats)) > 200
    assert counts[DECISIONS] == len(checked.log.records[TopicPartition(DECISIONS, 0)]) > 10
    assert (counts[DEAD_LETTERS], counts[LOAD_REPORTS]) == (1, 0)
    assert {topic: report.refused_count for topic, report in reports.items() if report.refused_count} == {HEARTBEATS: 1}


def test_missing_and_doubled_rows_are_told(checked: Checked) -> None:
    """By topic, partition and offset; decisions by seq as well."""
    heartbeats = checked.of_kind(Heartbeat)
    record, doubled = heartbeats[1], heartbeats[2]
    checked.remove(HEARTBEATS_TABLE.name, f"partition = 2 AND offset = {record.offset}")
    write_inputs(local(checked.config.tables_dir), HEARTBEATS, [doubled])
    checked.remove(DECISIONS_TABLE.name, "seq = 4")
    (fourth,) = checked.log.records[TopicPartition(DECISIONS, 0)][3:4]
    assert checked.problems() == [
        f"heartbeats[2]: 1 missing, first {record.offset}",
        f"heartbeats[2]: 1 more than once, first {doubled.offset}",
        f"decisions[0]: 1 missing, first {fourth.offset}",
        "decisions by seq: 1 missing, first 4",
    ]


def test_ticks_are_compared_one_by_one(checked: Checked) -> None:
    """They stand together in rows of minutes."""
    ticks = checked.of_kind(Tick)
    tick = ticks[0]
    write_inputs(local(checked.config.tables_dir), HEARTBEATS, [tick])
    assert checked.problems() == [f"heartbeats[2]: 1 more than once, first {tick.offset}"]
    checked.remove(TICKS_TABLE.name, f"partition = 2 AND first_offset = {tick.offset}")
    assert all(
        problem.startswith("heartbeats[2]: ") and " missing, first " in problem for problem in checked.problems()
    )
    assert checked.problems()[0].endswith(f" missing, first {', '.join(str(each.offset) for each in ticks[:3])}")


def test_rows_that_are_twice_are_told_when_kafka_has_forgotten_them(checked: Checked) -> None:
    """The whole table is looked through; what Kafka does not have is not called missing."""
    doubled, end = checked.of_kind(Heartbeat)[0], checked.log.records[OF_NODES][-1].offset
    write_inputs(local(checked.config.tables_dir), HEARTBEATS, [doubled])
    checked.log.cut({OF_NODES: end})
    assert checked.problems() == [f"heartbeats[2]: 1 more than once, first {doubled.offset}"]


def test_a_row_that_kafka_does_not_have_is_told(checked: Checked) -> None:
    """Such as one of an aborted transaction."""
    record = checked.log.records[PLACE].pop(4)
    assert checked.problems() == [f"heartbeats[0]: 1 not in Kafka, first {record.offset}"]


def test_what_was_forgotten_on_purpose_is_told_and_no_loss(tmp_path: Path) -> None:
    """By the table that a record belongs to, and by its day; also where more days are to be kept later."""
    checked = Checked(tmp_path, next_day_from=60)
    forgotten = [each.offset for each in checked.of_kind(Heartbeat) if each.offset < 60]
    for days in (1, 2):
        maintain(tmp_path, SECOND_DAY, {HEARTBEATS_TABLE.name: days})
        report = checked.reports()[HEARTBEATS]
        told = f"{len(forgotten)} of days that --keep has forgotten, first {', '.join(map(str, forgotten[:3]))}"
        assert (report.problems, f"heartbeats[2]: {told}" in report.notes) == ([], True)
    beat, tick = checked.of_kind(Heartbeat)[-1], checked.of_kind(Tick)[0]
    checked.remove(HEARTBEATS_TABLE.name, f"partition = 2 AND offset = {beat.offset}")
    assert checked.problems() == [f"heartbeats[2]: 1 missing, first {beat.offset}"]
    checked.remove(TICKS_TABLE.name, f"partition = 2 AND first_offset = {tick.offset}")
    assert f"missing, first {tick.offset}" in checked.problems()[0]


def test_a_dead_letter_that_was_forgotten_on_purpose_is_no_loss(tmp_path: Path) -> None:
    """Nor is the refused record then one without a dead letter."""
    checked = Checked(tmp_path)
    letters = checked.log.records[TopicPartition(DEAD_LETTERS, 0)]
    letters[0] = letters[0]._replace(append_time_ms=1)
    maintain(tmp_path, SECOND_DAY, {DEAD_LETTERS_TABLE.name: 1})
    reports = checked.reports()
    assert reports[DEAD_LETTERS].notes == ["dead-letters[0]: 1 of days that --keep has forgotten, first 0"]
    assert [report.problems for report in reports.values()] == [[]] * len(TABLE_OF_TOPIC)


def test_a_refused_record_has_a_dead_letter(checked: Checked) -> None:
    """After a minute, and if the dead letters are read to their end."""
    checked.remove(DEAD_LETTERS_TABLE.name, "true")
    told = f"heartbeats[0]: 1 refused and without a dead letter, first {checked.refused_offset}"
    assert checked.problems() == [told, "dead-letters[0]: 1 missing, first 0"]
    reports = checked.reports(now_ms=checked.log.records[PLACE][-1].append_time_ms + 59_000)
    assert reports[HEARTBEATS].problems == []
    checked.read_up_to(DEAD_LETTERS, {0: 0})
    reports = checked.reports()
    assert (reports[HEARTBEATS].problems, reports[HEARTBEATS].notes) == ([], [told])


def test_what_was_not_read_is_no_loss_unless_kafka_has_forgotten_it(checked: Checked) -> None:
    """A stream that is behind will come to it; a gap that was accepted is told as such."""
    records = checked.log.records[PLACE]
    others = {each: span.stop for each, span in checked.kept(HEARTBEATS).items()}
    checked.remove(HEARTBEATS_TABLE.name, f"partition = 0 AND offset >= {records[10].offset}")
    checked.read_up_to(HEARTBEATS, others | {0: records[10].offset})
    assert checked.problems() == []
    checked.log.cut({PLACE: records[12].offset})
    gap = Gap(HEARTBEATS, 0, range(records[10].offset, records[12].offset))
    assert checked.problems() == [f"{gap} was not read, and Kafka does not have it"]
    GapsTable(checked.config.tables_dir).record([gap], 1, NOW_MS)
    assert checked.reports()[HEARTBEATS].notes == [f"recorded gap: {gap}"]
    checked.log.records[PLACE] = records[:5]
    assert "the topic was deleted and made again" in checked.problems()[0]


def test_a_topic_that_was_made_again_is_told(checked: Checked) -> None:
    """Of none of the records in it is it known whether the tables have it."""
    checked.topic_id = "second"
    told = "has the id second in Kafka, but the stream has read first: the topic was deleted and made again"
    topics = [topic for topic in TABLE_OF_TOPIC if topic != LOAD_REPORTS]  # of which nothing was read
    assert [problem.partition(" ")[0] for problem in checked.problems() if told in problem] == topics


def test_an_unknown_id_is_noted_and_the_rest_is_compared(checked: Checked) -> None:
    """Only that question depends on a broker that is dead."""
    checked.topic_id = None
    record = checked.log.records[PLACE].pop(4)
    report = checked.reports()[HEARTBEATS]
    assert report.problems == [f"heartbeats[0]: 1 not in Kafka, first {record.offset}"]
    told = "whether the topic was made again is unknown: Kafka did not describe topic heartbeats in time"
    assert report.notes == [told]


def test_decisions_whose_first_part_is_forgotten_are_not_asked_for(checked: Checked) -> None:
    """The log begins within a decision, and a foreign record stands in it."""
    place = TopicPartition(DECISIONS, 0)
    first, *rest = checked.log.records[place]
    foreign = first._replace(offset=first.offset + 1, key=b"x", value=b"junk")
    checked.log.records[place] = [foreign, *rest]
    reports = checked.reports()
    assert (reports[DECISIONS].problems, reports[DECISIONS].record_count) == ([], len(rest))
    checked.remove(DECISIONS_TABLE.name, "seq <= 2")
    checked.log.records[place] = rest[1:]
    reports = checked.reports()
    assert (reports[DECISIONS].problems, reports[DECISIONS].notes) == ([], ["the table begins with decision 3"])


def test_a_stream_that_never_ran_is_told(checked: Checked) -> None:
    """Its table is empty, and nothing is missing yet; with rows it is the checkpoint that was not found."""
    folder = local(checked.config.checkpoint_dir(MEMBERSHIP))
    folder.rename(folder.with_name("gone"))
    assert checked.problems() == [
        f"membership has rows, and no batch is in the checkpoint {folder}: nothing was compared"
    ]
    checked.remove(MEMBERSHIP, "offset >= 0")
    assert checked.reports()[MEMBERSHIP].notes == ["the stream has not read anything yet"]
    assert checked.problems() == []


def test_a_stream_that_was_stopped_before_its_first_batch_is_compared(checked: Checked) -> None:
    """It has read nothing, and what Kafka forgets from where it was to begin is lost."""
    folder = local(checked.config.checkpoint_dir(MEMBERSHIP))
    (folder / "sources" / "0").mkdir(parents=True)
    begin = json.dumps({checked.config.cluster.topic(MEMBERSHIP): {"0": 0}})
    (folder / "sources" / "0" / "0").write_bytes(b"\x00v1\n" + begin.encode())
    for name in ("offsets", "commits"):
        shutil.rmtree(folder / name)
    assert checked.problems() == [
        f"membership has rows, and no batch is in the checkpoint {folder}: nothing was compared"
    ]
    checked.remove(MEMBERSHIP, "offset >= 0")
    report = checked.reports()[MEMBERSHIP]
    assert (report.problems, report.notes) == ([], ["the stream has not read anything yet"])
    place = TopicPartition(MEMBERSHIP, 0)
    checked.log.cut({place: checked.log.records[place][1].offset})
    lost = Gap(MEMBERSHIP, 0, range(checked.log.records[place][0].offset))
    assert checked.problems() == [f"{lost} was not read, and Kafka does not have it"]
