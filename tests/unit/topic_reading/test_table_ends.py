"""Where a follower finds the end of the topic: beside a foreign writer, and while the broker does not answer."""

from typing import NoReturn

import pytest

from controlplane.config import ROUTING_TABLE
from controlplane.errors import LogUnavailableError, PrerequisiteError
from controlplane.ports import PolledBatch
from controlplane.testing import MemoryLogReader
from controlplane.topic_reading.table_follower import Progress, TableFollower
from tests.helpers.crowded import CrowdedReader
from tests.helpers.followed_table import CLUSTER, TOPIC, FollowedTable, garbage


def crowded(setting: FollowedTable) -> TableFollower:
    """A follower beside which a foreign writer never pauses."""
    return TableFollower(CrowdedReader(CLUSTER, setting.broker, ROUTING_TABLE))


class BesideLeader(MemoryLogReader):
    """Each poll finds a further epoch, so no end is ever reported."""

    def __init__(self, setting: FollowedTable) -> None:
        super().__init__(CLUSTER, setting.broker)
        self._setting = setting

    def poll(self, max_records: int, timeout_ms: int) -> PolledBatch:
        """One epoch more than there was."""
        self._setting.feed.slot(0, "a").commit()
        batch = super().poll(max_records, timeout_ms)
        return batch._replace(ended={})


def ended_within(follower: TableFollower, steps: int) -> bool:
    """Whether an end is told in so many steps."""
    return any(follower.step(0).ended for _ in range(steps))


def test_a_foreign_writer_that_never_pauses_keeps_no_end_back() -> None:
    """A node joins at the first end, and each end after that confirms its table: it may wait no longer for either."""
    setting = FollowedTable()
    setting.feed.node("a").commit()
    follower = crowded(setting)
    for _ in range(3):
        assert ended_within(follower, 3)
        follower.fetch_anew()
    assert follower.table is not None


def test_an_end_that_was_not_whole_is_told_once_a_later_epoch_is() -> None:
    """The repair of the table comes behind the end that was asked for, and no other end is reported beside a flood."""
    setting = FollowedTable()
    setting.feed.node("a").commit()
    setting.feed.write(garbage(b"first"))
    setting.feed.slot(1, "a").commit()
    follower = crowded(setting)
    assert not ended_within(follower, 10)
    setting.feed.repair([b"nonsense", b"foreign"]).commit()
    assert ended_within(follower, 3)


def test_a_flood_keeps_no_reader_from_beginning_again() -> None:
    """A client asks for no confirmation, so that it has to ask for an end by itself where rows come without a table."""
    setting = FollowedTable()
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
    setting = FollowedTable()
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
    setting = FollowedTable()
    setting.feed.node("a").slot(0, "a").commit()
    assert setting.read().ended
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(MemoryLogReader, "start_offsets", _refuse)
        setting.broker.create_topic(TOPIC)
        assert setting.follower.step(0) == Progress((), ended=False)
        with pytest.raises(LogUnavailableError, match="no topic"):
            setting.follower.step(0)
        with pytest.raises(PrerequisiteError, match="no topic"):
            TableFollower(MemoryLogReader(CLUSTER, setting.broker)).step(0)
    setting.feed.slot(0, "a").commit()
    setting.steps(3)


@pytest.mark.parametrize("is_first", [True, False])
def test_a_reader_follows_the_table_while_the_broker_does_not_say_where_it_ends(*, is_first: bool) -> None:
    """The broker may answer fetches and no other request; an agent asks for a new fetch with every heartbeat."""
    setting = FollowedTable()
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


def test_an_end_that_is_asked_for_is_told_beside_a_leader_that_never_pauses() -> None:
    """A node that found the topic empty joins with the first whole table, and knows its end by no other way."""
    setting = FollowedTable()
    setting.feed.node("a").commit()
    follower = TableFollower(BesideLeader(setting))
    assert ended_within(follower, 3)
    assert not ended_within(follower, 10)
    follower.ask_for_end()
    assert ended_within(follower, 3)


def test_an_end_before_one_that_was_told_confirms_too() -> None:
    """The topic has lost what an earlier fetch told of. The reading that waits for it must not wait for ever."""
    setting = FollowedTable()
    setting.feed.node("a").commit()
    setting.steps(3)
    setting.follower.fetch_anew()
    before = setting.broker.partitions(TOPIC)[0].end_offset
    setting.broker.hold_markers_back(TOPIC, 0)
    setting.feed.slot(0, "a").commit()
    assert not any(setting.follower.step(0).confirms for _ in range(3))
    setting.broker.lose_from(TOPIC, 0, before)
    setting.broker.write_markers(TOPIC, 0)
    setting.events.send(garbage(b"one more"))
    assert any(setting.follower.step(0).confirms for _ in range(3))


def test_a_flood_holds_no_confirmation_up() -> None:
    """A node beside a foreign writer that never pauses goes on serving."""
    setting = FollowedTable()
    setting.feed.node("a").commit()
    follower = crowded(setting)
    for _ in range(3):
        follower.fetch_anew()
        assert any(follower.step(0).confirms for _ in range(4))


def test_a_new_fetch_of_a_quiet_topic_asks_for_no_end() -> None:
    """A fetch reports it: thousands of nodes would else send one request more with each heartbeat."""
    setting = FollowedTable()
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
