"""The state machine of a controller: follow, take over, lead, step down. It does no I/O.

The order of the steps of a take-over makes a new leader safe, whatever the former one still does:

1. Win the lease, and confirm it.
2. Read the log ahead. A term that the log already holds is given up for a greater one, here and in step 4.
3. Open the writer. This fences the former leader and aborts its open transaction. Then write a barrier.
4. Read the log past the barrier, with a reader that begins after step 3.
5. Observe the inputs up to now.
6. Confirm the lease again.
7. Commit *term opened*.

All effects are commits, and Kafka fences commits. So a controller that is wrong about the lease costs time, but not
safety.

Step 2 adds no safety, because the log may grow until the writer is opened. It avoids unnecessary fencing: a controller
that cannot read the log, or whose term is already used (the lease store may have lost its data), fences no writer.

The driver performs the actions in order and passes the answer of the last one to the machine as the next event. If
Kafka or the lease store does not answer, or Kafka refuses the writer, the driver drops the remaining actions.
"""

from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias

from controlplane.core.election.backoff import BackOff, BackoffReason, Failures, backoff_ms
from controlplane.core.election.steps import TRANSITIONS, ControllerAction, ControllerPhase, ControllerTrigger, Planned
from controlplane.core.values.identifiers import Term
from controlplane.core.values.machine import Output
from controlplane.errors import InvariantViolationError

UNANSWERED_LIMIT_MS: Final = 15_000
"""Time without an answer to a commit after which the controller steps down. The log then shows the outcome."""
DEAF_AFTER_MS: Final = 10_000
"""Time for which a leader may miss what others could see. Clients recover from the failure of a broker in less."""
ANSWERED_WITHIN_MS: Final = 5_000
"""A controller that reaches every partition is answered about each within this: it ticks and asks for ends at least
every 2 s."""
ASKED_APART_MS: Final = 3_000
"""More than the difference between the last answers to two controllers about a partition that loses its leader."""
CLEARLY_LATER_MS: Final = 1_000
"""More than the difference between the last acknowledgements of two controllers that lose Kafka at the same time."""
_READ_GRACE_FACTOR: Final = 3
"""Limit for reading nothing, as a multiple of the limit for writing. After a broker's failure clients reconnect one by
one, and a leader that cannot read for a moment commits nothing wrong."""


class HeldLease(NamedTuple):
    """The state of the lease at one moment, as the election thread knows it.

    Attributes:
        term: the term of the lease that this controller holds; None if it holds none.
        is_handed_over: whether it holds none because it handed the lease over to a preferred controller.
    """

    term: Term | None = None
    is_handed_over: bool = False


NOT_HELD: Final = HeldLease()


@dataclass(frozen=True, slots=True)
class RoundObserved:
    """A round of observation is complete.

    Attributes:
        since_acknowledged_ms: time since Kafka last acknowledged a tick of this controller.
        since_last_read_ms: time since an input was last read. Controllers append ticks to the inputs, so there always
            is one to read.
        stood_still_ms: the longest time since the previous round for which this process did not run.
        is_deaf: whether an input partition is not read on, although records stand there.
        contender_ahead_ms: by how much the last acknowledgement that a contender has noted is later than this
            controller's, negative if it is earlier; None if no contender has noted one, or the store is silent.
        longest_unanswered_ms: time for which Kafka has not answered this controller about the partition of which that
            is longest, among those that a leader needs. An answer is an acknowledged tick, or where the partition ends.
        has_answers: whether Kafka has answered this controller about each of these partitions once.
        contender_unanswered_ms: that of the contender for which it is shortest, and the age of its note; None as above.
    """

    since_acknowledged_ms: int
    since_last_read_ms: int
    stood_still_ms: int
    is_deaf: bool
    contender_ahead_ms: int | None
    longest_unanswered_ms: int
    has_answers: bool
    contender_unanswered_ms: int | None


@dataclass(frozen=True, slots=True)
class LeaseChecked:
    """Whether the lease store confirmed the lease for the machine's term."""

    confirmed: bool


@dataclass(frozen=True, slots=True)
class LogRead:
    """The log was read to its end. ``log_term`` is the term of its last decision, 0 without one."""

    log_term: Term


LeadingEvent: TypeAlias = ControllerTrigger | RoundObserved | LeaseChecked | LogRead
"""A trigger, or facts from which the machine derives one."""
LeadingAction: TypeAlias = ControllerAction | BackOff


class LeadingState(NamedTuple):
    """The state of the machine. ``term`` is None unless the controller takes over or leads."""

    phase: ControllerPhase = ControllerPhase.FOLLOWING
    term: Term | None = None
    unanswered_since_ms: int | None = None


class _Contact(NamedTuple):
    """Monotonic times of the last acknowledged tick of this controller, and of the last input that was read.

    And whether it does not read a partition on, or is not answered about one.
    """

    acknowledged_at_ms: int
    read_at_ms: int
    misses_partition: bool


class ControllerMachine:
    """The state machine. Its attributes may be read at any time; only :meth:`on_event` changes them.

    Attributes:
        state: see :class:`LeadingState`.
        last_trigger: the trigger of the last transition. When a leader steps down, it is the reason.
        failures: failed take-overs since the last successful one.
    """

    def __init__(self, lease_ms: int) -> None:
        """Create a controller that follows.

        Args:
            lease_ms: duration of a lease. A controller is cut off from Kafka when none of its ticks was acknowledged
                for longer than this, or no input was read for longer than three times as long.
        """
        self.state = LeadingState()
        self.last_trigger = ControllerTrigger.DONE
        self.failures = Failures()
        self._lease_ms = lease_ms
        self._contact: _Contact | None = None
        self._reading_expected_from_ms: int | None = None
        self._last_round_was_unheard = False
        self._misses_partition_since_ms: int | None = None

    def is_fit(self, now_ms: int) -> bool:
        """Whether the controller may be preferred as leader: other contenders leave the lease only to one that is fit.

        False before its first round, while it is cut off from Kafka, does not read a partition or is not answered about
        one, if its last round is too long ago, and for a time after failed take-overs. Thread-safe.
        """
        contact = self._contact
        if contact is None or contact.misses_partition or now_ms < self.failures.unfit_until_ms:
            return False
        return not self._is_cut_off(now_ms)

    def on_event(self, now_ms: int, event: LeadingEvent, hold: HeldLease, draw: float) -> Output[LeadingAction]:
        """Process an event. The output never has a wake-up time, because every action has an answer.

        Args:
            now_ms: monotonic time.
            event: what happened, or the answer of the last action.
            hold: the present state of the lease; :data:`NOT_HELD` for an observer.
            draw: a random number from 0 up to but not including 1, for the length of a back-off.

        Raises:
            InvariantViolationError: the transition table has no row for the trigger in this phase.
        """
        before = self.state
        if isinstance(event, RoundObserved):
            self._contact = self._contact_of(now_ms, event)
            self._misses_partition_since_ms = self._misses_partition_since_ms_after(now_ms, event)
        trigger = self._trigger(now_ms, event, hold)
        transition = TRANSITIONS.get((before.phase, trigger))
        if transition is None:
            message = f"controller: phase {before.phase.value!r} has no transition for {trigger.value!r}"
            raise InvariantViolationError(message)
        if ControllerAction.ANNOUNCE in transition.actions:
            self.failures = Failures()
        self.last_trigger = trigger
        self.state = LeadingState(
            transition.phase,
            self._term_after(transition.phase, event, hold),
            self._unanswered_since_ms_after(now_ms, trigger),
        )
        actions = (self._action(now_ms, planned, hold, draw) for planned in transition.actions)
        return Output(None, tuple(action for action in actions if action is not None))

    def _action(self, now_ms: int, planned: Planned, hold: HeldLease, draw: float) -> LeadingAction | None:
        """The action that a row plans, a back-off with its length; None where no back-off is necessary.

        A controller without the lease continues to ask for it, because it keeps the lease from no other one. Only a
        controller that is cut off from Kafka backs off without holding the lease.
        """
        if isinstance(planned, ControllerAction):
            return planned
        if hold.term is None and planned is not BackoffReason.CUT_OFF:
            return None
        if planned is BackoffReason.FAILED:
            self.failures = self.failures.one_more(now_ms, self._lease_ms)
        failures = self.failures.in_a_row
        return BackOff(planned, backoff_ms(planned, self._lease_ms, failures, draw), failures)

    def _contact_of(self, now_ms: int, event: RoundObserved) -> _Contact:
        """Of a Kafka that was away, reading is expected only from the first round in which it acknowledges ticks again.

        Reader and writer are clients of their own, and find a Kafka that is back one after the other. The round before
        may be long ago, because a leader that asks Kafka something waits for an answer, so it does not count.
        """
        is_unheard = event.since_acknowledged_ms > self._lease_ms
        if is_unheard or self._last_round_was_unheard:
            self._reading_expected_from_ms = now_ms
        self._last_round_was_unheard = is_unheard
        read_at_ms = now_ms - event.since_last_read_ms
        if self._reading_expected_from_ms is not None:
            read_at_ms = max(read_at_ms, self._reading_expected_from_ms)
        is_answered = event.has_answers and event.longest_unanswered_ms <= ANSWERED_WITHIN_MS
        return _Contact(now_ms - event.since_acknowledged_ms, read_at_ms, event.is_deaf or not is_answered)

    def _misses_partition_since_ms_after(self, now_ms: int, event: RoundObserved) -> int | None:
        """Since when Kafka has answered a contender about every partition, and not this leader about one.

        If Kafka answers no contender either, that partition has no leader, and a take-over would not mend it. A leader
        that Kafka does not answer about any partition may be cut off, and has its time again afterwards.
        """
        leads = self.state.phase in {ControllerPhase.LEADING, ControllerPhase.AWAITING_ANSWER}
        if not leads or event.since_acknowledged_ms > self._lease_ms:
            return None
        own_ms, other_ms = event.longest_unanswered_ms, event.contender_unanswered_ms
        if other_ms is None or not self._reaches_all(other_ms):
            return None
        if own_ms <= ANSWERED_WITHIN_MS or own_ms - other_ms <= ASKED_APART_MS:
            return None
        return now_ms if self._misses_partition_since_ms is None else self._misses_partition_since_ms

    def _reaches_all(self, contender_unanswered_ms: int) -> bool:
        """Whether a contender is answered about every partition, as its note says. The note is as old as a lease."""
        return contender_unanswered_ms <= ANSWERED_WITHIN_MS + self._lease_ms

    def _trigger(self, now_ms: int, event: LeadingEvent, hold: HeldLease) -> ControllerTrigger:
        term = self.state.term
        match event:
            case RoundObserved():
                return self._trigger_of_round(now_ms, event, hold)
            case LeaseChecked(confirmed=True):
                return ControllerTrigger.LEASE_CONFIRMED
            case LeaseChecked():
                return ControllerTrigger.LEASE_UNCONFIRMED if hold.term == term else ControllerTrigger.LEASE_LOST
            case LogRead(log_term=log_term):
                return (
                    ControllerTrigger.TERM_USED if term is None or log_term >= term else ControllerTrigger.TERM_UNUSED
                )
            case ControllerTrigger.UNANSWERED:
                since_ms = self.state.unanswered_since_ms
                too_long = since_ms is not None and now_ms - since_ms > UNANSWERED_LIMIT_MS
                return ControllerTrigger.UNANSWERED_FOR_LONG if too_long else ControllerTrigger.UNANSWERED
            case _:
                return event

    def _trigger_of_round(self, now_ms: int, event: RoundObserved, hold: HeldLease) -> ControllerTrigger:
        term = self.state.term
        if term not in {None, hold.term}:
            return ControllerTrigger.HANDED_OVER if hold.is_handed_over else ControllerTrigger.LEASE_LOST
        # Where Kafka acknowledges no controller's ticks, as until it has given up a dead broker, no other controller
        # could commit either: stepping down would only add a take-over to the outage.
        stood_still = event.stood_still_ms > self._lease_ms
        ahead_ms = event.contender_ahead_ms
        is_behind_contender = ahead_ms is not None and ahead_ms > CLEARLY_LATER_MS
        is_unheard = event.since_acknowledged_ms > self._lease_ms
        leads_on = (
            is_unheard and not (is_behind_contender or stood_still) and self.state.phase is ControllerPhase.LEADING
        )
        if not leads_on and self._is_cut_off(now_ms):
            # Also without the lease: a controller that cannot commit must not win a term that it has to give back.
            return ControllerTrigger.STALLED if term is not None and stood_still else ControllerTrigger.CUT_OFF
        if not leads_on and self.state.phase is ControllerPhase.LEADING and self._is_deaf(now_ms, event):
            return ControllerTrigger.DEAF
        return ControllerTrigger.NO_LEASE if hold.term is None else ControllerTrigger.LEASE_HELD

    def _is_deaf(self, now_ms: int, event: RoundObserved) -> bool:
        """Whether this leader has missed a partition for too long that a contender would not miss."""
        since_ms, other_ms = self._misses_partition_since_ms, event.contender_unanswered_ms
        if since_ms is not None and now_ms - since_ms >= DEAF_AFTER_MS:
            return True
        return event.is_deaf and other_ms is not None and self._reaches_all(other_ms)

    def _is_cut_off(self, now_ms: int) -> bool:
        contact = self._contact
        return contact is None or (
            now_ms - contact.acknowledged_at_ms > self._lease_ms
            or now_ms - contact.read_at_ms > _READ_GRACE_FACTOR * self._lease_ms
        )

    def _term_after(self, phase: ControllerPhase, event: LeadingEvent, hold: HeldLease) -> Term | None:
        if phase in {ControllerPhase.FOLLOWING, ControllerPhase.STEPPING_DOWN}:
            return None
        return hold.term if self.state.term is None and isinstance(event, RoundObserved) else self.state.term

    def _unanswered_since_ms_after(self, now_ms: int, trigger: ControllerTrigger) -> int | None:
        since_ms = self.state.unanswered_since_ms
        if trigger is ControllerTrigger.UNANSWERED:
            return now_ms if since_ms is None else since_ms
        return (
            since_ms
            if trigger in {ControllerTrigger.LEASE_HELD, ControllerTrigger.CUT_OFF, ControllerTrigger.STALLED}
            else None
        )
