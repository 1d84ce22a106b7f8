"""Slots that a node has to release: what it answers, what a release waits for, and what its heartbeats say."""

import pytest

from controlplane.config import ROUTING_TABLE, ClusterConfig
from controlplane.core.slots.reports import ReleasedSlots
from controlplane.core.values.identifiers import Epoch, SlotId
from controlplane.node.callbacks import Access, Changes
from controlplane.node.handoff_settings import HandoffSettings
from controlplane.node.holdings import HoldingBook
from controlplane.node.slot_releases import AcceptedSlotRequest
from controlplane.testing import MemoryBroker, MemoryLogReader, MemoryTransactionalWriter, VirtualClock
from controlplane.topic_reading.table_follower import TableFollower
from tests.helpers.table_feed import TableFeed

CLUSTER = ClusterConfig("test")
INCARNATION = 7
LIMIT_MS = 2_000
RELEASE_LIMIT_MS = 5_000
SLOT = SlotId(0)


class Setting:
    """Node ``n`` leads slot 0, has its data, and follows the table."""

    def __init__(self) -> None:
        broker = MemoryBroker(VirtualClock())
        broker.create_topic(CLUSTER.topic(ROUTING_TABLE))
        self.feed = TableFeed(MemoryTransactionalWriter(CLUSTER, broker))
        self.book = HoldingBook("n", settings=HandoffSettings(LIMIT_MS, RELEASE_LIMIT_MS))
        self._follower = TableFollower(MemoryLogReader(CLUSTER, broker))
        self.now_ms = 0
        self.changes = Changes(Epoch(0))
        self.feed.settings(4, 3).node("a").node("n", incarnation=INCARNATION).slot(SLOT, "n", "a")
        self.follow()
        self.book.mark_ready(SLOT, None)

    def follow(self, *, told: bool = True) -> Epoch:
        """Commit what is staged and let the book follow it; ``told`` lets the callbacks return, also for releases."""
        self.feed.commit()
        for table in self._follower.step(0).tables:
            self.changes = self.book.follow(table, INCARNATION, self.now_ms)
            if told:
                self.tell()
        return self.book.epoch

    def tell(self) -> None:
        """The callbacks for the newest table return, and those for the releases that are due then."""
        self.book.begin(self.changes)
        self.book.finish(self.changes)
        self.let_release()

    def let_release(self) -> list[SlotId]:
        """The service releases what is due."""
        changes = self.book.releasing()
        if changes is None:
            return []
        assert self.book.releasing() is None
        self.book.finish(changes)
        return [each.slot_id for each in changes.releasing]

    def release(self, *, told: bool = True) -> Epoch:
        """The table tells the node to release slot 0 to ``a``."""
        self.feed.releasing(SLOT, "n", "a", next_leader="a", release_epoch=Epoch(self.book.epoch + 1))
        return self.follow(told=told)

    def accept(self, slot_id: SlotId = SLOT) -> AcceptedSlotRequest:
        """A request that the node accepts."""
        _, call = self.book.accept(slot_id)
        assert call is not None
        return call

    def said(self) -> tuple[ReleasedSlots, ...]:
        """What the next heartbeat says."""
        return self.book.report(0).released


@pytest.fixture
def setting() -> Setting:
    """A leader with data."""
    return Setting()


def test_nothing_is_accepted_from_the_moment_at_which_the_row_is_read(setting: Setting) -> None:
    """The refusal names the node that is next."""
    setting.release(told=False)
    ownership, call = setting.book.accept(SLOT)
    assert (ownership.access, ownership.ask, call) == (Access.MOVED, "a", None)


def test_a_release_is_said_once_callbacks_have_returned_and_requests_have_ended(setting: Setting) -> None:
    """The next leader serves as soon as this is read."""
    call = setting.accept()
    epoch = setting.release(told=False)
    assert setting.said() == ()
    setting.tell()
    assert setting.said() == ()
    due = [setting.book.has_due_releases]
    setting.book.leave(call)
    due.append(setting.book.has_due_releases)
    assert (setting.said(), due) == ((), [False, True])
    news = [setting.book.has_news]
    assert setting.let_release() == [SLOT]
    news.append(setting.book.has_news)
    assert setting.said() == (ReleasedSlots(epoch, (0, 1)),)
    assert [*news, setting.book.has_news] == [False, True, False]
    assert setting.said() == (ReleasedSlots(epoch, (0, 1)),), "heartbeats repeat it until the row changes"


def test_a_release_without_requests_waits_for_the_callbacks(setting: Setting) -> None:
    """The service may have to do something before another node serves."""
    call = setting.accept()
    epoch = setting.release(told=False)
    setting.book.leave(call)
    assert not setting.book.has_due_releases
    assert setting.said() == ()
    setting.tell()
    assert setting.said() == (ReleasedSlots(epoch, (0, 1)),)


@pytest.mark.parametrize("told", [True, False])
def test_a_service_that_does_not_release_in_time_holds_nothing_up(setting: Setting, told: bool) -> None:
    """It hangs in the call for the release, or in the one before: the node says after a limit that it has released."""
    setting.now_ms = 1_000
    epoch = setting.release(told=False)
    if told:
        setting.book.finish(setting.changes)
        assert setting.book.releasing() is not None
    limit_ms = 1_000 + LIMIT_MS + RELEASE_LIMIT_MS
    assert setting.book.attend(limit_ms - 1) == limit_ms
    assert setting.said() == ()
    assert setting.book.attend(limit_ms) is None
    assert setting.said() == (ReleasedSlots(epoch, (0, 1)),)
    assert setting.book.releasing() is None


def test_a_request_that_takes_too_long_is_voided(setting: Setting) -> None:
    """Its end must not be taken for a success, and the release waits no longer."""
    call = setting.accept()
    setting.now_ms = 1_000
    setting.release()
    seen = [(setting.book.attend(now_ms), call.is_void) for now_ms in (1_000 + LIMIT_MS - 1, 1_000 + LIMIT_MS)]
    limit_ms = 1_000 + LIMIT_MS + RELEASE_LIMIT_MS
    assert seen == [(1_000 + LIMIT_MS, False), (limit_ms, True)]
    assert setting.let_release() == [SLOT]
    assert setting.said()
    setting.book.leave(call)
    assert setting.book.attend(limit_ms) is None


def test_a_release_that_is_taken_back_lets_the_node_serve_on(setting: Setting) -> None:
    """Under the same token, and with its data, as soon as the service knows that it has to."""
    before = setting.book.ownership(SLOT).token
    setting.release()
    setting.feed.slot(SLOT, "n", "a")
    setting.follow(told=False)
    assert setting.said() == ()
    assert setting.book.ownership(SLOT).access is Access.MIGRATING, "the service has closed it"
    setting.tell()
    after = setting.book.ownership(SLOT)
    assert after.access is Access.ACCEPT
    assert after.token.term == before.term


def test_a_release_that_is_taken_back_before_the_service_has_begun_to_is_no_gap(setting: Setting) -> None:
    """The service has the slot open."""
    setting.release(told=False)
    setting.feed.slot(SLOT, "n", "a")
    setting.follow(told=False)
    assert setting.book.ownership(SLOT).access is Access.ACCEPT
    setting.book.finish(setting.changes)
    assert setting.book.releasing() is None


def test_a_second_release_has_to_be_told_again(setting: Setting) -> None:
    """What was said for the first one consents to nothing."""
    setting.release()
    setting.feed.slot(SLOT, "n", "a")
    setting.follow()
    call = setting.accept()
    second = setting.release()
    assert setting.said() == ()
    setting.book.leave(call)
    assert setting.let_release() == [SLOT]
    assert setting.said() == (ReleasedSlots(second, (0, 1)),)


def test_a_slot_that_is_lost_voids_its_requests(setting: Setting) -> None:
    """Another node may have accepted requests since."""
    call = setting.accept()
    setting.feed.slot(SLOT, "a", "n")
    setting.follow()
    assert call.is_void
    assert setting.said() == ()


def test_the_release_of_a_part_waits_for_the_requests_of_the_whole(setting: Setting) -> None:
    """The key of such a request may belong to the part."""
    call = setting.accept()
    setting.feed.settings(8, 3)
    setting.follow()
    setting.book.mark_ready(SlotId(4), None)
    setting.feed.releasing(SlotId(4), "n", "a", next_leader="a", release_epoch=Epoch(setting.book.epoch + 1))
    epoch = setting.follow()
    assert setting.said() == ()
    setting.book.leave(call)
    assert setting.let_release() == [SlotId(4)]
    assert setting.said() == (ReleasedSlots(epoch, (4, 1)),)
