"""Following a routing-table topic through compaction, damage, recreation and unknown versions."""

from collections.abc import Mapping

import pytest

from controlplane.adapters.memory import MemoryBroker, MemoryLogReader, MemoryTransactionalWriter, VirtualClock
from controlplane.codec.table import encode_row
from controlplane.config import ROUTING_TABLE, ClusterConfig
from controlplane.core.routing.rows import slot_key
from controlplane.core.slots.table import Slot
from controlplane.core.values.identifiers import Epoch, TopicPartition
from controlplane.errors import LogContinuityError, UnsupportedFeatureLevelError
from controlplane.ports import OutgoingRecord
from controlplane.table_follower import TableFollower
from tests.helpers.table_feed import TableFeed

CLUSTER = ClusterConfig("test")
TOPIC = CLUSTER.topic(ROUTING_TABLE)


class Setting:
    """A broker, a hand-written table in it, and a follower of it."""

    def __init__(self) -> None:
        self.broker = MemoryBroker(VirtualClock())
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

    def epochs(self) -> list[int]:
        """The epochs that one step shows."""
        return [int(table.epoch) for table in self.follower.step(0).tables]


def test_every_epoch_is_shown_in_order() -> None:
    """An agent has to see each change of its slots; none may be left out while nothing was compacted."""
    setting = Setting()
    setting.feed.node("a").slot(0, "a").commit()
    setting.feed.slot(1, "a").commit()
    progress = setting.follower.step(0)
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
    progress = setting.follower.step(0)
    assert [table.epoch for table in progress.tables] == [3]
    assert progress.ended


def test_removed_rows_whose_tombstones_are_gone_make_the_reader_begin_again() -> None:
    """A reader that slept through a tombstone's retention keeps a row too many, and only the digest tells."""
    setting = Setting()
    setting.feed.node("a").node("b").slot(0, "a").commit()
    assert setting.epochs() == [1]
    setting.feed.without("b").commit()
    setting.broker.compact(TOPIC, drop_tombstones=True)
    progress = setting.follower.step(0)
    assert progress == ((), False)
    assert setting.follower.rebuilds == 1
    progress = setting.follower.step(0)
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


def test_a_topic_that_stays_damaged_is_an_error() -> None:
    """A row that no leader wrote must not be routed by, and reading for ever would hide it."""
    setting = Setting()
    setting.feed.node("a").slot(0, "a").commit()
    stolen = encode_row(Slot(0, "intruder", (), Epoch(1)))
    setting.feed.write(OutgoingRecord(ROUTING_TABLE, slot_key(0).encode(), stolen))
    with pytest.raises(LogContinuityError, match="3 times and does not become whole"):
        setting.steps(9)
    assert setting.follower.table is not None
    assert setting.follower.table.slots[0].leader == "a"


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


@pytest.mark.parametrize("value", [b"", b"\xc3\x01" + bytes(7), bytes(5), None])
def test_what_is_no_row_is_an_error_with_its_place(value: bytes | None) -> None:
    """A reader that skipped what it cannot read would show a table that was never committed."""
    setting = Setting()
    key = b"nonsense" if value is None else slot_key(0).encode()
    setting.feed.write(OutgoingRecord(ROUTING_TABLE, key, value))
    with pytest.raises(LogContinuityError, match=r"routing-table\[0\]@0"):
        setting.follower.step(0)


def test_a_row_of_a_newer_version_asks_for_an_upgrade() -> None:
    """An unknown schema is not damage: the message has to say that this reader is too old."""
    setting = Setting()
    setting.feed.write(OutgoingRecord(ROUTING_TABLE, slot_key(0).encode(), b"\xc3\x01" + b"12345678" + b"body"))
    with pytest.raises(UnsupportedFeatureLevelError, match="upgrade"):
        setting.follower.step(0)


def test_a_fresh_fetch_reports_its_end_again() -> None:
    """A node that lost the log has to know that nothing came between its last reading and now."""
    setting = Setting()
    setting.feed.node("a").commit()
    assert setting.follower.step(0).ended
    assert not setting.follower.step(0).ended
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
