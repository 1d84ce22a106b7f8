"""What a controller does next: follow, take over step by step, lead, step down. A passive machine over a table.

The order of the steps makes a new leader safe, whatever the old one still does: lease won -> lease confirmed -> log
read ahead -> writer opened, which fences the predecessor and aborts its open transaction -> log read to its end by a
reader that began after that -> a term that the log holds already is given up for a higher one -> everything observed
up to here -> lease confirmed again -> *term opened* committed. All effects are commits and commits are fenced by Kafka,
so a wrong belief about the lease costs time, never safety.

Reading ahead adds no safety, because the log may go on until the writer is opened. It avoids fencing for nothing: a
controller that cannot read the log, or finds its term used (the lease store may have lost its data), fences no writer.

The driver performs the actions in order and brings the answer of the last one back as the next event. An action that
finds that Kafka or the lease store does not answer, or that Kafka refuses the writer, ends the others.
"""

from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias

from controlplane.core.election.backoff import BackOff, BackoffReason, Failures, backoff_ms
from controlplane.core.election.steps import TRANSITIONS, ControllerAction, ControllerPhase, ControllerTrigger, Planned
from controlplane.core.values.identifiers import Term
from controlplane.core.values.machine import Output
from controlplane.errors import InvariantViolationError

UNANSWERED_LIMIT_MS: Final = 15_000
"""How long a commit may stay without an answer before everything is discarded and the log is asked."""
_READ_GRACE_FACTOR: Final = 3
"""Reading may be interrupted for so many times as long as writing: clients find a broker again one by one, and a leader
that cannot read for a moment commits nothing wrong."""


class Hold(NamedTuple):
    """What the thread that stands for election knows of the lease, at one moment.

    Attributes:
        term: the term under which the lease is ours; None if it is not.
        is_handed_over: it is not ours because it was given back for a preferred controller to take it.
    """

    term: Term | None = None
    is_handed_over: bool = False


NO_LEASE: Final = Hold()


@dataclass(frozen=True, slots=True)
class RoundObserved:
    """A round is done.

    Attributes:
        since_acknowledged_ms: how long ago Kafka last acknowledged a tick of ours.
        since_last_read_ms: how long ago an input was last read; controllers tick into the inputs themselves.
        turn_ms: how long ago the round before was done.
    """

    since_acknowledged_ms: int
    since_last_read_ms: int
    turn_ms: int


@dataclass(frozen=True, slots=True)
class LeaseChecked:
    """The store confirmed the lease under the machine's term, or did not."""

    confirmed: bool


@dataclass(frozen=True, slots=True)
class LogRead:
    """The log was read to its end; its last decision has this term, 0 if it has none."""

    log_term: Term


LeadingEvent: TypeAlias = ControllerTrigger | RoundObserved | LeaseChecked | LogRead
"""Either a trigger, or facts in which the machine finds one."""
LeadingAction: TypeAlias = ControllerAction | BackOff


class LeadingState(NamedTuple):
    """Everything that the machine remembers: ``term`` is None unless it takes over or leads."""

    phase: ControllerPhase = ControllerPhase.FOLLOWING
    term: Term | None = None
    unanswered_since_ms: int | None = None


class _Contact(NamedTuple):
    """When, on the monotonic clock, Kafka last acknowledged a tick of ours, and when an input was last read."""

    acknowledged_at_ms: int
    read_at_ms: int


class Leading:
    """The machine. Its attributes may be read at any time; only :meth:`on_event` changes them.

    Attributes:
        state: see :class:`LeadingState`.
        last_trigger: what led to the present phase: the reason to step down, if it discards the writer of a leader.
        failures: the take-overs that failed since the last one that opened its term.
    """

    def __init__(self, lease_ms: int) -> None:
        """A controller that follows.

        Args:
            lease_ms: how long a lease lasts. A leader is cut off from Kafka when none of its ticks was acknowledged for
                longer than this, or no tick could be read for longer than a multiple of it.
        """
        self.state = LeadingState()
        self.last_trigger = ControllerTrigger.DONE
        self.failures = Failures()
        self._lease_ms = lease_ms
        self._contact: _Contact | None = None

    def is_fit(self, now_ms: int) -> bool:
        """Whether it could lead well now, as far as it knows: only then others may leave the lease to it.

        Not before its first round, nor when the last one is long ago. Any thread may ask.
        """
        contact = self._contact
        if contact is None or now_ms < self.failures.unfit_until_ms:
            return False
        return not self._is_cut_off(now_ms - contact.acknowledged_at_ms, now_ms - contact.read_at_ms)

    def on_event(self, now_ms: int, event: LeadingEvent, hold: Hold, draw: float) -> Output[LeadingAction]:
        """Take an event up. The machine never asks to be woken: an action always answers.

        Args:
            now_ms: monotonic time.
            event: what happened, or what the last action has answered.
            hold: what is known of the lease now; :data:`NO_LEASE` for a controller that does not stand.
            draw: a random number from 0 up to but not including 1, for the length of a back-off.

        Raises:
            InvariantViolationError: the transition table does not know what happened.
        """
        before = self.state
        if isinstance(event, RoundObserved):
            self._contact = _Contact(now_ms - event.since_acknowledged_ms, now_ms - event.since_last_read_ms)
        trigger = self._trigger(now_ms, event, hold)
        transition = TRANSITIONS.get((before.phase, trigger))
        if transition is None:
            message = f"a controller that is {before.phase.value} does not expect {trigger.value!r}"
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

    def _action(self, now_ms: int, planned: Planned, hold: Hold, draw: float) -> LeadingAction | None:
        """What a row asks for, with how long to back off; None if there is nothing to back off from.

        A controller without the lease leaves nothing to others, and goes on asking; only one that is cut off stops.
        """
        if isinstance(planned, ControllerAction):
            return planned
        if hold.term is None and planned is not BackoffReason.CUT_OFF:
            return None
        if planned is BackoffReason.FAILED:
            self.failures = self.failures.one_more(now_ms, self._lease_ms)
        failures = self.failures.in_a_row
        return BackOff(planned, backoff_ms(planned, self._lease_ms, failures, draw), failures)

    def _trigger(self, now_ms: int, event: LeadingEvent, hold: Hold) -> ControllerTrigger:
        term = self.state.term
        match event:
            case RoundObserved() if term not in {None, hold.term}:
                return ControllerTrigger.HANDED_OVER if hold.is_handed_over else ControllerTrigger.LEASE_LOST
            case RoundObserved(
                since_acknowledged_ms=since_acknowledged_ms, since_last_read_ms=since_last_read_ms, turn_ms=turn_ms
            ) if self._is_cut_off(since_acknowledged_ms, since_last_read_ms):
                # Without the lease, too: a controller that cannot commit must not win a term only to give it back.
                return (
                    ControllerTrigger.STOOD_STILL
                    if term is not None and turn_ms > self._lease_ms
                    else ControllerTrigger.CUT_OFF
                )
            case RoundObserved():
                return ControllerTrigger.NO_LEASE if hold.term is None else ControllerTrigger.LEASE_HELD
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

    def _is_cut_off(self, since_acknowledged_ms: int, since_last_read_ms: int) -> bool:
        return since_acknowledged_ms > self._lease_ms or since_last_read_ms > _READ_GRACE_FACTOR * self._lease_ms

    def _term_after(self, phase: ControllerPhase, event: LeadingEvent, hold: Hold) -> Term | None:
        if phase in {ControllerPhase.FOLLOWING, ControllerPhase.STEPPING_DOWN}:
            return None
        return hold.term if self.state.term is None and isinstance(event, RoundObserved) else self.state.term

    def _unanswered_since_ms_after(self, now_ms: int, trigger: ControllerTrigger) -> int | None:
        since_ms = self.state.unanswered_since_ms
        if trigger is ControllerTrigger.UNANSWERED:
            return now_ms if since_ms is None else since_ms
        return (
            since_ms
            if trigger in {ControllerTrigger.LEASE_HELD, ControllerTrigger.CUT_OFF, ControllerTrigger.STOOD_STILL}
            else None
        )
