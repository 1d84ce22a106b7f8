"""The election machine: who asks when, what an answer means, and that no term is ever held twice or falls."""

from dataclasses import replace
from itertools import product
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.config import LeaseConfig
from controlplane.core.election.contenders import Outranking
from controlplane.core.election.election import (
    TRANSITIONS,
    Contender,
    Election,
    ElectionState,
    GivingBack,
    Holder,
    Outcome,
)
from controlplane.core.election.messages import (
    Acquire,
    ConfirmationAsked,
    ElectionAction,
    ElectionEvent,
    FloorRaised,
    GiveBackAsked,
    GivenBack,
    Granted,
    HeldByOther,
    LeaseGone,
    LeftToOther,
    Release,
    Renew,
    Renewed,
    StoreSilent,
)
from controlplane.core.values.identifiers import Term
from controlplane.core.values.machine import Output, Woke
from controlplane.errors import InvariantViolationError

CONFIG = LeaseConfig(duration_ms=2_000, renew_interval_ms=500, store_timeout_ms=400)


def _contender() -> Election:
    return Election(CONFIG, stop_when_store_is_lost=False)


def _holder(*, stop_when_store_is_lost: bool = False) -> Election:
    """Holds term 4 since 1,000 ms."""
    election = Election(CONFIG, stop_when_store_is_lost=stop_when_store_is_lost)
    election.on_event(1_000, Woke())
    election.on_event(1_010, Granted(Term(4), 1_000))
    return election


def test_a_contender_asks_at_once_and_again_after_an_interval() -> None:
    """A cluster without a leader must not wait; a store that says nothing must not be flooded."""
    election = _contender()
    assert election.on_event(0, Woke()) == Output(500, (Acquire(Term(0)),))
    assert election.on_event(499, Woke()) == Output(500)
    assert election.on_event(500, Woke()) == Output(1_000, (Acquire(Term(0)),))
    assert election.term is None


def test_a_grant_counts_from_before_the_request() -> None:
    """A deadline counted from the answer would be later than the store's own."""
    election = _contender()
    election.on_event(0, Woke())
    assert election.on_event(300, Granted(Term(7), 0)) == Output(500)
    assert election.state == Holder(Term(7), deadline_ms=2_000, renew_at_ms=500, since_ms=0)
    assert election.term == 7


@pytest.mark.parametrize(("remaining_ms", "wait_ms"), [(0, 1), (100, 101), (60_000, 500)])
def test_a_contender_asks_when_the_lease_of_another_ends(remaining_ms: int, wait_ms: int) -> None:
    """It stands by for the end of the lease, and looks in between because it may be given back; it notes the term."""
    election = _contender()
    election.on_event(0, Woke())
    assert election.on_event(10, HeldByOther("c2", Term(9), remaining_ms)) == Output(10 + wait_ms)
    assert election.on_event(10 + wait_ms, Woke()).actions == (Acquire(Term(9)),)


def test_a_holder_renews_in_time_and_on_demand() -> None:
    """Two renewals fit into a lease; somebody about to commit a term may want to know now."""
    election = _holder()
    assert election.on_event(1_499, Woke()) == Output(1_500)
    assert election.on_event(1_500, Woke()) == Output(2_000, (Renew(Term(4)),))
    assert election.on_event(1_510, Renewed(Term(4), 1_500)) == Output(2_000)
    assert election.state == Holder(Term(4), deadline_ms=3_500, renew_at_ms=2_000, since_ms=1_000)
    assert election.on_event(1_600, ConfirmationAsked()) == Output(2_100, (Renew(Term(4)),))


def test_a_renewal_of_a_former_term_prolongs_nothing() -> None:
    """An answer that was long under way must not make a lease longer than the store's."""
    election = _holder()
    before = election.state
    election.on_event(1_100, Renewed(Term(3), 1_050))
    assert election.state == before


def test_a_lease_that_is_left_to_another_is_asked_for_again() -> None:
    """Until it is this one's turn; the term is not touched."""
    election = _contender()
    election.on_event(0, FloorRaised(Term(3)))
    election.on_event(0, Woke())
    assert election.on_event(10, LeftToOther(900)) == Output(910)
    assert election.on_event(910, Woke()).actions == (Acquire(Term(3)),)


@pytest.mark.parametrize(
    ("present_ms", "held_ms", "hands_over"),
    [(60_000, 60_000, True), (59_999, 90_000, False), (90_000, 59_999, False)],
)
def test_a_holder_hands_over_to_a_preferred_contender_of_some_age(
    present_ms: int, held_ms: int, *, hands_over: bool
) -> None:
    """Both have to have lasted: else a contender that comes and goes would move the lease with it."""
    election = _holder()
    now_ms = 1_000 + held_ms
    output = election.on_event(now_ms, Renewed(Term(4), now_ms, Outranking("c9", 5, present_ms)))
    assert output.actions == ((Release(Term(4)),) if hands_over else ())
    if hands_over:
        output = election.on_event(now_ms, GivenBack())
    assert output == Output(now_ms + (CONFIG.duration_ms if hands_over else 500))
    assert election.term == (None if hands_over else 4)


def test_handing_over_can_be_switched_off() -> None:
    """Then priority counts only where a lease is free."""
    election = Election(replace(CONFIG, handover_after_ms=0), stop_when_store_is_lost=False)
    election.on_event(0, Woke())
    election.on_event(0, Granted(Term(1), 0))
    election.on_event(900_000, Renewed(Term(1), 900_000, Outranking("c9", 5, 900_000)))
    assert election.term == 1


def test_a_lease_that_is_gone_is_asked_for_under_a_higher_term() -> None:
    """A store that lost its data would grant term 1 again: our own term is the floor."""
    election = _holder()
    assert election.on_event(1_500, LeaseGone()) == Output(2_000, (Acquire(Term(4)),))
    assert election.term is None


def test_a_lease_that_another_holds_is_lost_at_once() -> None:
    """Two that believe to lead cost time, never safety; but one of them knows now."""
    election = _holder()
    assert election.on_event(1_500, HeldByOther("c2", Term(5), 200)) == Output(1_701)
    assert election.state == Contender(Term(5), 1_701)


def test_a_floor_in_the_log_gives_the_term_up() -> None:
    """The log holds our term or a higher one: only a term above it may open."""
    election = _holder()
    assert election.on_event(1_200, FloorRaised(Term(9))) == Output(1_700, (Acquire(Term(9)),))
    assert election.term is None
    contender = _contender()
    contender.on_event(0, FloorRaised(Term(3)))
    assert contender.on_event(0, Woke()).actions == (Acquire(Term(3)),)


def test_a_holder_that_is_asked_to_gives_back_and_waits() -> None:
    """Others can take over at once, and this one does not win it straight back."""
    election = _holder()
    assert election.on_event(1_200, GiveBackAsked(1_500)).actions == (Release(Term(4)),)
    assert election.term is None
    assert election.on_event(1_210, GivenBack()) == Output(2_700)
    assert election.on_event(2_699, Woke()).actions == ()
    assert election.on_event(2_700, Woke()).actions == (Acquire(Term(4)),)


def test_no_answer_shortens_a_wait_that_was_asked_for() -> None:
    """Whoever is to stand aside stands aside, whether or not the store answers."""
    election = _contender()
    election.on_event(0, GiveBackAsked(1_500))
    assert election.on_event(100, StoreSilent()) == Output(1_500)
    election = _contender()
    election.on_event(0, Woke())
    assert election.on_event(400, StoreSilent()) == Output(900)


def test_giving_back_is_said_again_at_once_to_whoever_asks_again() -> None:
    """It may be about to end, and has no time to wait for its next turn."""
    election = _holder()
    election.on_event(1_200, GiveBackAsked(1_500))
    election.on_event(1_300, StoreSilent())
    assert election.on_event(1_400, GiveBackAsked(0)).actions == (Release(Term(4)),)
    assert election.on_event(1_410, GivenBack()) == Output(2_700)


def test_giving_back_is_said_again_until_the_store_has_heard_it() -> None:
    """Or everybody else would wait for the end of a lease that is nobody's; asking for it anew comes no sooner."""
    election = _holder()
    assert election.on_event(1_200, GiveBackAsked(1_500)) == Output(1_700, (Release(Term(4)),))
    assert election.term is None
    assert election.on_event(1_600, StoreSilent()) == Output(2_100)
    assert election.on_event(2_099, Woke()).actions == ()
    assert election.on_event(2_100, FloorRaised(Term(7))) == Output(2_100)
    assert election.on_event(2_100, Woke()).actions == (Release(Term(4)),)
    assert election.on_event(2_110, GivenBack()) == Output(2_700)
    assert election.on_event(2_200, GiveBackAsked(1_500)) == Output(3_700)
    assert election.on_event(3_700, Woke()).actions == (Acquire(Term(7)),)


def test_a_release_without_an_answer_ends_with_the_wait() -> None:
    """Then the lease is asked for, and nothing is given back that may have been granted anew."""
    election = _holder()
    election.on_event(1_200, GiveBackAsked(1_500))
    election.on_event(1_600, StoreSilent())
    assert election.on_event(2_700, Woke()) == Output(3_200, (Acquire(Term(4)),))
    assert election.state == Contender(Term(4), 3_200)


@pytest.mark.parametrize("stop", [False, True])
def test_a_silent_store_ends_a_leadership_only_where_that_was_asked_for(*, stop: bool) -> None:
    """Commits are fenced by Kafka, so leading on is safe; a setting prefers to stop, but not before the deadline."""
    election = _holder(stop_when_store_is_lost=stop)
    election.on_event(2_999, StoreSilent())
    assert election.term == 4
    election.on_event(3_000, StoreSilent())
    assert election.term == (None if stop else 4)


@pytest.mark.parametrize(("election", "event"), [(_contender(), LeaseGone()), (_holder(), Granted(Term(9), 0))])
def test_an_answer_that_nobody_asked_for_is_an_error(election: Election, event: ElectionEvent) -> None:
    """What is not in the table cannot happen: a driver that lets it happen mixes answers up."""
    with pytest.raises(InvariantViolationError, match="has no transition for"):
        election.on_event(1_000, event)


def test_the_table_has_a_row_for_everything_that_others_may_tell_at_any_time() -> None:
    """Only answers belong to one kind of state: who asked."""
    answers: dict[type, set[type]] = {
        Granted: {Contender},
        LeftToOther: {Contender},
        Renewed: {Holder},
        LeaseGone: {Holder},
        HeldByOther: {Contender, Holder},
        GivenBack: {GivingBack},
    }
    kinds = get_args(ElectionEvent)
    expected = {(state, event) for event in kinds for state in answers.get(event, {Contender, GivingBack, Holder})}
    assert set(TRANSITIONS) == expected


@pytest.mark.parametrize(
    ("event", "outcome"),
    [
        (Renewed(Term(4), 1_000), (Holder(Term(4), 3_000, 1_500, 1_000), Release(Term(4)))),
        (ConfirmationAsked(), (Holder(Term(4), 3_000, 1_500, 1_000), None)),
    ],
)
def test_a_state_that_is_entered_with_a_wish_of_another_row_is_an_error(
    event: ElectionEvent, outcome: tuple[ElectionState, ElectionAction | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A holder that gives back and holds on would lead on a lease that is another's."""
    election = _holder()
    row = replace(TRANSITIONS[Holder, type(event)], follow=lambda *_: outcome)  # type: ignore[arg-type]  # a wrong row
    monkeypatch.setitem(TRANSITIONS, (Holder, type(event)), row)
    with pytest.raises(InvariantViolationError, match="no such outcome"):
        election.on_event(1_200, event)


def test_every_outcome_of_the_table_happens() -> None:
    """What is drawn and never happens would mislead whoever reads it; the machine refuses what is not drawn."""
    states: tuple[ElectionState, ...] = (
        Contender(Term(4), 1_500),
        GivingBack(Term(4), 2_000, Term(4), 1_500),
        Holder(Term(4), 2_000, 1_500, 0),
    )
    events: tuple[ElectionEvent, ...] = (
        Woke(),
        Granted(Term(5), 1_000),
        Renewed(Term(4), 1_000),
        Renewed(Term(4), 1_000, Outranking("c9", 5, CONFIG.handover_after_ms)),
        HeldByOther("c2", Term(5), 100),
        LeftToOther(100),
        LeaseGone(),
        GivenBack(),
        StoreSilent(),
        FloorRaised(Term(9)),
        GiveBackAsked(100),
        ConfirmationAsked(),
    )
    happened = set()
    for state, event, now_ms in product(states, events, (1_000, 1_500, 2_000, CONFIG.handover_after_ms)):
        if (type(state), type(event)) in TRANSITIONS:
            election = Election(CONFIG, stop_when_store_is_lost=True)
            election.state = state
            actions = election.on_event(now_ms, event).actions
            happened.add((type(state), type(event), Outcome(type(election.state), *map(type, actions))))
    assert happened == {(*key, outcome) for key, row in TRANSITIONS.items() for outcome in row.outcomes}


TERMS = st.integers(1, 50).map(Term)
EVENTS: st.SearchStrategy[ElectionEvent] = st.one_of(
    st.just(Woke()),
    st.just(StoreSilent()),
    st.just(ConfirmationAsked()),
    st.builds(HeldByOther, st.sampled_from(["c1", "c2"]), TERMS, st.integers(0, 3_000)),
    st.builds(FloorRaised, TERMS),
    st.builds(GiveBackAsked, st.integers(0, 3_000)),
)


@given(st.lists(st.tuples(st.integers(0, 1_500), EVENTS, st.booleans()), max_size=40), st.booleans())
def test_every_history_asks_above_every_term_it_has_seen(
    history: list[tuple[int, ElectionEvent, bool]], stop: bool
) -> None:
    """Whatever happens: no request below a term that was held or named, no renewal of a lease that is not ours."""
    election = Election(CONFIG, stop_when_store_is_lost=stop)
    now_ms, greatest = 0, 0
    for elapsed_ms, event, store_answers in history:
        now_ms += elapsed_ms
        if isinstance(event, HeldByOther) and isinstance(election.state, GivingBack):
            continue  # it has not asked whose the lease is
        held_before = election.term
        output = election.on_event(now_ms, event)
        if isinstance(event, HeldByOther):
            greatest = max(greatest, event.term)
        elif isinstance(event, FloorRaised):
            greatest = max(greatest, event.floor)
        assert output.next_wake_at_ms is not None
        for action in output.actions:
            match action:
                case Acquire(floor=floor):
                    assert floor >= greatest
                    assert election.term is None
                    if store_answers:
                        greatest = floor + 1
                        election.on_event(now_ms, Granted(Term(greatest), now_ms))
                        assert election.term == greatest
                case Renew(term=term):
                    assert term == held_before == election.term
                    if not store_answers:
                        (acquire,) = election.on_event(now_ms, LeaseGone()).actions
                        assert acquire == Acquire(term)
                        assert election.term is None
                case Release(term=term):
                    assert term == held_before or (held_before is None and term <= greatest)
                    assert election.term is None
                    election.on_event(now_ms, GivenBack() if store_answers else StoreSilent())
