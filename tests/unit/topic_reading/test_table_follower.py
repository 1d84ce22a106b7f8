"""Following a routing-table topic through compaction, damage, recreation and unknown versions."""

from collections.abc import Mapping

import pytest
from structlog.testing import capture_logs

from controlplane.codec.table import encode_row
from controlplane.config import ROUTING_TABLE
from controlplane.core.routing.replica import TableReplica
from controlplane.core.routing.rows import MARKER_KEY, slot_key
from controlplane.core.slots.table import Slot
from controlplane.core.values.identifiers import Epoch, TopicPartition
from controlplane.errors import LogContinuityError
from controlplane.ports import OutgoingRecord, RawRecord
from controlplane.testing import MemoryLogReader
from controlplane.topic_reading.foreign_records import ForeignRecords
from controlplane.topic_reading.table_follower import Progress, TableFollower, fold_record
from tests.helpers.followed_table import CLUSTER, TOPIC, FollowedTable, damaged, garbage

NEWER = b"\xc3\x01" + b"12345678" + b"body"

"""A value in a schema that nobody here knows."""


def test_every_epoch_is_shown_in_order() -> None:
    """An agent has to see each change of its slots; none may be left out while nothing was compacted."""
    setting = FollowedTable()
    setting.feed.node("a").slot(0, "a").commit()
    setting.feed.slot(1, "a").commit()
    progress = setting.read()
    assert [table.epoch for table in progress.tables] == [1, 2]
    assert progress.ended
    assert setting.epochs() == []
    setting.feed.slot(2, "a").commit()
    assert setting.epochs() == [3]


def test_an_empty_topic_ends_without_a_table() -> None:
    """Before the first leader there is no table, and a node that waits for it has to say so."""
    progress = FollowedTable().follower.step(0)
    assert progress == Progress((), ended=True, confirms=True)


def test_a_compacted_topic_ends_whole() -> None:
    """Of a compacted history the newest table is left, and that is what a new reader needs."""
    setting = FollowedTable()
    for leader in ("a", "b", "c"):
        setting.feed.node(leader).slot(0, leader).commit()
    setting.broker.compact(TOPIC)
    progress = setting.read()
    assert [table.epoch for table in progress.tables] == [3]
    assert progress.ended


def test_removed_rows_whose_tombstones_are_gone_make_the_reader_begin_again() -> None:
    """A reader that slept through a tombstone's retention keeps a row too many, and only the digest tells."""
    setting = FollowedTable()
    setting.feed.node("a").node("b").slot(0, "a").commit()
    assert setting.epochs() == [1]
    setting.feed.without("b").commit()
    setting.broker.compact(TOPIC, drop_tombstones=True)
    setting.steps(1)
    assert setting.follower.rebuilds == 1
    progress = setting.read()
    assert [table.epoch for table in progress.tables] == [2]
    assert progress.ended
    assert list(progress.tables[0].nodes) == ["a"]


def test_a_reader_that_begins_again_reads_nothing_until_it_knows_where() -> None:
    """It asks the broker first, perhaps for long; a client with something to read would have to be polled meanwhile."""
    setting = FollowedTable()
    setting.feed.node("a").node("b").slot(0, "a").commit()
    reader = MemoryLogReader(CLUSTER, setting.broker)
    follower = TableFollower(reader)
    follower.step(0)
    setting.feed.without("b").commit()
    setting.broker.compact(TOPIC, drop_tombstones=True)
    assigned: list[Mapping[TopicPartition, int]] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reader, "assign", assigned.append)
        assert follower.step(0) == Progress((), ended=False)
    assert assigned == [{}]


def test_a_row_that_no_leader_wrote_changes_nothing() -> None:
    """It stands behind the last marker, so it is in no table; the next epoch, which does not know it, is not shown."""
    setting = FollowedTable()
    setting.feed.node("a").slot(0, "a").commit()
    stolen = encode_row(Slot(0, "intruder", (), Epoch(1)))
    setting.feed.write(OutgoingRecord(ROUTING_TABLE, slot_key(0).encode(), stolen))
    progress = setting.read()
    assert [table.epoch for table in progress.tables] == [1]
    assert progress.ended
    setting.feed.slot(1, "a").commit()
    assert setting.follower.step(0) == Progress((), ended=False)
    setting.steps(9)
    assert setting.follower.table is not None
    assert setting.follower.table.epoch == 1
    assert setting.follower.table.slots[0].leader == "a"
    assert setting.follower.awaits_repair


def test_a_topic_that_stays_damaged_is_not_read_again_and_again() -> None:
    """Reading from the start gave the same rows under the same marker: only something new can help."""
    setting = damaged()
    setting.steps(20)
    assert setting.follower.rebuilds == 1
    for _ in range(20):
        setting.feed.write(garbage(b"again"))
        setting.steps(3)
    assert setting.follower.rebuilds <= 3, "foreign records alone"
    assert setting.follower.awaits_repair
    setting.feed.slot(0, "a").repair([b"nonsense"]).commit()
    setting.steps(1)
    repaired = setting.follower
    assert not repaired.awaits_repair
    assert repaired.table is not None
    assert repaired.table.epoch == setting.feed.epoch


def test_rebuilds_that_do_not_help_come_ever_more_seldom() -> None:
    """An epoch of a leader that does not know of the damage gives hope each time; a large topic is dear to read."""
    setting = damaged()
    seconds = 300
    for _ in range(seconds):
        setting.clock.advance(1_000)
        setting.feed.slot(0, "a").commit()
        setting.steps(3)
    assert 5 < setting.follower.rebuilds < 20


def test_a_repaired_topic_is_shown_by_those_who_begin_as_well() -> None:
    """And its tombstones take away what was no row."""
    setting = damaged()
    setting.feed.repair([b"nonsense"]).commit()
    for follower in (setting.follower, TableFollower(MemoryLogReader(CLUSTER, setting.broker))):
        while not follower.step(0).ended:
            pass
        assert follower.table is not None
        assert follower.table.epoch == setting.feed.epoch


def test_a_recreated_topic_is_an_error() -> None:
    """A new table under the old name would take every move of the old one back."""
    setting = FollowedTable()
    setting.feed.node("a").slot(0, "a").commit()
    setting.feed.slot(0, None).commit()
    assert setting.epochs() == [1, 2]
    setting.broker.create_topic(TOPIC)
    setting.new_feed("log-2").node("a").slot(0, "a").commit()
    with pytest.raises(LogContinuityError, match="log-2"):
        setting.steps(3)


@pytest.mark.parametrize("value", [b"", b"\xc3\x01" + bytes(7), bytes(5), b"x" * 1_000_000, None])
@pytest.mark.parametrize("key", [b"", b"nonsense", b"\xff\x00\x1b", slot_key(0).encode(), MARKER_KEY.encode()])
def test_what_is_no_row_is_passed_by_and_said_with_its_place(key: bytes, value: bytes | None) -> None:
    """Nobody ends; the record is counted once, however often it is read."""
    setting = FollowedTable()
    setting.feed.node("a").slot(0, "a").commit()
    setting.follower.step(0)
    (partition,) = setting.broker.partitions(TOPIC)
    place = f"routing-table[0]@{partition.end_offset}"
    with capture_logs() as logs:
        setting.feed.write(OutgoingRecord(ROUTING_TABLE, key, value))
        setting.steps(3)
    is_said = value is not None
    said = [each for each in logs if each["event"] == "foreign record passed by"]
    assert [each["at"] for each in said] == [place] * is_said
    assert setting.follower.foreign.total == is_said
    assert setting.follower.table is not None
    assert setting.follower.table.epoch == 1


def test_foreign_records_of_a_topic_that_was_made_again_are_counted() -> None:
    """Their offsets begin anew: that one like it was read before does not mean that this one was."""
    setting = FollowedTable()
    setting.feed.node("a").slot(0, "a").commit()
    for number in range(3):
        setting.feed.write(garbage(b"%d" % number))
    setting.read()
    assert setting.follower.foreign.total == 3
    setting.broker.create_topic(TOPIC)
    setting.feed.write(garbage(b"another"))
    setting.feed.repair([b"nonsense"]).commit()
    setting.read()
    assert setting.follower.foreign.total == 4


def test_a_record_without_a_key_is_passed_by() -> None:
    """Kafka refuses it in a compacted topic, and another setting of the topic would not."""
    setting = FollowedTable()
    foreign = ForeignRecords(ROUTING_TABLE)
    replica = TableReplica()
    assert fold_record(replica, RawRecord(ROUTING_TABLE, 0, 0, 0, None, b"x"), foreign) is None
    assert foreign.total == 1
    assert replica.row_hashes == {}
    assert setting.follower.step(0).ended


def test_an_unknown_kind_of_row_is_passed_by_without_a_word() -> None:
    """A leader of a newer version writes it, once readers have had the time to learn it; this one routes on."""
    setting = FollowedTable()
    setting.feed.node("a").raw(b"main/ring/7", NEWER).commit()
    with capture_logs() as logs:
        assert setting.epochs() == [1]
    assert logs == []
    assert setting.follower.table is not None
    assert setting.follower.table.unreadable == {}


def test_a_row_of_a_newer_version_asks_for_an_upgrade() -> None:
    """Its key has no route, every other key has, and the log says what to do."""
    setting = FollowedTable()
    setting.feed.node("a").slot(1, "a").raw(slot_key(0).encode(), NEWER).commit()
    with capture_logs() as logs:
        progress = setting.read()
    assert progress.ended
    (table,) = progress.tables
    assert table.unreadable.keys() == {slot_key(0)}
    assert table.slots[1].leader == "a"
    assert ["upgrade" in each["problem"] for each in logs] == [True]


def test_a_flood_of_foreign_records_is_no_flood_of_lines() -> None:
    """All are counted; a line comes every ten seconds, and the same record again is no news."""
    setting = FollowedTable()
    setting.feed.commit()
    with capture_logs() as logs:
        for number in range(100):
            setting.clock.advance(1_000)
            setting.feed.write(garbage(f"{number}".encode()))
            setting.steps(1)
        flood = len(logs)
        for _ in range(10):
            setting.clock.advance(20_000)
            setting.feed.write(garbage(b"the same"))
            setting.steps(1)
    assert setting.follower.foreign.total == 110
    assert flood == 10
    assert len(logs) == flood + 1


def test_a_fresh_fetch_reports_its_end_again() -> None:
    """A node that lost the log has to know that nothing came between its last reading and now."""
    setting = FollowedTable()
    setting.feed.node("a").commit()
    assert setting.read().ended
    assert not setting.read().ended
    setting.follower.fetch_anew()
    assert setting.follower.step(0) == Progress((), ended=True, confirms=True)


def test_a_broker_that_is_away_changes_nothing() -> None:
    """The last table stays, and reading goes on where it stood."""
    setting = FollowedTable()
    setting.feed.node("a").slot(0, "a").commit()
    assert setting.epochs() == [1]
    setting.broker.available = False
    assert setting.follower.step(0) == Progress((), ended=False)
    setting.broker.available = True
    setting.feed.slot(1, "a").commit()
    assert setting.epochs() == [2]
