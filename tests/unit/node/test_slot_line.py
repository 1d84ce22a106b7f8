"""Calls for slots: in which order they are made, and what waits for one that hangs."""

from controlplane.config import ROUTING_TABLE, ClusterConfig
from controlplane.core.routing.replica import RoutingTable
from controlplane.core.values.identifiers import Epoch, SlotId, Term
from controlplane.node.callbacks import Changes, FencingToken, SlotGained, SlotLost, SlotReleasing
from controlplane.node.handoff_settings import HandoffSettings
from controlplane.node.slot_line import SlotCall, SlotLine
from controlplane.testing import MemoryBroker, MemoryLogReader, MemoryTransactionalWriter, VirtualClock
from controlplane.topic_reading.table_follower import TableFollower
from tests.helpers.table_feed import TableFeed

LIMIT_MS = 10_000
SETTINGS = HandoffSettings(release_limit_ms=5_000, open_limit_ms=LIMIT_MS, hung_calls_at_most=2)


def tables(count: int) -> list[RoutingTable]:
    """So many tables, one after the other."""
    cluster, broker = ClusterConfig("test"), MemoryBroker(VirtualClock())
    broker.create_topic(cluster.topic(ROUTING_TABLE))
    feed = TableFeed(MemoryTransactionalWriter(cluster, broker)).settings(4, 3)
    for _ in range(count):
        feed.node("n").commit()
    return list(TableFollower(MemoryLogReader(cluster, broker)).step(0).tables)


def gained(*slot_ids: int, epoch: int = 1, part_of: int | None = None) -> Changes:
    """Gains of slots."""
    of = None if part_of is None else SlotId(part_of)
    token = FencingToken(Term(1), Epoch(epoch))
    return Changes(
        Epoch(epoch), gained=tuple(SlotGained(SlotId(each), True, token, Epoch(epoch), (), of) for each in slot_ids)
    )


def lost(*slot_ids: int, epoch: int) -> Changes:
    """Losses of slots."""
    return Changes(Epoch(epoch), tuple(SlotLost(SlotId(each), True, Epoch(epoch), "a") for each in slot_ids))


def begun(line: SlotLine, now_ms: int = 0) -> SlotCall:
    """The call that begins."""
    call = line.begin(now_ms)
    assert call is not None
    return call


def test_calls_are_made_one_after_the_other_and_each_sees_its_own_table() -> None:
    """A table that changes nothing has no call, and is shown as soon as those before it were told."""
    line, (first, second, third) = SlotLine(SETTINGS), tables(3)
    line.follow(first, gained(0, 1))
    line.follow(second, lost(0, epoch=2))
    line.follow(third, Changes(Epoch(3)))
    call = begun(line)
    assert (sorted(call.slot_ids), line.table) == ([0, 1], first)
    assert line.begin(0) is None
    assert line.table is first
    line.finish(call)
    call = begun(line)
    assert (call.changes, line.table) == (lost(0, epoch=2), second)
    assert not line.is_idle
    line.finish(call)
    assert line.begin(0) is None
    assert (line.table, line.is_idle) == (third, True)


def test_a_call_that_hangs_holds_up_its_own_slots_only() -> None:
    """What was due for them is reported in its order when it has returned, and not before."""
    line, (first, second, third) = SlotLine(SETTINGS), tables(3)
    line.follow(first, gained(0, 1))
    hung = begun(line, 5)
    line.follow(second, lost(1, 2, epoch=2))
    line.follow(third, gained(1, 3, epoch=3))
    assert (line.hangs_at_ms, line.attend(5 + LIMIT_MS - 1)) == (5 + LIMIT_MS, None)
    assert line.attend(5 + LIMIT_MS) is hung
    assert (line.attend(5 + LIMIT_MS), line.hangs_at_ms) == (None, None)
    call = begun(line)
    assert call.changes == lost(2, epoch=2)
    line.finish(call)
    call = begun(line)
    assert (call.changes, line.table) == (gained(3, epoch=3), third)
    line.finish(call)
    assert line.begin(0) is None
    assert line.is_idle
    line.finish(hung)
    for expected in (lost(1, epoch=2), gained(1, epoch=3)):
        call = begun(line)
        assert call.changes == expected
        line.finish(call)
    assert line.begin(0) is None


def test_what_waits_behind_a_call_that_hangs_holds_up_what_follows_for_the_same_slots() -> None:
    """A loss may not overtake a gain that was not reported."""
    line, (first, second, third) = SlotLine(SETTINGS), tables(3)
    line.follow(first, gained(0))
    hung = begun(line)
    line.attend(LIMIT_MS)
    # The part of slot 0 is reported before slot 0 is lost, and slot 0 waits.
    split = Changes(Epoch(2), lost(4, epoch=2).lost, gained(0, epoch=2, part_of=4).gained)
    line.follow(second, split)
    line.follow(third, lost(4, epoch=3))
    assert line.begin(LIMIT_MS) is None
    line.finish(hung)
    assert begun(line).changes == split


def test_a_slot_that_is_lost_waits_for_the_report_of_its_part() -> None:
    """Its data may be deleted after the loss was reported, and the part is in it."""
    changes = Changes(Epoch(2), lost(0, 1, epoch=2).lost, gained(4, epoch=2, part_of=0).gained)
    free, rest = changes.apart({SlotId(4)})
    assert (sorted(free.slot_ids), sorted(rest.slot_ids)) == ([1], [0, 4])
    assert changes.apart({SlotId(9)}) == (changes, Changes(Epoch(2)))


def test_so_many_calls_may_hang_and_no_further_one_is_made() -> None:
    """Each of them has a thread of its own."""
    line, (first, *_) = SlotLine(SETTINGS), tables(1)
    for slot_id in range(3):
        line.follow(first, gained(slot_id))
    hung = []
    for _ in range(SETTINGS.hung_calls_at_most):
        hung.append(begun(line))
        line.attend(LIMIT_MS)
    assert line.begin(0) is None
    line.finish(hung[0])
    assert begun(line).slot_ids == {2}


def test_a_release_goes_before_tables_that_were_not_told() -> None:
    """A node waits for it. It has a limit of its own."""
    line, (first, second) = SlotLine(SETTINGS), tables(2)
    line.follow(first, gained(0))
    call = begun(line)
    line.follow(second, lost(0, epoch=2))
    release = Changes(Epoch(1), releasing=(SlotReleasing(SlotId(0), Epoch(1), "a"),))
    line.release(release)
    line.finish(call)
    call = begun(line)
    assert (call.changes, line.table) == (release, first)
    assert line.hangs_at_ms == SETTINGS.release_limit_ms
