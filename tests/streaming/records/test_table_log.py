"""The log as tables have it: the same records, so that decisions can be taken again without Kafka. No Spark runs."""

import shutil
import tempfile
from collections import defaultdict
from collections.abc import Sequence
from datetime import date
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controlplane.codec.inputs import decode_input
from controlplane.config import DECISIONS, HEARTBEATS, MEMBERSHIP
from controlplane.core.audit.log_audit import LogAudit
from controlplane.core.cluster.policy import ClusterPolicy
from controlplane.core.values.identifiers import TopicPartition
from controlplane.errors import InvalidInputError, LogContinuityError
from controlplane.inspection.auditing import Audited, Auditor
from controlplane.ports import RawRecord
from streaming.contracts.gaps import GAPS_TABLE
from streaming.contracts.records import (
    DEAD_LETTERS_TABLE,
    DECISIONS_TABLE,
    HEARTBEATS_TABLE,
    MEMBERSHIP_TABLE,
    TICKS_TABLE,
)
from streaming.contracts.table import TableContract
from streaming.records.table_log import TableLogReader
from streaming.records.tick_rows import ticks_of
from streaming.tables.table_writer import TableWriter
from tests.helpers.histories import History, operations, play
from tests.helpers.log_tables import INPUTS, add_ticks, busy_world, write_tables
from tests.helpers.recorded_log import RecordedLog
from tests.helpers.sources import source_at_rest
from tests.helpers.world import World

BUSY = RecordedLog(busy_world())


def audited(folder: Path) -> tuple[LogAudit, list[Audited]]:
    """The audit over tables."""
    log_audit = LogAudit()
    sources = (source_at_rest(TableLogReader(folder)) for _ in range(2))
    return log_audit, list(Auditor(log_audit, *sources).run())


def everything(reader: TableLogReader, topic: str) -> dict[TopicPartition, list[RawRecord]]:
    """Each partition's records, as polls bring them."""
    found: dict[TopicPartition, list[RawRecord]] = defaultdict(list)
    reader.assign(reader.start_offsets(topic))
    while True:
        batch = reader.poll(100, 10)
        for record in batch.records:
            found[TopicPartition(topic, record.partition)].append(record)
        if batch.ended.keys() == reader.end_offsets(topic).keys():
            return found


@given(st.lists(st.tuples(operations, st.sampled_from((0, 300, 7_500))), min_size=1, max_size=2))
@settings(max_examples=15, deadline=None)
def test_every_decision_is_taken_again_from_tables(histories: Sequence[tuple[History, int]]) -> None:
    """With equal digests, for any history, also over changes of the leader."""
    world = World(ClusterPolicy(slot_count=8))
    for history, look_back_ms in histories:
        play([each for each in history if each[::2] != ("weigh", 0)], world)
        world.take_over(look_back_ms)
    with tempfile.TemporaryDirectory() as temporary:
        write_tables(Path(temporary), RecordedLog(world))
        log_audit, found = audited(Path(temporary))
    assert [each for each in found if each.differences or each.followed_because] == []
    assert log_audit.state == world.state


def test_records_are_those_of_the_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In order, with their places, times, keys and values; what was refused is refused again."""
    monkeypatch.setattr("streaming.records.table_log._STEP_OFFSETS", 7)
    refused = [RawRecord(MEMBERSHIP, 1, 900, 5_000, b"n", b"junk"), RawRecord(MEMBERSHIP, 1, 901, 5_000, b"n", b"junk")]
    write_tables(tmp_path, BUSY, refused)
    reader = TableLogReader(tmp_path)
    for topic in INPUTS:
        found = everything(reader, topic)
        for place, records in BUSY.records.items():
            if place.topic == topic:
                kept = [record for record in found[place] if record.offset < 900]
                assert [record[:4] for record in kept] == [record[:4] for record in records]
                assert [decode_input(topic, record).payload for record in kept] == [
                    decode_input(topic, record).payload for record in records
                ]
                assert reader.end_offsets(topic)[place] >= (records[-1].offset + 1 if records else 0)
    again = [record for record in everything(reader, MEMBERSHIP)[TopicPartition(MEMBERSHIP, 1)] if record.offset >= 900]
    assert [record[:4] for record in again] == [record[:4] for record in refused]
    for record in again:
        with pytest.raises(InvalidInputError):
            decode_input(MEMBERSHIP, record)
    times = {record.append_time_ms for place in reader.start_offsets(HEARTBEATS) for record in BUSY.records[place]}
    middle = sorted(times)[len(times) // 2]
    assert reader.offsets_at_time(HEARTBEATS, middle) == {
        place: next((each.offset for each in BUSY.records[place] if each.append_time_ms >= middle), end)
        for place, end in reader.end_offsets(HEARTBEATS).items()
    }


def test_the_log_ends_where_its_inputs_end(tmp_path: Path) -> None:
    """Tables of different topics are not equally far: a decision is not judged by half of its inputs."""
    short = RecordedLog(busy_world())
    for place, records in short.records.items():
        if place.topic == HEARTBEATS:
            del records[len(records) // 2 :]
    write_tables(tmp_path, short)
    log_audit, found = audited(tmp_path)
    assert 3 < len(found) < len(BUSY.records[TopicPartition(DECISIONS, 0)])
    assert [each for each in found if each.differences or each.followed_because] == []
    assert log_audit.retaken == len(found)


@pytest.mark.parametrize(
    ("contract", "kept"),
    [
        (MEMBERSHIP_TABLE, "none"),
        (MEMBERSHIP_TABLE, "the last"),
        (HEARTBEATS_TABLE, "none"),
        (HEARTBEATS_TABLE, "the last"),
        (HEARTBEATS_TABLE, "all but one in the middle"),
    ],
    ids=lambda value: getattr(value, "name", value),
)
def test_decisions_without_their_inputs_are_only_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, contract: TableContract, kept: str
) -> None:
    """Forgotten days, or a refused record whose dead letter is gone: what cannot be known is no difference."""
    monkeypatch.setattr("streaming.records.held_offsets._AWAITED_MS", 0)
    write_tables(tmp_path, BUSY)
    table = TableWriter(tmp_path, contract, "somebody")
    rows = table.rows().to_pylist(maps_as_pydicts="strict")
    rows.sort(key=lambda row: tuple(row[name] for name in contract.key))
    left = {"none": [], "the last": rows[-1:], "all but one in the middle": [*rows[:3], *rows[4:]]}[kept]
    table.replace(left, 1)
    log_audit, found = audited(tmp_path)
    assert [each for each in found if each.differences] == []
    assert len(found) == len(BUSY.records[TopicPartition(DECISIONS, 0)])
    assert log_audit.retaken < len(found)
    assert any("no longer kept" in each.followed_because for each in found)


def test_decisions_without_their_ticks_are_only_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ticks without which log time is not known; without the last ones the log ends earlier."""
    write_tables(tmp_path, BUSY)
    table = TableWriter(tmp_path, TICKS_TABLE, "somebody")
    rows = table.rows().to_pylist()
    table.replace((), 1)
    add_ticks(tmp_path, [tick for row in rows for tick in ticks_of(row) if tick.offset >= 30])
    with monkeypatch.context() as later:
        later.setattr("streaming.records.held_offsets._AWAITED_MS", 0)
        log_audit, found = audited(tmp_path)
    assert [each for each in found if each.differences] == []
    assert len(found) == len(BUSY.records[TopicPartition(DECISIONS, 0)]) > log_audit.retaken
    assert any("no longer kept" in each.followed_because for each in found)
    TableWriter(tmp_path, TICKS_TABLE, "somebody").replace((), 2)
    assert len(audited(tmp_path)[1]) < len(found)


@pytest.mark.parametrize("earlier", [(), (1,)], ids=["first refusal", "one of many"])
@pytest.mark.parametrize("behind", [HEARTBEATS_TABLE, TICKS_TABLE, DEAD_LETTERS_TABLE], ids=lambda table: table.name)
def test_the_log_ends_where_one_of_the_tables_of_a_topic_ends(
    tmp_path: Path, behind: TableContract, earlier: tuple[int, ...]
) -> None:
    """Tables of one batch are committed one after the other: one that is behind takes nothing of what is before it."""
    log = RecordedLog(busy_world())
    letters, ends = [], {}
    for place, records in log.records.items():
        if place.topic == HEARTBEATS:
            middle = len(records) // 2
            for number in (*earlier, middle):
                records[number] = records[number]._replace(value=b"junk")
            is_missing = [number >= middle and _is_recorded_in(record, behind) for number, record in enumerate(records)]
            behind_all = records[-1].offset + 1
            ends[place] = next(
                (each.offset for each, missing in zip(records, is_missing, strict=True) if missing), behind_all
            )
            records[:] = [each for each, missing in zip(records, is_missing, strict=True) if not missing]
            letters += [each for each in records if each.value == b"junk"]
    write_tables(tmp_path, log, letters)
    reader = TableLogReader(tmp_path)
    assert reader.start_offsets(HEARTBEATS) == {place: log.records[place][0].offset for place in ends}
    assert reader.end_offsets(HEARTBEATS) == ends


def _is_recorded_in(record: RawRecord, table: TableContract) -> bool:
    """Whether a record of heartbeats stands in this table."""
    if record.value == b"junk":
        return table is DEAD_LETTERS_TABLE
    return table is (HEARTBEATS_TABLE if record.key else TICKS_TABLE)


def test_the_log_begins_behind_a_gap_that_was_accepted(tmp_path: Path) -> None:
    """However young it is: nothing will fill it."""
    log = RecordedLog(busy_world())
    place = TopicPartition(HEARTBEATS, 0)
    records = log.records[place]
    lost = records[3:6]
    del records[3:6]
    write_tables(tmp_path, log)
    assert TableLogReader(tmp_path).end_offsets(HEARTBEATS)[place] == lost[0].offset
    row = (HEARTBEATS, 0, lost[0].offset, lost[-1].offset, 0, 1, date(1970, 1, 1))
    TableWriter(tmp_path, GAPS_TABLE, "somebody").append([dict(zip(GAPS_TABLE.columns, row, strict=True))], 1)
    reader = TableLogReader(tmp_path)
    assert reader.start_offsets(HEARTBEATS)[place] == lost[-1].offset + 1
    assert reader.end_offsets(HEARTBEATS)[place] == records[-1].offset + 1


def test_a_partition_of_which_only_a_dead_letter_is_left_is_known_by_the_decisions(tmp_path: Path) -> None:
    """Rows are forgotten by days of their own; and the audit reads tables also while that of gaps is mended."""
    place = next(place for place, records in BUSY.records.items() if place.topic == MEMBERSHIP and records)
    first, *_, last = BUSY.records[place]
    write_tables(tmp_path, BUSY, [first._replace(value=b"junk")])
    table = TableWriter(tmp_path, MEMBERSHIP_TABLE, "somebody")
    table.replace([row for row in table.rows().to_pylist() if row["partition"] != place.partition], 1)
    shutil.rmtree(tmp_path / GAPS_TABLE.name)
    reader = TableLogReader(tmp_path)
    assert reader.start_offsets(MEMBERSHIP)[place] == reader.end_offsets(MEMBERSHIP)[place] == last.offset + 1
    assert reader.held.unread_count == 0


def test_two_readers_of_the_same_tables_read_alike(tmp_path: Path) -> None:
    """Whatever was written since, and each from where it was told to."""
    write_tables(tmp_path, BUSY)
    first = TableLogReader(tmp_path)
    second = first.beside()
    TableWriter(tmp_path, MEMBERSHIP_TABLE, "somebody").replace((), 1)
    second.assign(dict.fromkeys(second.start_offsets(HEARTBEATS), 10))
    assert everything(first, MEMBERSHIP) == everything(second, MEMBERSHIP) != {}


def test_what_was_changed_in_a_table_is_found(tmp_path: Path) -> None:
    """A decision by its digest. An offset before the first row is not passed over in silence."""
    write_tables(tmp_path, BUSY)
    table = TableWriter(tmp_path, DECISIONS_TABLE, "somebody")
    rows = sorted(table.rows().to_pylist(maps_as_pydicts="strict"), key=lambda row: row["seq"])
    rows[4]["decided_at_ms"] += 1
    table.replace(rows, 1)
    _, found = audited(tmp_path)
    assert len(found) == 5
    assert "has another digest" in str(found[-1].differences)
    with pytest.raises(LogContinuityError, match=r"heartbeats.* is not in the tables any more"):
        behind_the_start(tmp_path)


def behind_the_start(folder: Path) -> None:
    """Read from an offset that no row has."""
    for contract, offset in ((HEARTBEATS_TABLE, "offset"), (TICKS_TABLE, "first_offset")):
        table = TableWriter(folder, contract, "somebody")
        rows = [row for row in table.rows().to_pylist(maps_as_pydicts="strict") if row[offset] > 0]
        table.replace(rows, 1)
    reader = TableLogReader(folder)
    reader.assign(dict.fromkeys(reader.start_offsets(HEARTBEATS), 0))
    reader.poll(100, 10)
