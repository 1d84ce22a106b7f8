"""What a controller notes in the lease store, and when: never more often than is of use."""

from collections import Counter

import pytest
from structlog.testing import capture_logs

from controlplane.core.log.log_mark import LogMark
from controlplane.core.values.identifiers import Seq, Term
from controlplane.service.lease_notes import LeaseNotes
from controlplane.testing import MemoryLeaseServer, MemoryLeaseStore, VirtualClock


class Desk:
    """Two controllers' notes in one store, on one clock."""

    def __init__(self) -> None:
        """Kafka acknowledges both."""
        self.clock = VirtualClock()
        self.server = MemoryLeaseServer(self.clock)
        self.acknowledged_at_ms = dict.fromkeys(("leader", "contender"), self.clock.monotonic_ms())
        self.answered_at_ms = dict(self.acknowledged_at_ms)
        self.reached = {"leader", "contender"}
        self.leader, self.contender = self._notes("leader"), self._notes("contender")

    def go_on(self, milliseconds: int, *acknowledged: str) -> None:
        """Let time pass; both exchange ten times a second, and Kafka acknowledges some."""
        for _ in range(0, milliseconds, 100):
            self.clock.advance(100)
            for name in acknowledged:
                self.acknowledged_at_ms[name] = self.clock.monotonic_ms()
            for name in self.reached & set(acknowledged):
                self.answered_at_ms[name] = self.clock.monotonic_ms()
            self.contender.exchange(holds_lease=False)
            self.leader.exchange(holds_lease=True)

    def _notes(self, name: str) -> LeaseNotes:
        store = MemoryLeaseStore(self.server)
        return LeaseNotes(
            store,
            self.clock,
            name,
            lambda: self.clock.monotonic_ms() - self.acknowledged_at_ms[name],
            lambda: self.clock.monotonic_ms() - self.answered_at_ms[name],
        )


def test_a_mark_is_written_once_a_second() -> None:
    """Commits may come by the hundred."""
    desk, written = Desk(), []
    for number in range(50):
        desk.leader.mark(LogMark("log", Term(1), Seq(number)))
        desk.go_on(100, "leader")
        written.append(desk.server.mark and desk.server.mark.seq)
    assert list(dict.fromkeys(written)) == [None, 9, 19, 29, 39, 49]


def test_a_mark_that_the_store_did_not_take_is_written_when_it_answers_again() -> None:
    """The next decision may be minutes away, and until then only the mark shows that the log has lost its end."""
    desk = Desk()
    desk.leader.mark(LogMark("log", Term(1), Seq(7)))
    desk.server.available = False
    desk.go_on(1_500, "leader")
    desk.server.available = True
    desk.go_on(2_000, "leader")
    assert desk.server.mark == LogMark("log", Term(1), Seq(7))


def test_a_store_that_takes_no_notes_is_told_of_once() -> None:
    """Its rules may deny the keys of notes for good, and the leader asks ten times a second."""
    desk = Desk()
    with capture_logs() as logs:
        desk.server.available = False
        desk.go_on(5_000, "contender")
        desk.server.available = True
        desk.go_on(2_000, "contender")
    told = Counter((each["event"], each["log_level"]) for each in logs)
    assert told == {
        ("nothing can be noted in the lease store", "warning"): 2,
        ("the lease store takes and shows notes again", "info"): 2,
    }


def test_a_store_that_lost_the_mark_gets_it_again_from_the_leader() -> None:
    """It may have failed over to a copy without the last writes."""
    desk = Desk()
    desk.leader.mark(LogMark("log", Term(1), Seq(7)))
    desk.go_on(2_000, "leader")
    desk.server.mark = None
    desk.go_on(31_000, "leader")
    assert desk.server.mark == LogMark("log", Term(1), Seq(7))


def test_a_leader_that_is_acknowledged_asks_for_nobody() -> None:
    """It has the answer itself."""
    desk = Desk()
    desk.go_on(5_000, "leader", "contender")
    assert desk.leader.contender_acknowledged_at_ms() is None


def test_a_leader_without_acknowledgements_learns_that_a_contender_has_some() -> None:
    """Within about a second of the contender's."""
    desk = Desk()
    desk.go_on(5_000, "contender")
    contender_at_ms = desk.leader.contender_acknowledged_at_ms()
    assert contender_at_ms is not None
    assert desk.clock.monotonic_ms() - contender_at_ms <= 1_100


def test_a_leader_learns_that_contenders_have_none_either() -> None:
    """The contender's last one is as old as its own."""
    desk = Desk()
    desk.go_on(3_000, "leader", "contender")
    stopped_at_ms = desk.clock.monotonic_ms()
    desk.go_on(8_000)
    assert desk.leader.contender_acknowledged_at_ms() == pytest.approx(stopped_at_ms, abs=1_100)


def test_a_store_that_does_not_answer_knows_of_nobody() -> None:
    """A leader that cannot ask stays."""
    desk = Desk()
    desk.go_on(5_000, "contender")
    desk.server.available = False
    desk.leader.exchange(holds_lease=True)
    assert desk.leader.contender_acknowledged_at_ms() is None


def test_a_leader_that_misses_a_partition_learns_whether_a_contender_does() -> None:
    """Both have ticks acknowledged all the time, in other partitions."""
    desk = Desk()
    desk.go_on(3_000, "leader", "contender")
    assert desk.leader.contender_unanswered_ms() is None
    desk.reached = {"contender"}
    desk.go_on(5_000, "leader", "contender")
    assert desk.leader.contender_unanswered_ms() == pytest.approx(0, abs=1_100)
    desk.reached = set()
    desk.go_on(8_000, "leader", "contender")
    assert desk.leader.contender_unanswered_ms() == pytest.approx(8_000, abs=1_100)
    desk.server.available = False
    desk.leader.exchange(holds_lease=True)
    assert desk.leader.contender_unanswered_ms() is None
