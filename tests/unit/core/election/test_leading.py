"""The controller's machine: the order of a take-over, what ends a leadership, and that nothing else can happen."""

from collections.abc import Iterable

import pytest

from controlplane.core.election.leading import (
    TRANSITIONS,
    UNANSWERED_LIMIT_MS,
    Action,
    Leading,
    LeadingEvent,
    LeadingState,
    LeaseChecked,
    LogRead,
    Looked,
    Step,
    Trigger,
)
from controlplane.core.values.identifiers import Term
from controlplane.core.values.machine import Output
from controlplane.errors import InvariantViolationError

CUT_OFF_AFTER_MS = 2_000
HELD = Looked(Term(4), 0, 0)
TAKE_OVER: tuple[LeadingEvent, ...] = (
    HELD,
    LeaseChecked(confirmed=True, held_term=Term(4)),
    LogRead(Term(3)),
    Trigger.DONE,
    LogRead(Term(3)),
    Trigger.DONE,
    LeaseChecked(confirmed=True, held_term=Term(4)),
    Trigger.COMMITTED,
)


def _after(events: Iterable[LeadingEvent]) -> Leading:
    machine = Leading(CUT_OFF_AFTER_MS)
    for event in events:
        machine.on_event(0, event)
    return machine


def test_a_take_over_runs_through_every_step_in_its_order() -> None:
    """Fence before reading, read before opening the term, ask the lease store before either."""
    machine = Leading(CUT_OFF_AFTER_MS)
    seen = [(output.actions[-1], machine.state.step) for output in (machine.on_event(0, event) for event in TAKE_OVER)]
    assert seen == [
        (Action.CONFIRM_LEASE, Step.CONFIRMING_LEASE),
        (Action.READ_AHEAD, Step.READING_AHEAD),
        (Action.OPEN_WRITER, Step.OPENING_WRITER),
        (Action.READ_LOG, Step.READING_LOG),
        (Action.CATCH_UP, Step.CATCHING_UP),
        (Action.CONFIRM_LEASE, Step.CONFIRMING_AGAIN),
        (Action.OPEN_TERM, Step.OPENING_TERM),
        (Action.OBSERVE, Step.LEADING),
    ]
    assert machine.state == LeadingState(Step.LEADING, Term(4), None)


@pytest.mark.parametrize("log_term", [4, 5])
@pytest.mark.parametrize(
    ("events", "discard"),
    [(TAKE_OVER[:2], ()), (TAKE_OVER[:4], (Action.DISCARD,))],
    ids=["read ahead", "read again"],
)
def test_a_term_that_the_log_holds_is_never_opened(
    events: tuple[LeadingEvent, ...], discard: tuple[Action, ...], log_term: int
) -> None:
    """The store lost its data and counts from the beginning: the election hears of it, and nothing is committed.

    Whether that is known before anybody is fenced, or the log went on until then.
    """
    machine = _after(events)
    output = machine.on_event(0, LogRead(Term(log_term)))
    assert output == Output(None, (*discard, Action.RAISE_FLOOR, Action.FOLLOW))
    assert machine.state == LeadingState()


@pytest.mark.parametrize("events", [TAKE_OVER[:1], TAKE_OVER[:6]])
def test_no_answer_about_the_lease_means_no(events: tuple[LeadingEvent, ...]) -> None:
    """Before anybody is fenced and before the term is opened: others may hold it by now."""
    machine = _after(events)
    output = machine.on_event(0, LeaseChecked(confirmed=False, held_term=Term(4)))
    assert machine.state.step is Step.STEPPING_DOWN
    assert output.actions[-1] is Action.GIVE_LEASE_BACK


@pytest.mark.parametrize("events", [TAKE_OVER[:1], TAKE_OVER[:6]])
def test_a_lease_that_is_ours_under_another_term_is_another_take_over(events: tuple[LeadingEvent, ...]) -> None:
    """Nothing is given back: what we hold now is not what this take-over was about."""
    machine = _after(events)
    output = machine.on_event(0, LeaseChecked(confirmed=False, held_term=Term(5)))
    assert machine.state == LeadingState()
    assert Action.GIVE_LEASE_BACK not in output.actions


@pytest.mark.parametrize(
    ("looked", "step"),
    [
        (Looked(Term(4), CUT_OFF_AFTER_MS, 0), Step.LEADING),
        (Looked(Term(4), CUT_OFF_AFTER_MS + 1, 0), Step.STEPPING_DOWN),
        (Looked(Term(4), 0, 3 * CUT_OFF_AFTER_MS), Step.LEADING),
        (Looked(Term(4), 0, 3 * CUT_OFF_AFTER_MS + 1), Step.STEPPING_DOWN),
        (Looked(None, 0, 0), Step.FOLLOWING),
        (Looked(Term(5), 0, 0), Step.FOLLOWING),
    ],
)
def test_a_leader_goes_on_as_long_as_its_term_is_held_and_kafka_answers(looked: Looked, step: Step) -> None:
    """Losing the lease, also to oneself under another term, ends it; so does silence for a whole lease."""
    machine = _after(TAKE_OVER)
    machine.on_event(0, looked)
    assert machine.state.step is step


def test_a_standby_that_is_cut_off_does_not_stand() -> None:
    """It would win a term that it could not open: during an outage of Kafka, several each second."""
    machine = Leading(CUT_OFF_AFTER_MS)
    machine.on_event(0, Trigger.DONE)
    output = machine.on_event(0, Looked(None, CUT_OFF_AFTER_MS + 1, 0))
    assert (machine.state.step, output.actions) == (Step.STEPPING_DOWN, (Action.STAND_ASIDE, Action.PAUSE))


@pytest.mark.parametrize(
    ("looked", "fit_for_ms"),
    [
        (None, -1),
        (Looked(None, 0, 0), CUT_OFF_AFTER_MS),
        (Looked(None, 1_500, 0), CUT_OFF_AFTER_MS - 1_500),
        (Looked(None, CUT_OFF_AFTER_MS + 1, 0), -1),
        (Looked(None, 0, 3 * CUT_OFF_AFTER_MS - 100), 100),
        (Looked(None, 0, 3 * CUT_OFF_AFTER_MS + 1), -1),
    ],
)
def test_a_standby_is_fit_to_lead_for_as_long_as_its_last_look_vouches_for_it(
    looked: Looked | None, fit_for_ms: int
) -> None:
    """Kafka has to acknowledge, its inputs have to be read, and its loop has to come round."""
    machine = _after([Trigger.DONE] if looked is None else [Trigger.DONE, looked])
    assert machine.is_fit(0) is (fit_for_ms >= 0)
    assert machine.is_fit(fit_for_ms) is (fit_for_ms >= 0)
    assert not machine.is_fit(fit_for_ms + 1)


def test_whoever_fails_at_taking_over_is_not_fit_until_it_has_stood_aside() -> None:
    """For longer each time, though it ticks and reads; only a term that it opens makes that forgotten."""
    machine = Leading(CUT_OFF_AFTER_MS)
    now_ms = 0
    for failures in (1, 2, 3, 4):
        machine.fail(now_ms)
        for fit, at_ms in ((False, 2**failures * CUT_OFF_AFTER_MS - 1), (True, 2**failures * CUT_OFF_AFTER_MS)):
            machine.on_event(now_ms + at_ms, Looked(None, 0, 0))
            assert machine.is_fit(now_ms + at_ms) is fit
        now_ms += at_ms
    machine.fail(now_ms)
    for event in TAKE_OVER[:-1]:
        machine.on_event(now_ms, event)
    assert not machine.is_fit(now_ms)
    machine.on_event(now_ms, TAKE_OVER[-1])
    assert machine.is_fit(now_ms)
    machine.fail(now_ms)
    assert machine.failures.in_a_row == 1


def test_nothing_is_decided_while_a_commit_has_no_answer() -> None:
    """Only its outcome is asked for, even when ticks are unanswered too, and at most for so long."""
    machine = _after(TAKE_OVER)
    machine.on_event(0, HELD)
    machine.on_event(1_000, Trigger.UNANSWERED)
    for now_ms, looked in ((2_000, HELD), (1_000 + UNANSWERED_LIMIT_MS, Looked(Term(4), CUT_OFF_AFTER_MS + 1, 0))):
        assert machine.on_event(now_ms, looked).actions == (Action.ASK_FOR_OUTCOME,)
        assert machine.on_event(now_ms, Trigger.UNANSWERED).actions == (Action.OBSERVE,)
        assert machine.state == LeadingState(Step.AWAITING_ANSWER, Term(4), 1_000)
    machine.on_event(1_001 + UNANSWERED_LIMIT_MS, HELD)
    output = machine.on_event(1_001 + UNANSWERED_LIMIT_MS, Trigger.UNANSWERED)
    assert output.actions == (Action.DISCARD, Action.GIVE_LEASE_BACK)
    assert machine.last_trigger is Trigger.UNANSWERED_FOR_LONG


def test_an_answer_begins_the_count_anew() -> None:
    """Two commits that waited ten seconds each are not one that waited for twenty."""
    machine = _after((*TAKE_OVER, HELD, Trigger.UNANSWERED, HELD, Trigger.COMMITTED, HELD))
    assert machine.state.unanswered_since_ms is None
    machine.on_event(2 * UNANSWERED_LIMIT_MS, Trigger.UNANSWERED)
    assert machine.state.step is Step.AWAITING_ANSWER


def test_what_is_not_in_the_table_is_an_error() -> None:
    """A leader that hears that the log was read has a driver that mixes answers up."""
    with pytest.raises(InvariantViolationError, match="leading does not expect 'term unused'"):
        _after(TAKE_OVER).on_event(0, LogRead(Term(3)))


def test_the_table_asks_before_it_acts() -> None:
    """Nobody is fenced or led without a confirmed lease; nobody gives it back or follows with a writer open."""
    for (before, trigger), row in TRANSITIONS.items():
        if {Action.READ_AHEAD, Action.OPEN_TERM} & set(row.actions):
            assert trigger is Trigger.LEASE_CONFIRMED
        if Action.OPEN_WRITER in row.actions:
            assert (before, trigger) == (Step.READING_AHEAD, Trigger.TERM_UNUSED)
        if Action.DECIDE in row.actions:
            assert trigger is Trigger.LEASE_HELD
    with_writer = {
        Step.OPENING_WRITER,
        Step.READING_LOG,
        Step.CATCHING_UP,
        Step.CONFIRMING_AGAIN,
        Step.OPENING_TERM,
        Step.LEADING,
        Step.AWAITING_ANSWER,
    }
    for (before, _), row in TRANSITIONS.items():
        if before in with_writer and row.step not in with_writer:
            assert row.actions[0] is Action.DISCARD


def test_only_whoever_has_led_stands_again_soon() -> None:
    """A take-over that fails may fail again, and a preferred controller would have every turn."""
    taking_over = {Step.READING_AHEAD, Step.OPENING_WRITER, Step.READING_LOG, Step.CATCHING_UP, Step.OPENING_TERM}
    led = {Step.LEADING, Step.AWAITING_ANSWER}
    for (before, _), row in TRANSITIONS.items():
        assert Action.GIVE_LEASE_BACK not in row.actions or before not in taking_over
        assert Action.LET_OTHERS_TRY not in row.actions or before not in led


def test_every_step_can_be_shut_down_and_every_step_is_reached() -> None:
    """Processes end at any time; a step that no row leads to would be dead."""
    assert {step for step, trigger in TRANSITIONS if trigger is Trigger.SHUT_DOWN} == set(Step)
    assert {row.step for row in TRANSITIONS.values()} == set(Step)
    assert {trigger for _, trigger in TRANSITIONS} == set(Trigger)
