"""What every lease store promises, fake or real.

A module that runs these suites has a fixture ``world``, a lease store for each test.
"""

from dataclasses import dataclass

import pytest
from hypothesis import strategies as st

from controlplane.core.log.log_mark import LogMark
from controlplane.core.values.identifiers import ControllerId, ProcessId, Seq, Term
from controlplane.errors import LeaseStoreUnavailableError
from controlplane.ports import LeaseGranted, LeaseHeld, LeaseLeft, LeaseMissing, LeaseRenewed
from tests.contracts.lease_notes_contract import LONG_MS, LeaseNotesContract
from tests.helpers.lease_worlds import LeaseWorld

SHORT_MS = 150
HOUR_MS = 3_600_000


class LeaseContract(LeaseNotesContract):
    """One owner at a time, terms that only grow, and the store's own time."""

    def test_the_first_term_is_one_above_the_floor(self, world: LeaseWorld) -> None:
        """The floor is the greatest term in the log: a store that is new must not grant a term that was used."""
        assert world.open_store().acquire("a", Term(41), LONG_MS) == LeaseGranted(Term(42))

    def test_only_one_owner_at_a_time(self, world: LeaseWorld) -> None:
        """A rival is told who holds the lease, at which term, and for how long."""
        first, second = world.open_store(), world.open_store()
        first.acquire("a", Term(0), LONG_MS)
        told = second.acquire("b", Term(100), LONG_MS)
        assert isinstance(told, LeaseHeld)
        assert (told.owner, told.term) == ("a", Term(1))
        assert 0 < told.remaining_ms <= LONG_MS
        assert second.read() == LeaseHeld("a", "", Term(1), pytest.approx(told.remaining_ms, abs=5_000))  # type: ignore[arg-type] # approximate on purpose

    def test_an_owner_that_acquires_again_gets_a_new_term(self, world: LeaseWorld) -> None:
        """Each take-over is a leadership of its own, also by the same controller."""
        store = world.open_store()
        terms = [store.acquire("a", Term(0), LONG_MS), store.acquire("a", Term(0), LONG_MS)]
        assert terms == [LeaseGranted(Term(1)), LeaseGranted(Term(2))]

    def test_renewing_prolongs_the_lease(self, world: LeaseWorld) -> None:
        """A leader that renews in time is never replaced."""
        store = world.open_store()
        store.acquire("a", Term(0), 2_000)
        assert store.renew("a", Term(1), LONG_MS) == LeaseRenewed(Term(1))
        world.let_time_pass(2_050)
        held = store.read()
        assert isinstance(held, LeaseHeld)
        assert 2_000 < held.remaining_ms <= LONG_MS

    @pytest.mark.parametrize(("owner", "term"), [("b", 1), ("a", 2), ("a", 0), ("", 1)])
    def test_only_owner_and_term_together_renew_and_release(self, world: LeaseWorld, owner: str, term: int) -> None:
        """A controller that was replaced, or its own earlier life, must not keep a lease that it does not hold."""
        store = world.open_store()
        store.acquire("a", Term(0), LONG_MS)
        told = store.renew(owner, Term(term), LONG_MS)
        assert isinstance(told, LeaseHeld)
        assert (told.owner, told.term) == ("a", Term(1))
        assert not store.release(owner, Term(term))
        assert isinstance(store.read(), LeaseHeld)

    def test_another_process_of_a_name_is_another_contender(self, world: LeaseWorld) -> None:
        """Each would take the lease from the other for ever; so it is held for both of them, until it ends."""
        first, second = world.open_store("first"), world.open_store("second")
        assert first.acquire("a", Term(0), LONG_MS) == LeaseGranted(Term(1))
        for told in (second.acquire("a", Term(9), LONG_MS), second.renew("a", Term(1), LONG_MS), second.read()):
            assert isinstance(told, LeaseHeld)
            assert (told.owner, told.process, told.term) == ("a", "first", Term(1))
        assert not second.release("a", Term(1))
        assert first.renew("a", Term(1), SHORT_MS) == LeaseRenewed(Term(1))
        world.let_time_pass(SHORT_MS + 30)
        assert second.acquire("a", Term(0), LONG_MS) == LeaseGranted(Term(2))
        assert second.release("a", Term(2))
        assert first.acquire("a", Term(0), LONG_MS) == LeaseGranted(Term(3))

    def test_a_process_has_its_lease_over_any_connection(self, world: LeaseWorld) -> None:
        """Connections break, and an answer may be lost with one."""
        world.open_store("first").acquire("a", Term(0), LONG_MS)
        again = world.open_store("first")
        assert again.renew("a", Term(1), LONG_MS) == LeaseRenewed(Term(1))
        assert again.acquire("a", Term(0), LONG_MS) == LeaseGranted(Term(2))
        assert again.release("a", Term(2))

    def test_a_lease_runs_out_by_the_stores_time(self, world: LeaseWorld) -> None:
        """A dead leader is replaced without anybody asking it, and the next term is greater."""
        first, second = world.open_store(), world.open_store()
        first.acquire("a", Term(6), SHORT_MS)
        world.let_time_pass(SHORT_MS + 30)
        assert second.read() == LeaseMissing()
        assert first.renew("a", Term(7), LONG_MS) == LeaseMissing()
        assert not first.release("a", Term(7))
        assert second.acquire("b", Term(0), LONG_MS) == LeaseGranted(Term(8))

    def test_releasing_hands_over_at_once_and_keeps_the_term(self, world: LeaseWorld) -> None:
        """Giving the lease back costs nobody a lease duration, and the next leader's term is greater all the same."""
        store = world.open_store()
        store.acquire("a", Term(6), LONG_MS)
        assert store.release("a", Term(7))
        assert store.read() == LeaseMissing()
        assert store.renew("a", Term(7), LONG_MS) == LeaseMissing()
        assert not store.release("a", Term(7))
        assert store.acquire("b", Term(0), LONG_MS) == LeaseGranted(Term(8))

    def test_lost_data_ends_the_lease_and_the_floor_keeps_the_term_up(self, world: LeaseWorld) -> None:
        """A store that restarts empty must not bring back an old term: the log names the floor."""
        store = world.open_store()
        store.acquire("a", Term(9), LONG_MS)
        store.write_log_id("log")
        world.lose_data()
        assert store.renew("a", Term(10), LONG_MS) == LeaseMissing()
        assert store.read_log_id() is None
        assert store.acquire("b", Term(10), LONG_MS) == LeaseGranted(Term(11))

    def test_terms_are_exact_far_beyond_what_is_needed(self, world: LeaseWorld) -> None:
        """Scripts compute with doubles and print them: no exponent, no rounding."""
        store = world.open_store()
        assert store.acquire("a", Term(10**15), LONG_MS) == LeaseGranted(Term(10**15 + 1))
        assert store.renew("a", Term(10**15 + 1), LONG_MS) == LeaseRenewed(Term(10**15 + 1))

    def test_a_free_lease_is_left_to_a_preferred_contender_for_a_while(self, world: LeaseWorld) -> None:
        """Half a duration at most: a lone controller of low priority leads all the same."""
        store = world.open_store()
        store.acquire("a", Term(0), LONG_MS)
        store.acquire("preferred", Term(0), LONG_MS, 5)
        store.acquire("equal", Term(0), LONG_MS, 2)
        assert store.release("a", Term(1))
        left = store.acquire("b", Term(0), 1_000, 2)
        assert isinstance(left, LeaseLeft)
        assert left.left_to == "preferred"
        assert 0 < left.wait_ms <= 500
        assert isinstance(store.acquire("c", Term(0), 1_000), LeaseLeft)
        world.let_time_pass(550)
        assert store.acquire("b", Term(0), 1_000, 2) == LeaseGranted(Term(2))

    def test_the_preferred_contender_has_the_lease_at_once(self, world: LeaseWorld) -> None:
        """Nobody is above it; equals do not wait for each other."""
        store = world.open_store()
        store.acquire("a", Term(0), LONG_MS)
        for owner, priority in (("low", 1), ("high", 7), ("as high", 7)):
            store.acquire(owner, Term(0), LONG_MS, priority)
        assert store.release("a", Term(1))
        assert isinstance(store.acquire("low", Term(0), LONG_MS, 1), LeaseLeft)
        assert store.acquire("as high", Term(0), LONG_MS, 7) == LeaseGranted(Term(2))

    def test_a_lost_store_makes_nobody_wait(self, world: LeaseWorld) -> None:
        """Since when a lease is free that was never granted, nobody knows: it is not left to anybody."""
        store = world.open_store()
        store.acquire("a", Term(0), LONG_MS)
        store.acquire("preferred", Term(0), LONG_MS, 5)
        world.lose_data()
        assert store.contenders() == []
        assert isinstance(store.acquire("b", Term(0), LONG_MS, 0), LeaseGranted)

    def test_a_holder_is_told_who_outranks_it_and_for_how_long(self, world: LeaseWorld) -> None:
        """The most preferred, counted from when it began to ask without a gap; who was away begins anew."""
        store = world.open_store()
        store.acquire("a", Term(0), LONG_MS, 3)
        assert store.renew("a", Term(1), LONG_MS, 3) == LeaseRenewed(Term(1))
        for owner, priority in (("equal", 3), ("high", 5), ("higher", 6)):
            store.acquire(owner, Term(0), LONG_MS, priority)
        world.let_time_pass(200)
        store.acquire("higher", Term(0), LONG_MS, 6)
        told = store.renew("a", Term(1), LONG_MS, 3)
        assert isinstance(told, LeaseRenewed)
        assert told.outranked_by is not None
        assert told.outranked_by[:2] == ("higher", 6)
        assert 200 <= told.outranked_by.present_ms < 5_000
        world.let_time_pass(150)
        # Nobody has asked within 100 ms: all of them are forgotten.
        assert store.renew("a", Term(1), 100, 3) == LeaseRenewed(Term(1))
        assert store.contenders() == []
        store.acquire("higher", Term(0), LONG_MS, 6)
        again = store.renew("a", Term(1), LONG_MS, 3)
        assert isinstance(again, LeaseRenewed)
        assert again.outranked_by is not None
        assert again.outranked_by.present_ms < 100

    def test_a_clock_that_was_set_back_makes_nobody_wait_for_longer_than_a_lease(self, world: LeaseWorld) -> None:
        """A dead holder's lease would last for as long as the step; no lease ends later than it was granted for."""
        store = world.open_store()
        store.acquire("a", Term(0), 1_000)
        world.set_clock_back(HOUR_MS)
        for told in (store.read(), store.acquire("b", Term(0), LONG_MS)):
            assert isinstance(told, LeaseHeld)
            assert (told.owner, told.term) == ("a", Term(1))
            assert 500 < told.remaining_ms <= 1_000
        world.let_time_pass(1_050)
        assert store.read() == LeaseMissing()
        assert store.acquire("b", Term(0), LONG_MS) == LeaseGranted(Term(2))

    def test_a_holder_keeps_its_lease_when_the_clock_was_set_back(self, world: LeaseWorld) -> None:
        """It lives: a clock is no reason for another leader."""
        store = world.open_store()
        store.acquire("a", Term(0), 1_000)
        world.set_clock_back(HOUR_MS)
        assert isinstance(store.acquire("b", Term(0), LONG_MS), LeaseHeld)
        assert store.renew("a", Term(1), 1_000) == LeaseRenewed(Term(1))
        world.set_clock_back(HOUR_MS)
        assert store.renew("a", Term(1), 1_000) == LeaseRenewed(Term(1))
        held = store.read()
        assert isinstance(held, LeaseHeld)
        assert held.remaining_ms <= 1_000
        world.set_clock_back(HOUR_MS)
        assert store.release("a", Term(1))
        assert store.read() == LeaseMissing()

    def test_who_asked_in_the_future_has_not_asked(self, world: LeaseWorld) -> None:
        """A preferred contender that is gone would be waited for, and handed the lease, for as long as the step."""
        store = world.open_store()
        store.acquire("a", Term(0), LONG_MS)
        store.acquire("preferred", Term(0), LONG_MS, 5)
        store.acquire("here", Term(0), LONG_MS, 3)
        world.set_clock_back(HOUR_MS)
        assert store.contenders() == []
        store.acquire("here", Term(0), LONG_MS, 3)
        told = store.renew("a", Term(1), LONG_MS)
        assert isinstance(told, LeaseRenewed)
        assert told.outranked_by is not None
        assert told.outranked_by[:2] == ("here", 3)
        assert 0 <= told.outranked_by.present_ms < 5_000
        assert store.release("a", Term(1))
        assert store.acquire("here", Term(0), LONG_MS, 3) == LeaseGranted(Term(2))

    def test_a_lease_that_was_given_back_in_the_future_is_free(self, world: LeaseWorld) -> None:
        """Nobody knows since when; whoever is preferred has half a lease from the first question on."""
        store = world.open_store()
        store.acquire("a", Term(0), LONG_MS)
        assert store.release("a", Term(1))
        world.set_clock_back(HOUR_MS)
        assert store.read() == LeaseMissing()
        assert store.acquire("b", Term(0), LONG_MS, 1) == LeaseGranted(Term(2))

    def test_contenders_can_be_looked_at(self, world: LeaseWorld) -> None:
        """By name, without the holder, and without who does not want to be counted on."""
        store = world.open_store()
        store.acquire("c2", Term(0), LONG_MS, 4)
        store.acquire("c3", Term(0), LONG_MS, 9)
        store.acquire("c1", Term(0), LONG_MS, 0)
        for priority in (5, None):
            store.acquire("c4", Term(0), LONG_MS, priority)
        found = world.open_store().contenders()
        assert [(each.owner, each.priority) for each in found] == [("c1", 0), ("c3", 9)]
        assert all(0 <= each.asked_ms_ago <= each.present_ms < 10_000 for each in found)

    def test_processes_of_one_name_contend_as_one(self, world: LeaseWorld) -> None:
        """Whoever asked last counts for the name; and nobody hands the lease over to its own name."""
        first, second, third = (world.open_store(process) for process in ("first", "second", "third"))
        first.acquire("a", Term(0), LONG_MS, 1)
        second.acquire("a", Term(0), LONG_MS, 4)
        third.acquire("a", Term(0), LONG_MS, 2)
        assert [(each.owner, each.priority) for each in first.contenders()] == [("a", 2)]
        assert first.renew("a", Term(1), LONG_MS, 1) == LeaseRenewed(Term(1))

    def test_owners_keep_their_names(self, world: LeaseWorld) -> None:
        """Names are the operator's choice: spaces, other alphabets, anything but empty."""
        store = world.open_store()
        store.acquire("contrôleur 1 {x}", Term(0), LONG_MS)
        held = world.open_store().read()
        assert isinstance(held, LeaseHeld)
        assert held.owner == "contrôleur 1 {x}"


class LeaseOutageContract:
    """The store goes away and comes back; ``world`` must be able to do that."""

    def test_no_answer_is_an_error_of_its_own(self, world: LeaseWorld) -> None:
        """A leader may go on without its lease store, so it has to tell "no answer" from "not yours"."""
        store = world.open_store()
        store.acquire("a", Term(0), LONG_MS)
        world.take_away()
        for request in (
            lambda: store.acquire("a", Term(0), LONG_MS),
            lambda: store.renew("a", Term(1), LONG_MS),
            lambda: store.release("a", Term(1)),
            store.read,
            store.contenders,
            store.read_log_id,
            lambda: store.write_log_id("x"),
            store.read_mark,
            lambda: store.write_mark(LogMark("x", Term(1), Seq(1))),
            lambda: store.write_note("a", 1, 1),
            lambda: store.read_note("a"),
        ):
            with pytest.raises(LeaseStoreUnavailableError):
                request()
        world.bring_back()
        fresh = world.open_store()
        assert isinstance(fresh.read(), LeaseHeld | LeaseMissing)


@dataclass(frozen=True, slots=True)
class Step:
    """One thing that happens to the lease; ``value`` is a floor, a term offset or milliseconds."""

    kind: str
    owner: ControllerId
    process: ProcessId
    value: int


steps = st.lists(
    st.builds(
        Step,
        kind=st.sampled_from(["acquire", "renew", "renew", "release", "pass", "lose"]),
        owner=st.sampled_from(["a", "b"]),
        process=st.sampled_from(["first", "second"]),
        value=st.integers(min_value=0, max_value=6),
    ),
    max_size=30,
)
"""What controllers do and what happens to the store."""


def check_lease_history(world: LeaseWorld, history: list[Step], duration_ms: int, step_ms: int) -> None:
    """Whatever happens: one owner at a time, and with a floor from the log no term is ever granted twice.

    Args:
        world: an empty store.
        history: what to do.
        duration_ms: how long a lease is granted for.
        step_ms: how long one step of time is; long leases and no time at all make a history exact on a real clock.
    """
    stores = {process: world.open_store(process) for process in ("first", "second")}
    log_term = Term(0)
    holder: tuple[ControllerId, ProcessId, Term] | None = None
    now_ms = ends_ms = 0
    for step in history:
        store, claimant = stores[step.process], (step.owner, step.process)
        if step.kind == "acquire":
            outcome = store.acquire(step.owner, log_term, duration_ms)
            if holder is not None and holder[:2] != claimant:
                assert isinstance(outcome, LeaseHeld)
                assert (outcome.owner, outcome.process, outcome.term) == holder
            else:
                assert isinstance(outcome, LeaseGranted)
                assert outcome.term > log_term
                log_term = outcome.term
                holder, ends_ms = (*claimant, outcome.term), now_ms + duration_ms
        elif step.kind == "pass":
            world.let_time_pass(step.value * step_ms)
            now_ms += step.value * step_ms
            holder = holder if ends_ms > now_ms else None
        elif step.kind == "lose":
            world.lose_data()
            holder = None
        else:
            term = Term(max(0, log_term - step.value // 3))
            is_holders = holder == (*claimant, term)
            if step.kind == "renew":
                assert isinstance(store.renew(step.owner, term, duration_ms), LeaseRenewed) == is_holders
                ends_ms = now_ms + duration_ms if is_holders else ends_ms
            else:
                assert store.release(step.owner, term) == is_holders
                holder = None if is_holders else holder
        held = store.read()
        if holder is None:
            assert held == LeaseMissing()
        else:
            assert isinstance(held, LeaseHeld)
            assert (held.owner, held.process, held.term) == holder
