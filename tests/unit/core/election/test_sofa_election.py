"""SOFARegistry's election: each round of the machine, the holes that it reproduces, and what we add for our log."""

import pytest

from controlplane.config import SofaLeaseConfig, SofaRenewal
from controlplane.core.election.lock_record import HAS_NO_LEADER, LeaderInfo, LockReading, LockRecord
from controlplane.core.election.messages import ConfirmationAsked, FloorRaised, GiveBackAsked, StoreSilent
from controlplane.core.election.sofa_election import (
    TRANSITIONS,
    Announce,
    Finding,
    InsertAnswered,
    InsertLock,
    JoinElection,
    LocalTime,
    LockRead,
    Observes,
    Phase,
    QuitElection,
    ReadLock,
    RenewLock,
    SofaElection,
    Stands,
    TakeLockOver,
)
from controlplane.core.values.identifiers import Term
from controlplane.core.values.machine import Output, Woke
from controlplane.errors import ConfigurationError, InvariantViolationError
from controlplane.testing import MemoryLockServer, MemoryLockStore, VirtualClock
from tests.helpers.sofa_electors import MachineElector

CONFIG = SofaLeaseConfig("dc", "lock")
WALL_MS = 1_000_000
ROW = LockRecord("dc", "lock", "a", 20_000, WALL_MS, WALL_MS, 3, 8)


class Fleet:
    """Some electors over one lock, in virtual time."""

    def __init__(self, *names: str, config: SofaLeaseConfig = CONFIG) -> None:
        self.clock = VirtualClock()
        self.server = MemoryLockServer(self.clock)
        self.config = config
        self.electors: dict[str, MachineElector] = {}
        for name in names:
            self.start(name)

    def start(self, name: str, *, observes: bool = False) -> MachineElector:
        """A process begins, perhaps one of a name that was there before."""
        store = MemoryLockStore(self.server, "dc", "lock")
        self.electors[name] = MachineElector(name, store, self.clock, self.config, observes=observes)
        return self.electors[name]

    def kill(self, name: str) -> None:
        """A process is gone."""
        del self.electors[name]

    def run(self, rounds: int) -> None:
        """Every elector makes a round each second."""
        for _ in range(rounds):
            for elector in list(self.electors.values()):
                elector.elect()
            self.clock.advance(1_000)

    @property
    def row(self) -> LockRecord:
        """The lock."""
        return self.server.records["dc", "lock"]

    @property
    def leaders(self) -> list[str]:
        """Who believes to lead."""
        return [name for name, elector in self.electors.items() if elector.leads]

    def seconds_until(self, name: str) -> int:
        """How many rounds until this one leads."""
        for seconds in range(200):
            if self.leaders == [name]:
                return seconds
            self.run(1)
        raise AssertionError(f"{name} never leads")


def _told(row: LockRecord | None, asked_at_ms: int = 0, store_now_ms: int = WALL_MS + 100) -> LockRead:
    return LockRead(LockReading(row, store_now_ms), asked_at_ms)


def test_the_first_round_makes_the_row_and_reads_it_back() -> None:
    """Every request and every answer of a round, and the row alone says who leads."""
    machine = SofaElection("a", CONFIG)
    now = LocalTime(50, WALL_MS + 100)
    assert machine.on_event(now, Woke()) == Output(0, (ReadLock(),))
    assert machine.on_event(now, _told(None)) == Output(0, (InsertLock(),))
    assert machine.on_event(now, InsertAnswered()) == Output(0, (ReadLock(),))
    assert machine.on_event(now, _told(ROW, 40)) == Output(1_050, (Announce(leads=True),))
    assert machine.info == LeaderInfo(WALL_MS, "a", WALL_MS + 10_000)
    assert machine.confirmed_at_ms == 40


def test_who_loses_the_insert_follows() -> None:
    """The insert never fails: the row that is read back names another."""
    machine = SofaElection("b", CONFIG)
    now = LocalTime(50, WALL_MS + 100)
    for event in (Woke(), _told(None), InsertAnswered()):
        machine.on_event(now, event)
    assert machine.on_event(now, _told(ROW)) == Output(1_050)
    assert machine.info.leader == "a"
    assert not machine.leads(now.wall_ms)


def test_a_leader_renews_the_row_as_it_reads_it() -> None:
    """A wake-up before its time, or within a round, does nothing."""
    fleet = Fleet("a")
    fleet.run(1)
    machine = fleet.electors["a"].machine
    row, now = fleet.row, fleet.electors["a"].now
    assert machine.on_event(LocalTime(0, now.wall_ms), Woke()).actions == ()
    assert machine.on_event(now, Woke()).actions == (ReadLock(),)
    assert machine.on_event(now, Woke()).actions == ()
    assert machine.on_event(now, _told(row)).actions == (RenewLock(row), ReadLock())


def test_a_follower_takes_over_what_has_run_out_by_the_stores_time() -> None:
    """Its own clock is not asked: the answer brings the store's."""
    machine = SofaElection("b", CONFIG)
    now = LocalTime(50, 0)
    machine.on_event(now, Woke())
    assert machine.on_event(now, _told(ROW, store_now_ms=WALL_MS + 20_000)).actions == ()
    machine.on_event(LocalTime(1_050, 0), Woke())
    late = _told(ROW, store_now_ms=WALL_MS + 20_001)
    assert machine.on_event(LocalTime(1_050, 0), late).actions == (TakeLockOver(ROW), ReadLock())


def test_the_table_is_total_over_what_can_happen() -> None:
    """An answer to something that was not asked is a defect of the driver, named as such."""
    machine = SofaElection("a", CONFIG)
    with pytest.raises(InvariantViolationError, match="phase resting has no transition for silence"):
        machine.on_event(LocalTime(0, 0), StoreSilent())
    assert {phase for phase, _ in TRANSITIONS} == set(Phase)
    assert {finding for _, finding in TRANSITIONS} == set(Finding)


def test_a_dead_leader_is_followed_after_21_seconds() -> None:
    """The published time line: at least 21 s of the lock, and a round."""
    fleet = Fleet("a", "b", "c")
    fleet.run(3)
    assert fleet.leaders == ["a"]
    fleet.kill("a")
    assert 20 <= fleet.seconds_until("b") <= 23
    assert (fleet.row.owner, fleet.row.term, fleet.row.term_duration) == ("b", 1, 0)
    assert fleet.electors["c"].machine.info.leader == "b"


def test_a_stalled_leader_stops_after_half_the_lock() -> None:
    """By its own clock, without being woken; nobody leads for the other half."""
    fleet = Fleet("a", "b")
    fleet.run(1)
    stalled = fleet.electors.pop("a")
    fleet.run(8)
    led = stalled.leads
    assert led
    fleet.run(1)
    assert not stalled.leads
    fleet.run(10)
    assert not fleet.electors["b"].leads


def test_a_clock_that_is_wrong_by_half_the_lock_never_leads() -> None:
    """The hole: expiry compares the store's time with the local one. Ahead it never leads; behind two may."""
    fleet = Fleet("a")
    fleet.electors["a"].skew_ms = 10_000
    fleet.run(60)
    assert fleet.electors["a"].announced == []
    assert (fleet.row.owner, fleet.row.term) == ("a", 2), "and takes its own lock over again and again"
    behind = Fleet("a", "b")
    behind.electors["a"].skew_ms = -60_000
    behind.run(1)
    stalled = behind.electors.pop("a")
    behind.run(30)
    assert behind.electors["b"].leads
    assert stalled.leads


def test_a_restart_within_half_the_lock_goes_on_leading() -> None:
    """The row names it and is fresh: no take-over, the same term of the row, but a new one for the log."""
    fleet = Fleet("a", "b")
    fleet.run(3)
    fleet.kill("a")
    fleet.run(5)
    fleet.start("a").elect()
    assert fleet.leaders == ["a"]
    assert fleet.row.term == 0


def test_a_restart_after_half_the_lock_waits_for_the_whole_one() -> None:
    """The hole: the row names it, it does not believe it, so it follows itself until the lock has run out."""
    fleet = Fleet("a")
    fleet.run(1)
    fleet.kill("a")
    fleet.clock.advance(10_000)
    again = fleet.start("a")
    assert 9 <= fleet.seconds_until("a") <= 12
    assert (fleet.row.owner, fleet.row.term) == ("a", 1)
    assert again.announced == [True]


def test_observers_read_and_never_win() -> None:
    """Not even an empty table, nor a lock that has run out."""
    fleet = Fleet()
    fleet.start("o", observes=True)
    fleet.run(5)
    assert fleet.server.records == {}
    fleet.start("a")
    fleet.run(2)
    assert fleet.electors["o"].machine.info.leader == "a"
    fleet.kill("a")
    fleet.run(60)
    assert (fleet.row.owner, fleet.row.term) == ("a", 0)
    assert fleet.electors["o"].announced == []
    fleet.server.lose_data()
    fleet.run(1)
    assert fleet.electors["o"].machine.info == HAS_NO_LEADER


def test_quitting_the_election_leads_on_for_half_the_lock() -> None:
    """The hole: nothing is given back. The leader leads for 10 s unrenewed, and then nobody does for 11."""
    fleet = Fleet("a", "b")
    fleet.run(1)
    fleet.electors["a"].tell(QuitElection())
    fleet.run(8)
    assert fleet.leaders == ["a"]
    fleet.run(2)
    assert fleet.leaders == []
    assert fleet.seconds_until("b") >= 9
    assert fleet.electors["a"].announced == [True, False]
    fleet.electors["a"].tell(JoinElection())
    fleet.kill("b")
    assert fleet.seconds_until("a") >= 20


def test_leading_is_announced_once_for_each_time() -> None:
    """However many rounds there are in between."""
    fleet = Fleet("a", "b")
    fleet.run(40)
    fleet.electors["a"].tell(GiveBackAsked(0))
    fleet.run(60)
    fleet.kill("b")
    fleet.run(60)
    assert fleet.electors["a"].announced == [True, False, True]


def test_whoever_is_to_give_back_stops_at_once_and_lets_others_come_first() -> None:
    """Ours: there is no giving back, so the lock has to run out, and then another one has it."""
    fleet = Fleet("a", "b")
    fleet.run(1)
    yielding = fleet.electors["a"]
    assert yielding.machine.term_at(yielding.wall_ms()) == 1
    yielding.tell(GiveBackAsked(500))
    assert yielding.announced == [True, False]
    assert yielding.machine.term_at(yielding.wall_ms()) is None
    assert 20 <= fleet.seconds_until("b") <= 23
    fleet.run(1)
    assert isinstance(yielding.machine.stance, Stands)


def test_whoever_gives_back_alone_leads_again() -> None:
    """With a greater term, when the lock has run out."""
    fleet = Fleet("a")
    fleet.run(1)
    elector = fleet.electors["a"]
    elector.tell(GiveBackAsked(500))
    fleet.run(25)
    assert elector.machine.term_at(elector.wall_ms()) == 2
    observer = SofaElection("o", CONFIG, observes=True)
    observer.on_event(LocalTime(0, 0), GiveBackAsked(5))
    assert isinstance(observer.stance, Observes)


@pytest.mark.parametrize("first_term", [0, 1])
def test_the_terms_of_an_untouched_row_are_the_terms_of_the_log(first_term: int) -> None:
    """Counting leaderships from 1, whichever number a new row begins with."""
    fleet = Fleet("a", config=SofaLeaseConfig("dc", "lock", first_term=first_term))
    terms = []
    for leader, successor in (("a", "b"), ("b", "c"), ("c", "d")):
        fleet.seconds_until(leader)
        elector = fleet.electors[leader]
        terms.append(elector.machine.term_at(elector.wall_ms()))
        fleet.kill(leader)
        fleet.start(successor)
    assert terms == [1, 2, 3]
    assert fleet.row.term == first_term + 2


def test_a_lost_row_never_lets_the_term_fall() -> None:
    """The new row begins anew; the log says what its terms are, and everybody's next one is greater."""
    fleet = Fleet("a")
    fleet.run(1)
    elector = fleet.electors["a"]
    elector.tell(FloorRaised(Term(41)))
    assert elector.machine.term_at(elector.wall_ms()) == 42
    elector.tell(FloorRaised(Term(7)))
    assert elector.machine.term_at(elector.wall_ms()) == 42
    fleet.server.lose_data()
    fleet.run(2)
    assert fleet.row.term == 0
    assert elector.machine.term_at(elector.wall_ms()) == 42, "it never stopped, by its own clock"
    fleet.clock.advance(10_000)
    assert elector.machine.term_at(elector.wall_ms()) is None
    fleet.run(15)
    assert elector.machine.term_at(elector.wall_ms()) == 43


def test_a_leadership_that_came_back_has_another_term() -> None:
    """Another one may have led in between: the log must be able to tell."""
    fleet = Fleet("a")
    fleet.run(1)
    elector = fleet.electors["a"]
    elector.skew_ms = 15_000
    elector.elect()
    elector.skew_ms = 0
    elector.elect()
    assert elector.machine.term_at(elector.wall_ms()) == 2


def test_a_confirmation_is_a_round_at_once() -> None:
    """Somebody about to open a term has to know now; silence confirms nothing."""
    fleet = Fleet("a")
    fleet.run(1)
    elector = fleet.electors["a"]
    fleet.clock.advance(300)
    assert elector.machine.confirmed_at_ms == 0
    elector.tell(ConfirmationAsked())
    assert elector.machine.confirmed_at_ms == 1_300
    fleet.clock.advance(300)
    fleet.server.available = False
    elector.tell(ConfirmationAsked())
    assert elector.machine.confirmed_at_ms == 1_300
    assert elector.leads


@pytest.mark.parametrize("renewal", SofaRenewal)
def test_only_the_guarded_renewal_notices_a_second_process_of_its_name(renewal: SofaRenewal) -> None:
    """The hole of 2022: two processes of one name both renew one row, and both lead. The guard lets one renew."""
    fleet = Fleet("a", config=SofaLeaseConfig("dc", "lock", renewal=renewal))
    fleet.run(1)
    first, second = fleet.electors["a"], fleet.start("a")
    stale = fleet.row
    for elector in (first, second):
        elector.elect()
    store = MemoryLockStore(fleet.server, "dc", "lock")
    assert store.renew(stale, guarded=renewal is SofaRenewal.GUARDED) == (renewal is SofaRenewal.OWNER)
    assert first.leads
    assert second.leads


@pytest.mark.parametrize(
    "settings",
    [
        {"data_center": ""},
        {"lock_name": ""},
        {"duration_ms": 3_000},
        {"loop_interval_ms": 0},
        {"first_term": 2},
    ],
)
def test_a_lock_that_nobody_could_hold_is_refused(settings: dict[str, object]) -> None:
    """Before anything is written under it."""
    with pytest.raises(ConfigurationError):
        SofaLeaseConfig(**settings)  # type: ignore[arg-type] # settings of that class
