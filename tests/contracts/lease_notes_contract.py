"""What controllers note beside the lease: log id, mark, and answers of Kafka."""

from controlplane.core.log.log_mark import LogMark
from controlplane.core.values.identifiers import Seq, Term
from controlplane.ports import NOTHING_NOTED, LeaseMissing
from tests.helpers.lease_worlds import LeaseWorld

LONG_MS = 60_000


class LeaseNotesContract:
    """Part of the contract of every lease store."""

    def test_the_log_id_is_remembered(self, world: LeaseWorld) -> None:
        """A recreated decision log is noticed by the id that the store still has."""
        store = world.open_store()
        assert store.read_log_id() is None
        store.write_log_id("b1f5")
        assert world.open_store().read_log_id() == "b1f5"
        assert store.read() == LeaseMissing()

    def test_the_latest_mark_of_a_log_is_remembered(self, world: LeaseWorld) -> None:
        """A leader that resumes after a pause must not take it back: the mark shows that a log has lost its end."""
        store = world.open_store()
        assert store.read_mark() is None
        for mark in (LogMark("b1f5", Term(2), Seq(9)), LogMark("b1f5", Term(3), Seq(1 << 52))):
            store.write_mark(mark)
            assert world.open_store().read_mark() == mark
        store.write_mark(LogMark("b1f5", Term(2), Seq(10)))
        assert store.read_mark() == mark
        store.write_mark(LogMark("another log", Term(1), Seq(1)))
        assert store.read_mark() == LogMark("another log", Term(1), Seq(1))
        world.lose_data()
        assert store.read_mark() is None

    def test_the_latest_acknowledgement_of_another_contender_is_told(self, world: LeaseWorld) -> None:
        """A leader without any asks whether others have one; its own from before it led says nothing."""
        store = world.open_store()
        assert store.read_note("a") == NOTHING_NOTED
        store.write_note("b", 5_000, 70_000)
        assert 5_000 <= (store.read_note("a").acknowledged_ms or 0) < 5_000 + LONG_MS
        store.write_note("c", 60_000, 70_000)
        assert 5_000 <= (world.open_store().read_note("a").acknowledged_ms or 0) < 5_000 + LONG_MS
        assert store.read_note("b").acknowledged_ms is None
        store.write_note("a", 100, 70_000)
        assert store.read_note("a").acknowledged_ms is None
        assert 100 <= (store.read_note("b").acknowledged_ms or 0) < 100 + LONG_MS

    def test_the_contender_that_misses_no_partition_is_told_of(self, world: LeaseWorld) -> None:
        """Its note is not hidden by one whose ticks elsewhere were acknowledged later."""
        store = world.open_store()
        store.write_note("b", 9_000, 20_000)
        store.write_note("c", 1_000, 60_000)
        acknowledged_ms, worst_ms = world.open_store().read_note("a")
        assert 1_000 <= (acknowledged_ms or 0) < 1_000 + LONG_MS
        assert 20_000 <= (worst_ms or 0) < 20_000 + LONG_MS
        assert store.read_note("b").longest_unanswered_ms is None
        assert store.read_note("c").longest_unanswered_ms is not None
