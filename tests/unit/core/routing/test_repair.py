"""When a leader's epoch is missing in the topic of the table, and how often a damaged table is written again."""

from controlplane.core.routing.repair import OwnEpoch, OwnEpochWatch, RepairPace
from controlplane.core.values.identifiers import Epoch

STALL_MS = 10_000
EPOCH = Epoch(7)


def _repairs(pace: RepairPace, begin_ms: int, end_ms: int) -> list[int]:
    """When it allows a repair of a table that is damaged at every look, each 200 ms."""
    return [now_ms for now_ms in range(begin_ms, end_ms, 200) if pace.allows(now_ms)]


def test_a_flood_of_foreign_records_gives_ever_fewer_repairs() -> None:
    """Seven in the first 64 s, and then one in 64 s."""
    pace = RepairPace()
    assert _repairs(pace, 100_000, 164_000) == [100_000, 101_000, 103_000, 107_000, 115_000, 131_000, 163_000]
    assert _repairs(pace, 164_000, 420_000) == [227_000, 291_000, 355_000, 419_000]


def test_damage_after_a_quiet_time_is_repaired_at_once() -> None:
    """The wait that an old flood has built up is no reason to leave readers without a table."""
    pace = RepairPace()
    _repairs(pace, 100_000, 164_000)
    assert _repairs(pace, 163_800 + 64_000, 163_800 + 66_000) == [227_800, 228_800]


def test_a_flood_of_more_foreign_keys_than_one_repair_removes_gives_ever_fewer_repairs() -> None:
    """The remainder does not shrink, so that repairs one second apart would go on for ever."""
    pace = RepairPace()
    repaired_at_ms: list[int] = []
    for now_ms in range(100_000, 740_000, 200):
        if pace.allows(now_ms):
            pace.continues(20_000 + len(repaired_at_ms) % 2)
            repaired_at_ms.append(now_ms)
    assert len(repaired_at_ms) <= 7 + 640 // 64


def test_repairs_that_each_leave_fewer_foreign_keys_follow_each_other_after_a_second() -> None:
    """A burst of foreign keys is removed in parts, without the waits of a flood."""
    pace = RepairPace()
    repaired_at_ms: list[int] = []
    for now_ms in range(100_000, 110_000, 200):
        if pace.allows(now_ms):
            pace.continues(200_000 - 10_000 * len(repaired_at_ms))
            repaired_at_ms.append(now_ms)
    assert repaired_at_ms == list(range(100_000, 110_000, 1_000))


def _look(watch: OwnEpochWatch, now_ms: int, *, has_moved: bool = False, is_at_end: bool = False) -> OwnEpoch:
    """A look at a topic that does not show the leader's epoch."""
    return watch.look(now_ms, EPOCH, is_shown=False, has_moved=has_moved, is_at_end=is_at_end)


def test_an_epoch_is_missing_only_after_the_topic_was_read_anew_to_its_end() -> None:
    """A client that knew a former topic of the same name may wait without an error."""
    watch = OwnEpochWatch(0, STALL_MS)
    assert _look(watch, STALL_MS - 1, is_at_end=True) is OwnEpoch.AWAITED
    assert _look(watch, STALL_MS, is_at_end=True) is OwnEpoch.OVERDUE
    assert _look(watch, STALL_MS + 1, is_at_end=True) is OwnEpoch.AWAITED
    assert _look(watch, 2 * STALL_MS) is OwnEpoch.OVERDUE, "it did not come to the end"
    assert _look(watch, 3 * STALL_MS, is_at_end=True) is OwnEpoch.MISSING
    assert _look(watch, 3 * STALL_MS + 200, is_at_end=True) is OwnEpoch.MISSING


def test_an_epoch_is_awaited_while_the_topic_moves() -> None:
    """A long topic takes longer to read than it may stand still."""
    watch = OwnEpochWatch(0, STALL_MS)
    for now_ms in range(0, 10 * STALL_MS, STALL_MS):
        assert _look(watch, now_ms, has_moved=True) is OwnEpoch.AWAITED
    assert watch.look(10 * STALL_MS, EPOCH, is_shown=True, has_moved=False, is_at_end=True) is OwnEpoch.SHOWN
    assert _look(watch, 11 * STALL_MS - 1, is_at_end=True) is OwnEpoch.AWAITED
    assert _look(watch, 11 * STALL_MS, is_at_end=True) is OwnEpoch.OVERDUE


def test_a_writer_that_goes_on_hides_no_missing_epoch() -> None:
    """The leader's epoch stands before the end that was asked for after its commit, or nowhere."""
    watch = OwnEpochWatch(0, STALL_MS)
    looks = [_look(watch, now_ms, has_moved=True, is_at_end=True) for now_ms in range(200, 2 * STALL_MS + 200, 200)]
    assert looks.count(OwnEpoch.OVERDUE) == 1
    assert looks[-1] is OwnEpoch.MISSING


def test_an_epoch_that_was_committed_after_the_topic_was_read_anew_is_not_missing() -> None:
    """Its marker may stand behind the end that was asked for before its commit: the end is asked for again."""
    watch = OwnEpochWatch(0, STALL_MS)
    assert _look(watch, STALL_MS, has_moved=True, is_at_end=True) is OwnEpoch.OVERDUE
    later = watch.look(2 * STALL_MS, Epoch(EPOCH + 1), is_shown=False, has_moved=True, is_at_end=True)
    assert later is OwnEpoch.OVERDUE
