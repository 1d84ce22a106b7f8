"""The controller's machine: the order of a take-over, what ends a leadership, and that nothing else can happen."""

from collections.abc import Iterable
from dataclasses import replace

import pytest

from controlplane.core.election.backoff import BackOff, BackoffReason
from controlplane.core.election.leading import (
    NOT_HELD,
    UNANSWERED_LIMIT_MS,
    ControllerMachine,
    HeldLease,
    LeadingAction,
    LeadingEvent,
    LeadingState,
    LeaseChecked,
    LogRead,
    RoundObserved,
)
from controlplane.core.election.steps import (
    REQUESTED,
    TRANSITIONS,
    ControllerAction,
    ControllerPhase,
    ControllerTrigger,
)
from controlplane.core.values.identifiers import Term
from controlplane.core.values.machine import Output
from controlplane.errors import InvariantViolationError

LEASE_MS = 2_000
HELD = HeldLease(Term(4))
HANDED_OVER = HeldLease(None, is_handed_over=True)


def observed(
    since_acknowledged_ms: int, since_last_read_ms: int, stood_still_ms: int, contender_ahead_ms: int | None = 1_001
) -> RoundObserved:
    """A round in which no partition is deaf, and a contender has noted a later acknowledgement."""
    return RoundObserved(
        since_acknowledged_ms,
        since_last_read_ms,
        stood_still_ms,
        is_deaf=False,
        contender_ahead_ms=contender_ahead_ms,
        longest_unanswered_ms=0,
        has_answers=True,
        contender_unanswered_ms=None,
    )


LOOKED = observed(0, 0, 50)
CUT_OFF = observed(LEASE_MS + 1, 0, 50)
DEAF = replace(LOOKED, is_deaf=True)
DEAF_REASON = "deaf to a partition"
TAKE_OVER: tuple[LeadingEvent, ...] = (
    LOOKED,
    LeaseChecked(confirmed=True),
    LogRead(Term(3)),
    ControllerTrigger.DONE,
    LogRead(Term(3)),
    ControllerTrigger.DONE,
    LeaseChecked(confirmed=True),
    ControllerTrigger.COMMITTED,
)


class Driven(ControllerMachine):
    """The machine, told of a lease that is held under term 4, unless a test says something else."""

    def tell(
        self, event: LeadingEvent, *, now_ms: int = 0, hold: HeldLease = HELD, draw: float = 0.0
    ) -> tuple[LeadingAction, ...]:
        """The actions that it answers with."""
        output = self.on_event(now_ms, event, hold, draw)
        assert output == Output(None, output.actions), "it never asks to be woken"
        return output.actions


def after(events: Iterable[LeadingEvent]) -> Driven:
    """A machine to which this has happened, all at one time."""
    machine = Driven(LEASE_MS)
    for event in events:
        machine.tell(event)
    return machine


def test_a_take_over_runs_through_every_step_in_its_order() -> None:
    """Fence before reading, read before opening the term, ask the lease store before either."""
    machine = Driven(LEASE_MS)
    seen = [(actions[-1], machine.state.phase) for actions in (machine.tell(event) for event in TAKE_OVER)]
    assert seen == [
        (ControllerAction.CONFIRM_LEASE, ControllerPhase.CONFIRMING_LEASE),
        (ControllerAction.READ_AHEAD, ControllerPhase.READING_AHEAD),
        (ControllerAction.OPEN_WRITER, ControllerPhase.OPENING_WRITER),
        (ControllerAction.READ_LOG, ControllerPhase.READING_LOG),
        (ControllerAction.CATCH_UP, ControllerPhase.CATCHING_UP),
        (ControllerAction.CONFIRM_LEASE, ControllerPhase.CONFIRMING_AGAIN),
        (ControllerAction.OPEN_TERM, ControllerPhase.OPENING_TERM),
        (ControllerAction.OBSERVE, ControllerPhase.LEADING),
    ]
    assert machine.state == LeadingState(ControllerPhase.LEADING, Term(4), None)


@pytest.mark.parametrize("log_term", [4, 5])
@pytest.mark.parametrize(
    ("events", "discard"),
    [(TAKE_OVER[:2], ()), (TAKE_OVER[:4], (ControllerAction.DISCARD,))],
    ids=["read ahead", "read again"],
)
def test_a_term_that_the_log_holds_is_never_opened(
    events: tuple[LeadingEvent, ...], discard: tuple[ControllerAction, ...], log_term: int
) -> None:
    """The store lost its data and counts from the beginning: the election hears of it, and nothing is committed.

    Whether that is known before anybody is fenced, or the log went on until then.
    """
    machine = after(events)
    assert machine.tell(LogRead(Term(log_term))) == (*discard, ControllerAction.RAISE_FLOOR, ControllerAction.FOLLOW)
    assert machine.state == LeadingState()


@pytest.mark.parametrize("events", [TAKE_OVER[:1], TAKE_OVER[:6]])
def test_no_answer_about_the_lease_means_no(events: tuple[LeadingEvent, ...]) -> None:
    """Before anybody is fenced and before the term is opened: others may hold it by now."""
    machine = after(events)
    actions = machine.tell(LeaseChecked(confirmed=False))
    assert machine.state.phase is ControllerPhase.STEPPING_DOWN
    assert actions[-1] == BackOff(BackoffReason.STEPPED_DOWN, LEASE_MS // 4)


@pytest.mark.parametrize("events", [TAKE_OVER[:1], TAKE_OVER[:6]])
def test_a_lease_that_is_ours_under_another_term_is_another_take_over(events: tuple[LeadingEvent, ...]) -> None:
    """Nothing is given back: what we hold now is not what this take-over was about."""
    machine = after(events)
    actions = machine.tell(LeaseChecked(confirmed=False), hold=HeldLease(Term(5)))
    assert machine.state == LeadingState()
    assert actions[-1] is ControllerAction.FOLLOW
    assert not _back_offs(actions)


def _back_offs(actions: Iterable[LeadingAction]) -> list[BackOff]:
    return [action for action in actions if isinstance(action, BackOff)]


@pytest.mark.parametrize(
    ("observed", "hold", "phase", "reason"),
    [
        (observed(LEASE_MS, 0, 50), HELD, ControllerPhase.LEADING, "lease held"),
        (observed(LEASE_MS + 1, 0, 50), HELD, ControllerPhase.STEPPING_DOWN, "cut off from Kafka"),
        (observed(LEASE_MS + 1, 0, LEASE_MS), HELD, ControllerPhase.STEPPING_DOWN, "cut off from Kafka"),
        (observed(LEASE_MS + 1, 0, LEASE_MS + 1), HELD, ControllerPhase.STEPPING_DOWN, "stalled"),
        (observed(0, 0, LEASE_MS + 1), HELD, ControllerPhase.LEADING, "lease held"),
        (observed(0, 3 * LEASE_MS, 50), HELD, ControllerPhase.LEADING, "lease held"),
        (observed(0, 3 * LEASE_MS + 1, 50), HELD, ControllerPhase.STEPPING_DOWN, "cut off from Kafka"),
        (replace(CUT_OFF, contender_ahead_ms=None), HELD, ControllerPhase.LEADING, "lease held"),
        (replace(CUT_OFF, contender_ahead_ms=1_000), HELD, ControllerPhase.LEADING, "lease held"),
        (replace(CUT_OFF, contender_ahead_ms=None), NOT_HELD, ControllerPhase.FOLLOWING, "lease lost"),
        (
            observed(0, 3 * LEASE_MS + 1, 50, contender_ahead_ms=None),
            HELD,
            ControllerPhase.STEPPING_DOWN,
            "cut off from Kafka",
        ),
        (DEAF, HELD, ControllerPhase.LEADING, "lease held"),
        (replace(DEAF, contender_unanswered_ms=5_000 + LEASE_MS), HELD, ControllerPhase.STEPPING_DOWN, DEAF_REASON),
        (replace(DEAF, contender_unanswered_ms=5_001 + LEASE_MS), HELD, ControllerPhase.LEADING, "lease held"),
        (replace(DEAF, contender_unanswered_ms=0), NOT_HELD, ControllerPhase.FOLLOWING, "lease lost"),
        (
            replace(CUT_OFF, contender_ahead_ms=None, is_deaf=True, contender_unanswered_ms=0),
            HELD,
            ControllerPhase.LEADING,
            "lease held",
        ),
        (LOOKED, NOT_HELD, ControllerPhase.FOLLOWING, "lease lost"),
        (LOOKED, HeldLease(Term(5)), ControllerPhase.FOLLOWING, "lease lost"),
        (LOOKED, HANDED_OVER, ControllerPhase.FOLLOWING, "lease handed over"),
        (observed(LEASE_MS + 1, 0, LEASE_MS + 1), NOT_HELD, ControllerPhase.FOLLOWING, "lease lost"),
    ],
)
def test_a_leader_goes_on_as_long_as_its_term_is_held_and_kafka_answers(
    observed: RoundObserved, hold: HeldLease, phase: ControllerPhase, reason: str
) -> None:
    """Losing the lease, also to itself under another term, ends it; so does silence of Kafka for a whole lease.

    A leader that does not read a partition on leaves it to a contender that Kafka answers about every partition, if one
    has noted that; but not while Kafka acknowledges no controller's ticks.

    The reasons are told apart: an operator looks into another thing for each of them.
    """
    machine = after(TAKE_OVER)
    machine.tell(observed, hold=hold)
    assert (machine.state.phase, machine.last_trigger.value) == (phase, reason)


def test_a_leader_has_time_to_read_again_after_kafka_was_away() -> None:
    """Its reader finds a Kafka that is back later than its writer does, and counts from the first round that sees it.

    The leader may have waited for an answer for long before that round.
    """
    machine = after(TAKE_OVER)
    away = observed(10 * LEASE_MS, 10 * LEASE_MS, 50, contender_ahead_ms=None)
    machine.tell(away, now_ms=0)
    machine.tell(ControllerTrigger.NOTHING_TO_COMMIT, now_ms=0)
    machine.tell(observed(0, 14 * LEASE_MS, 50), now_ms=4 * LEASE_MS)
    assert machine.state.phase is ControllerPhase.LEADING
    machine.tell(ControllerTrigger.NOTHING_TO_COMMIT, now_ms=4 * LEASE_MS)
    machine.tell(observed(0, 17 * LEASE_MS, 50), now_ms=7 * LEASE_MS)
    assert machine.state.phase is ControllerPhase.LEADING
    machine.tell(ControllerTrigger.NOTHING_TO_COMMIT, now_ms=7 * LEASE_MS)
    machine.tell(observed(0, 17 * LEASE_MS + 1, 50), now_ms=7 * LEASE_MS + 1)
    assert (machine.state.phase, machine.last_trigger) == (ControllerPhase.STEPPING_DOWN, ControllerTrigger.CUT_OFF)


@pytest.mark.parametrize(("draw", "wait_ms"), [(0.0, 400), (0.5, 500)])
@pytest.mark.parametrize("hold", [NOT_HELD, HELD])
def test_a_standby_that_is_cut_off_does_not_stand(hold: HeldLease, draw: float, wait_ms: int) -> None:
    """It would win a term that it could not open: during an outage of Kafka, several each second."""
    machine = after([ControllerTrigger.DONE])
    actions = machine.tell(observed(LEASE_MS + 1, 0, LEASE_MS + 1), hold=hold, draw=draw)
    assert actions == (BackOff(BackoffReason.CUT_OFF, wait_ms), ControllerAction.PAUSE)
    assert (machine.state.phase, machine.last_trigger) == (ControllerPhase.STEPPING_DOWN, ControllerTrigger.CUT_OFF)


def test_only_a_holder_backs_off_from_a_failure() -> None:
    """A standby that cannot read the log has not failed at a take-over: it goes on asking, and stays preferred."""
    assert after([ControllerTrigger.DONE]).tell(ControllerTrigger.UNREACHABLE, hold=NOT_HELD) == (
        ControllerAction.PAUSE,
    )
    machine = after([ControllerTrigger.DONE])
    machine.tell(LOOKED, hold=NOT_HELD)
    machine.tell(ControllerTrigger.UNREACHABLE, hold=NOT_HELD)
    assert machine.failures.in_a_row == 0
    assert machine.is_fit(0)


def test_a_failed_take_over_backs_off_for_longer_each_time() -> None:
    """The lease goes back before the pause, and the wait is drawn anew each time."""
    machine = after([ControllerTrigger.DONE])
    for failures, wait_ms in ((1, 3_000), (2, 6_000), (3, 12_000), (4, 12_000)):
        actions = machine.tell(ControllerTrigger.UNREACHABLE, draw=0.5)
        assert actions == (BackOff(BackoffReason.FAILED, wait_ms, failures), ControllerAction.PAUSE)
        machine.tell(ControllerTrigger.DONE)
    assert not machine.is_fit(0)


def test_a_leader_that_resigns_leaves_a_whole_lease_to_others() -> None:
    """Chance plays no part in it, and it is no failure: others may prefer it again at once."""
    machine = after((*TAKE_OVER, LOOKED))
    assert machine.tell(ControllerTrigger.RESIGNED, draw=0.9) == (
        ControllerAction.DISCARD,
        BackOff(BackoffReason.RESIGNED, LEASE_MS),
    )
    assert machine.is_fit(0)


@pytest.mark.parametrize(
    ("observed", "fit_for_ms"),
    [
        (None, -1),
        (observed(0, 0, 50), LEASE_MS),
        (observed(1_500, 0, 50), LEASE_MS - 1_500),
        (observed(LEASE_MS + 1, 0, 50), -1),
        (observed(0, 3 * LEASE_MS - 100, 50), 100),
        (observed(0, 3 * LEASE_MS + 1, 50), -1),
        (DEAF, -1),
    ],
)
def test_a_standby_is_fit_to_lead_for_as_long_as_its_last_look_vouches_for_it(
    observed: RoundObserved | None, fit_for_ms: int
) -> None:
    """Kafka has to acknowledge, its inputs have to be read, and its loop has to come round."""
    machine = after([ControllerTrigger.DONE])
    if observed is not None:
        machine.tell(observed, hold=NOT_HELD)
    assert machine.is_fit(0) is (fit_for_ms >= 0)
    assert machine.is_fit(fit_for_ms) is (fit_for_ms >= 0)
    assert not machine.is_fit(fit_for_ms + 1)


def test_a_controller_that_fails_at_taking_over_is_not_fit_until_its_time_is_over() -> None:
    """For longer each time, though it ticks and reads; only a term that it opens makes that forgotten."""
    machine = after([ControllerTrigger.DONE])
    now_ms = 0

    def fail() -> None:
        machine.tell(ControllerTrigger.UNREACHABLE, now_ms=now_ms)
        machine.tell(ControllerTrigger.DONE, now_ms=now_ms)

    for failures in (1, 2, 3, 4):
        fail()
        for fit, at_ms in ((False, 2**failures * LEASE_MS - 1), (True, 2**failures * LEASE_MS)):
            machine.tell(LOOKED, now_ms=now_ms + at_ms, hold=NOT_HELD)
            assert machine.is_fit(now_ms + at_ms) is fit
        now_ms += at_ms
    fail()
    for event in TAKE_OVER[:-1]:
        machine.tell(event, now_ms=now_ms)
    assert not machine.is_fit(now_ms)
    machine.tell(TAKE_OVER[-1], now_ms=now_ms)
    assert machine.is_fit(now_ms)
    assert machine.failures.in_a_row == 0


def test_nothing_is_decided_while_a_commit_has_no_answer() -> None:
    """Only its outcome is asked for, even when ticks are unanswered too, and at most for so long."""
    machine = after((*TAKE_OVER, LOOKED))
    machine.tell(ControllerTrigger.UNANSWERED, now_ms=1_000)
    rounds = (
        (2_000, LOOKED),
        (1_000 + UNANSWERED_LIMIT_MS, CUT_OFF),
        (1_000 + UNANSWERED_LIMIT_MS, observed(LEASE_MS + 1, 0, LEASE_MS + 1)),
    )
    for now_ms, seen in rounds:
        assert machine.tell(seen, now_ms=now_ms) == (ControllerAction.ASK_FOR_OUTCOME,)
        assert machine.tell(ControllerTrigger.UNANSWERED, now_ms=now_ms) == (ControllerAction.OBSERVE,)
        assert machine.state == LeadingState(ControllerPhase.AWAITING_ANSWER, Term(4), 1_000)
    machine.tell(LOOKED, now_ms=1_001 + UNANSWERED_LIMIT_MS)
    actions = machine.tell(ControllerTrigger.UNANSWERED, now_ms=1_001 + UNANSWERED_LIMIT_MS)
    assert actions == (ControllerAction.DISCARD, BackOff(BackoffReason.STEPPED_DOWN, LEASE_MS // 4))
    assert machine.last_trigger is ControllerTrigger.UNANSWERED_FOR_LONG


def test_an_answer_begins_the_count_anew() -> None:
    """Two commits that waited ten seconds each are not one that waited for twenty."""
    machine = after((*TAKE_OVER, LOOKED, ControllerTrigger.UNANSWERED, LOOKED, ControllerTrigger.COMMITTED, LOOKED))
    assert machine.state.unanswered_since_ms is None
    machine.tell(ControllerTrigger.UNANSWERED, now_ms=2 * UNANSWERED_LIMIT_MS)
    assert machine.state.phase is ControllerPhase.AWAITING_ANSWER


def test_what_is_not_in_the_table_is_an_error() -> None:
    """A leader that hears that the log was read has a driver that mixes answers up."""
    with pytest.raises(InvariantViolationError, match="'leading' has no transition for 'term unused'"):
        after(TAKE_OVER).tell(LogRead(Term(3)))


def test_the_table_asks_before_it_acts() -> None:
    """Nobody is fenced or led without a confirmed lease; nobody gives it back or follows with a writer open."""
    for (before, trigger), row in TRANSITIONS.items():
        if {ControllerAction.READ_AHEAD, ControllerAction.OPEN_TERM} & set(row.actions):
            assert trigger is ControllerTrigger.LEASE_CONFIRMED
        if ControllerAction.OPEN_WRITER in row.actions:
            assert (before, trigger) == (ControllerPhase.READING_AHEAD, ControllerTrigger.TERM_UNUSED)
        if ControllerAction.DECIDE in row.actions:
            assert trigger is ControllerTrigger.LEASE_HELD
    with_writer = {
        ControllerPhase.OPENING_WRITER,
        ControllerPhase.READING_LOG,
        ControllerPhase.CATCHING_UP,
        ControllerPhase.CONFIRMING_AGAIN,
        ControllerPhase.OPENING_TERM,
        ControllerPhase.LEADING,
        ControllerPhase.AWAITING_ANSWER,
    }
    for (before, _), row in TRANSITIONS.items():
        if before in with_writer and row.phase not in with_writer:
            assert row.actions[0] is ControllerAction.DISCARD


def test_only_a_controller_that_has_led_asks_again_soon() -> None:
    """A take-over that fails may fail again, and a preferred controller would have every turn."""
    taking_over = {
        ControllerPhase.READING_AHEAD,
        ControllerPhase.OPENING_WRITER,
        ControllerPhase.READING_LOG,
        ControllerPhase.CATCHING_UP,
        ControllerPhase.OPENING_TERM,
    }
    led = {ControllerPhase.LEADING, ControllerPhase.AWAITING_ANSWER}
    for (before, _), row in TRANSITIONS.items():
        assert BackoffReason.STEPPED_DOWN not in row.actions or before not in taking_over
        assert BackoffReason.FAILED not in row.actions or before not in led


def test_every_step_can_be_shut_down_and_every_step_is_reached() -> None:
    """Processes end at any time; a step that no row leads to would be dead."""
    for ending in (ControllerTrigger.SHUT_DOWN, ControllerTrigger.FAILED):
        assert {phase for phase, trigger in TRANSITIONS if trigger is ending} == set(ControllerPhase)
    assert {row.phase for row in TRANSITIONS.values()} == set(ControllerPhase)
    assert {trigger for _, trigger in TRANSITIONS} == set(ControllerTrigger)


@pytest.mark.parametrize("events", [(), TAKE_OVER[:1], TAKE_OVER[:4], TAKE_OVER, (*TAKE_OVER, LOOKED)])
@pytest.mark.parametrize("ending", [ControllerTrigger.SHUT_DOWN, ControllerTrigger.FAILED])
def test_a_controller_that_ends_only_discards(events: tuple[LeadingEvent, ...], ending: ControllerTrigger) -> None:
    """Its keeper gives the lease back when it is stopped; an error is told apart from what somebody asked for."""
    machine = after(events)
    assert machine.tell(ending, hold=NOT_HELD) == (ControllerAction.DISCARD,)
    assert (machine.last_trigger in REQUESTED) is (ending is ControllerTrigger.SHUT_DOWN)
