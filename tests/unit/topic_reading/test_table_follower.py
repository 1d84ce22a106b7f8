"""Following a routing-table topic through compaction, damage, recreation and unknown versions."""

from collections.abc import Mapping
from typing import NoReturn

import pytest
from structlog.testing import capture_logs

from controlplane.codec.table import encode_row
from controlplane.config import ROUTING_TABLE, ClusterConfig
from controlplane.core.routing.replica import TableReplica
from controlplane.core.routing.rows import MARKER_KEY, slot_key
from controlplane.core.slots.table import Slot
from controlplane.core.values.identifiers import Epoch, TopicPartition
from controlplane.errors import LogContinuityError, LogUnavailableError, PrerequisiteError
from controlplane.ports import OutgoingRecord, RawRecord
from controlplane.testing import MemoryBroker, MemoryLogReader, MemoryTransactionalWriter, VirtualClock
from controlplane.topic_reading.foreign_records import ForeignRecords
from controlplane.topic_reading.table_follower import Progress, TableFollower, fold_record
from tests.helpers.crowded import CrowdedReader
from tests.helpers.table_feed import TableFeed

CLUSTER = ClusterConfig("test")
TOPIC = CLUSTER.topic(ROUTING_TABLE)
NEWER = b"\xc3\x01" + b"12345678" + b"body"
"""A value in a schema that nobody here knows."""


class Setting:
    """A broker, a hand-written table in it, and a follower of it."""

    def __init__(self) -> None:
        self.clock = VirtualClock()
        self.broker = MemoryBroker(self.clock)
        self.broker.create_topic(TOPIC)
        self.feed = self.new_feed()
        self.follower = TableFollower(MemoryLogReader(CLUSTER, self.broker))

    def new_feed(self, log_id: str = "log-1") -> TableFeed:
        """A writer of the table."""
        return TableFeed(MemoryTransactionalWriter(CLUSTER, self.broker), log_id=log_id)

    def steps(self, count: int) -> None:
        """Several steps, whatever they show."""
        for _ in range(count):
            self.follower.step(0)

    def read(self) -> Progress:
        """What a few steps bring: the reader reports an end only where a poll finds nothing more."""
        steps = [self.follower.step(0) for _ in range(3)]
        return Progress(tuple(table for step in steps for table in step.tables), any(step.ended for step in steps))

    def epochs(self) -> list[int]:
        """The epochs that one step shows."""
        return [int(table.epoch) for table in self.follower.step(0).tables]


def garbage(value: bytes) -> OutgoingRecord:
    """A record under a key that no leader writes."""
    return OutgoingRecord(ROUTING_TABLE, b"nonsense", value)


def damaged() -> Setting:
    """A follower of epoch 1, and an epoch 2 that does not know of the foreign record before it."""
    setting = Setting()
    setting.feed.node("a").slot(0, "a").commit()
    setting.follower.step(0)
    setting.feed.write(garbage(b"first"))
    setting.feed.slot(1, "a").commit()
    return setting


def test_every_epoch_is_shown_in_order() -> None:
    """An agent has to see each change of its slots; none may be left out while nothing was compacted."""
    setting = Setting()
    setting.feed.node("a").slot(0, "a").commit()
    setting.feed.slot(1, "a").commit()
    progress = setting.read()
    assert [table.epoch for table in progress.tables] == [1, 2]
    assert progress.ended
    assert setting.epochs() == []
    setting.feed.slot(2, "a").commit()
    assert setting.epochs() == [3]


def test_an_empty_topic_ends_without_a_table() -> None:
    """Before the first leader there is no table, and a node has to be able to join then."""
    progress = Setting().follower.step(0)
    assert progress == ((), True)


def test_a_compacted_topic_ends_whole() -> None:
    """Of a compacted history the newest table is left, and that is what a new reader needs."""
    setting = Setting()
    for leader in ("a", "b", "c"):
        setting.feed.node(leader).slot(0, leader).commit()
    setting.broker.compact(TOPIC)
    progress = setting.read()
    assert [table.epoch for table in progress.tables] == [3]
    assert progress.ended


def test_removed_rows_whose_tombstones_are_gone_make_the_reader_begin_again() -> None:
    """A reader that slept through a tombstone's retention keeps a row too many, and only the digest tells."""
    setting = Setting()
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
    setting = Setting()
    setting.feed.node("a").node("b").slot(0, "a").commit()
    reader = MemoryLogReader(CLUSTER, setting.broker)
    follower = TableFollower(reader)
    follower.step(0)
    setting.feed.without("b").commit()
    setting.broker.compact(TOPIC, drop_tombstones=True)
    assigned: list[Mapping[TopicPartition, int]] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reader, "assign", assigned.append)
        assert follower.step(0) == ((), False)
    assert assigned == [{}]


def test_a_row_that_no_leader_wrote_changes_nothing() -> None:
    """It stands behind the last marker, so it is in no table; the next epoch, which does not know it, is not shown."""
    setting = Setting()
    setting.feed.node("a").slot(0, "a").commit()
    stolen = encode_row(Slot(0, "intruder", (), Epoch(1)))
    setting.feed.write(OutgoingRecord(ROUTING_TABLE, slot_key(0).encode(), stolen))
    progress = setting.read()
    assert [table.epoch for table in progress.tables] == [1]
    assert progress.ended
    setting.feed.slot(1, "a").commit()
    assert setting.follower.step(0) == ((), False)
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
    setting = Setting()
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
    setting = Setting()
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
    setting = Setting()
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
    setting = Setting()
    foreign = ForeignRecords(ROUTING_TABLE)
    replica = TableReplica()
    assert fold_record(replica, RawRecord(ROUTING_TABLE, 0, 0, 0, None, b"x"), foreign) is None
    assert foreign.total == 1
    assert replica.row_hashes == {}
    assert setting.follower.step(0).ended


def test_an_unknown_kind_of_row_is_passed_by_without_a_word() -> None:
    """A leader of a newer version writes it, once readers have had the time to learn it; this one routes on."""
    setting = Setting()
    setting.feed.node("a").raw(b"main/ring/7", NEWER).commit()
    with capture_logs() as logs:
        assert setting.epochs() == [1]
    assert logs == []
    assert setting.follower.table is not None
    assert setting.follower.table.unreadable == {}


def test_a_row_of_a_newer_version_asks_for_an_upgrade() -> None:
    """Its key has no route, every other key has, and the log says what to do."""
    setting = Setting()
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
    setting = Setting()
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


def crowded(setting: Setting) -> TableFollower:
    """A follower beside which a foreign writer never pauses."""
    return TableFollower(CrowdedReader(CLUSTER, setting.broker, ROUTING_TABLE))


def ended_within(follower: TableFollower, steps: int) -> bool:
    """Whether an end is told in so many steps."""
    return any(follower.step(0).ended for _ in range(steps))


def test_a_foreign_writer_that_never_pauses_keeps_no_end_back() -> None:
    """A node joins at the first end, and each end after that confirms its table: it may wait no longer for either."""
    setting = Setting()
    setting.feed.node("a").commit()
    follower = crowded(setting)
    for _ in range(3):
        assert ended_within(follower, 3)
        follower.fetch_anew()
    assert follower.table is not None


def test_an_end_that_was_not_whole_is_told_once_a_later_epoch_is() -> None:
    """The repair of the table comes behind the end that was asked for, and no other end is reported beside a flood."""
    setting = Setting()
    setting.feed.node("a").commit()
    setting.feed.write(garbage(b"first"))
    setting.feed.slot(1, "a").commit()
    follower = crowded(setting)
    assert not ended_within(follower, 10)
    setting.feed.repair([b"nonsense", b"foreign"]).commit()
    assert ended_within(follower, 3)


def test_a_flood_keeps_no_reader_from_beginning_again() -> None:
    """A client asks for no confirmation, so that it has to ask for an end by itself where rows come without a table."""
    setting = Setting()
    setting.feed.node("a").node("b").slot(0, "a").commit()
    follower = crowded(setting)
    assert ended_within(follower, 3)
    setting.feed.without("b").commit()
    setting.broker.compact(TOPIC, drop_tombstones=True)
    for _ in range(10):
        follower.step(0)
    assert follower.rebuilds > 0


def test_a_topic_that_is_away_while_its_end_is_asked_for_ends_no_reader() -> None:
    """Somebody deletes it and makes it again; a reader that has a table waits."""
    setting = Setting()
    setting.feed.node("a").commit()
    assert setting.read().ended
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(MemoryLogReader, "end_offsets", _refuse)
        setting.follower.fetch_anew()
        setting.feed.write(garbage(b"without a table"))
        setting.steps(3)
    setting.follower.fetch_anew()
    assert setting.read().ended


def test_a_topic_that_is_away_while_its_start_is_asked_for_ends_no_reader_that_has_begun() -> None:
    """A topic that was made again is read from its start; one that never was there is a missing prerequisite."""
    setting = Setting()
    setting.feed.node("a").slot(0, "a").commit()
    assert setting.read().ended
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(MemoryLogReader, "start_offsets", _refuse)
        setting.broker.create_topic(TOPIC)
        assert setting.follower.step(0) == ((), False)
        with pytest.raises(LogUnavailableError, match="no topic"):
            setting.follower.step(0)
        with pytest.raises(PrerequisiteError, match="no topic"):
            TableFollower(MemoryLogReader(CLUSTER, setting.broker)).step(0)
    setting.feed.slot(0, "a").commit()
    setting.steps(3)


@pytest.mark.parametrize("is_first", [True, False])
def test_a_reader_follows_the_table_while_the_broker_does_not_say_where_it_ends(*, is_first: bool) -> None:
    """The broker may answer fetches and no other request; an agent asks for a new fetch with every heartbeat."""
    setting = Setting()
    setting.feed.node("a").slot(0, "a").commit()
    if not is_first:
        assert setting.read().ended
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(MemoryLogReader, "end_offsets", _no_answer)
        setting.feed.slot(1, "a").commit()
        setting.follower.fetch_anew()
        setting.feed.write(garbage(b"without a table"))
        progress = setting.read()
        assert [table.epoch for table in progress.tables][-1] == 2
        assert progress.ended


def test_a_new_fetch_of_a_quiet_topic_asks_for_no_end() -> None:
    """A fetch reports it: thousands of nodes would else send one request more with each heartbeat."""
    setting = Setting()
    setting.feed.node("a").commit()
    assert setting.read().ended
    asked: list[str] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(MemoryLogReader, "end_offsets", lambda _, topic: asked.append(topic))
        for _ in range(5):
            setting.follower.fetch_anew()
            assert setting.read().ended
    assert asked == []


def _no_answer(_: MemoryLogReader, topic: str) -> NoReturn:
    raise LogUnavailableError(f"no answer about {topic}")


def _refuse(_: MemoryLogReader, topic: str) -> NoReturn:
    raise PrerequisiteError(f"there is no topic {topic}")


def test_a_fresh_fetch_reports_its_end_again() -> None:
    """A node that lost the log has to know that nothing came between its last reading and now."""
    setting = Setting()
    setting.feed.node("a").commit()
    assert setting.read().ended
    assert not setting.read().ended
    setting.follower.fetch_anew()
    assert setting.follower.step(0) == ((), True)


def test_a_broker_that_is_away_changes_nothing() -> None:
    """The last table stays, and reading goes on where it stood."""
    setting = Setting()
    setting.feed.node("a").slot(0, "a").commit()
    assert setting.epochs() == [1]
    setting.broker.available = False
    assert setting.follower.step(0) == ((), False)
    setting.broker.available = True
    setting.feed.slot(1, "a").commit()
    assert setting.epochs() == [2]
