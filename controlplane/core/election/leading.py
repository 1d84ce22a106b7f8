"""What a controller does next: follow, take over step by step, lead, step down. A passive machine over a table.

The order of the steps is what makes a new leader safe, whatever the old one still does: lease won -> lease confirmed ->
log read ahead -> writer opened, which fences the predecessor and aborts its open transaction -> log read to its end by
a reader that began after that -> a term that the log holds already is given up for a higher one -> everything observed
up to here -> lease confirmed again -> *term opened* committed. All effects are commits and commits are fenced by Kafka,
so a wrong belief about the lease costs time, never safety.

Reading ahead makes nothing safe, because the log may go on until the opening; but whoever cannot follow it, or finds
there that its term is used, as after a loss of the lease store's data, fences nobody for nothing.

The driver performs the actions in order and brings back what the last of them found, as the next event; an action that
finds that Kafka or the lease store does not answer, or that Kafka refuses the writer, ends the others.
"""

from dataclasses import dataclass
from enum import Enum
from typing import Final, NamedTuple, TypeAlias

from controlplane.core.election.backoff import Failures
from controlplane.core.values.identifiers import Term
from controlplane.core.values.machine import Output
from controlplane.errors import InvariantViolationError

UNANSWERED_LIMIT_MS: Final = 15_000
"""How long a commit may stay without an answer before everything is discarded and the log is asked."""
_DEAF_FACTOR: Final = 3
"""Reading may falter for so many times as long as writing: clients find a broker again one by one, and who cannot read
for a moment commits nothing wrong."""


class Step(Enum):
    """Where a controller stands."""

    FOLLOWING = "following"
    """Folds the log and observes the inputs; does not hold the lease, or has not noticed yet."""
    CONFIRMING_LEASE = "confirming lease"
    """Holds the lease and asks the store whether that is still so, before it fences anybody."""
    READING_AHEAD = "reading ahead"
    """Reads the log, so as to fence nobody if it cannot follow it or its term is used."""
    OPENING_WRITER = "opening writer"
    """Fences every earlier writer."""
    READING_LOG = "reading log"
    """Reads the log to its end, to which nobody else can add any more."""
    CATCHING_UP = "catching up"
    """Compares log, table and lease store, and observes every heartbeat that stands in the log by now."""
    CONFIRMING_AGAIN = "confirming again"
    """Asks the store a last time: reading may have taken long."""
    OPENING_TERM = "opening term"
    """Commits the first decision of its term, or asks what became of that commit."""
    LEADING = "leading"
    """Decides and commits."""
    AWAITING_ANSWER = "awaiting answer"
    """Asks what became of a commit; decides nothing meanwhile."""
    STEPPING_DOWN = "stepping down"
    """Gives the lease back, and stands again after a random wait; a longer one if it has not led."""


class Trigger(Enum):
    """What moves a controller from one step to the next."""

    DONE = "done"
    NO_LEASE = "no lease"
    LEASE_HELD = "lease held"
    LEASE_LOST = "lease lost"
    LEASE_CONFIRMED = "lease confirmed"
    LEASE_UNCONFIRMED = "lease unconfirmed"
    CUT_OFF = "cut off from Kafka"
    TERM_UNUSED = "term unused"
    TERM_USED = "term used"
    NOTHING_TO_COMMIT = "nothing to commit"
    COMMITTED = "committed"
    ABORTED = "aborted"
    UNANSWERED = "unanswered"
    UNANSWERED_FOR_LONG = "commit without an answer"
    FENCED = "fenced"
    UNREACHABLE = "unreachable"
    RESIGNED = "resigned"
    """A commit answers an operator who asks the leader to hand over."""
    SHUT_DOWN = "shutdown"


class Action(Enum):
    """What the driver has to do; what it brings back is said where it is more than :attr:`Trigger.DONE`."""

    FOLLOW = "follow"
    """Fold what is new in the log, observe, judge as a standby; bring :class:`Looked`."""
    CONFIRM_LEASE = "confirm lease"
    """Ask the store whether the lease is ours under the machine's term; bring :class:`LeaseChecked`."""
    READ_AHEAD = "read ahead"
    """Fold the log to its end, while others may still add to it; bring :class:`LogRead`."""
    OPEN_WRITER = "open writer"
    """Open a new transactional writer."""
    READ_LOG = "read log"
    """Fold the log to its end with a reader that begins now; bring :class:`LogRead`."""
    RAISE_FLOOR = "raise floor"
    """Tell the election the greatest term of the log."""
    CATCH_UP = "catch up"
    """Refuse a log that table and lease store do not know, and observe everything up to now."""
    OPEN_TERM = "open term"
    """Commit *term opened*; bring how that ended."""
    ANNOUNCE = "announce"
    """Say that this controller leads, and let the lease store remember the log."""
    OBSERVE = "observe"
    """Observe what is new; bring :class:`Looked`."""
    DECIDE = "decide"
    """Decide and commit; bring how that ended, or :attr:`Trigger.NOTHING_TO_COMMIT`."""
    ASK_FOR_OUTCOME = "ask for outcome"
    """Ask what became of the commit that has no answer; bring how it ended."""
    READ_BACK = "read back"
    """Read our own decisions back, now and then."""
    DISCARD = "discard"
    """Give the writer back with everything that is uncommitted."""
    GIVE_LEASE_BACK = "give lease back"
    """Give the lease back if it is ours, and stand again after a random wait."""
    LET_OTHERS_TRY = "let others try"
    """Give the lease back if it is ours, and stand again after a random wait, which grows until a term of ours is
    opened: whoever cannot lead must not be waited for again and again because it is preferred."""
    STAND_ASIDE = "stand aside"
    """Give the lease back if it is ours, and do not stand before this was looked at again."""
    HAND_OVER = "hand over"
    """Give the lease back, and stand again when every other contender has had the time to ask for it."""
    PAUSE = "pause"
    """Wait a moment before anything else is tried."""


class Row(NamedTuple):
    """What follows from a trigger: the next step, and what is to be done, in this order."""

    step: Step
    actions: tuple[Action, ...]


_S, _T, _A = Step, Trigger, Action
_FOLLOW: Final = Row(_S.FOLLOWING, (_A.FOLLOW,))
_LOSE: Final = Row(_S.FOLLOWING, (_A.DISCARD, _A.FOLLOW))
_RAISE_FLOOR: Final = Row(_S.FOLLOWING, (_A.DISCARD, _A.RAISE_FLOOR, _A.FOLLOW))
_LEAVE: Final = Row(_S.STEPPING_DOWN, (_A.GIVE_LEASE_BACK,))
_STEP_DOWN: Final = Row(_S.STEPPING_DOWN, (_A.DISCARD, _A.GIVE_LEASE_BACK))
_STEP_DOWN_PAUSED: Final = Row(_S.STEPPING_DOWN, (_A.DISCARD, _A.GIVE_LEASE_BACK, _A.PAUSE))
_FAIL: Final = Row(_S.STEPPING_DOWN, (_A.DISCARD, _A.LET_OTHERS_TRY))
_FAIL_PAUSED: Final = Row(_S.STEPPING_DOWN, (_A.DISCARD, _A.LET_OTHERS_TRY, _A.PAUSE))
_HAND_OVER: Final = Row(_S.STEPPING_DOWN, (_A.DISCARD, _A.HAND_OVER))
_LEAD_ON: Final = Row(_S.LEADING, (_A.READ_BACK, _A.OBSERVE))
_SHUT_DOWN: Final = Row(_S.STEPPING_DOWN, (_A.DISCARD,))

TRANSITIONS: Final[dict[tuple[Step, Trigger], Row]] = {
    (_S.FOLLOWING, _T.DONE): _FOLLOW,
    (_S.FOLLOWING, _T.NO_LEASE): _FOLLOW,
    (_S.FOLLOWING, _T.LEASE_HELD): Row(_S.CONFIRMING_LEASE, (_A.CONFIRM_LEASE,)),
    (_S.FOLLOWING, _T.CUT_OFF): Row(_S.STEPPING_DOWN, (_A.STAND_ASIDE, _A.PAUSE)),
    (_S.FOLLOWING, _T.UNREACHABLE): Row(_S.STEPPING_DOWN, (_A.LET_OTHERS_TRY, _A.PAUSE)),
    (_S.FOLLOWING, _T.SHUT_DOWN): _SHUT_DOWN,
    (_S.CONFIRMING_LEASE, _T.LEASE_CONFIRMED): Row(_S.READING_AHEAD, (_A.READ_AHEAD,)),
    (_S.CONFIRMING_LEASE, _T.LEASE_UNCONFIRMED): _LEAVE,
    (_S.CONFIRMING_LEASE, _T.LEASE_LOST): _FOLLOW,
    (_S.CONFIRMING_LEASE, _T.SHUT_DOWN): _SHUT_DOWN,
    (_S.READING_AHEAD, _T.TERM_UNUSED): Row(_S.OPENING_WRITER, (_A.OPEN_WRITER,)),
    (_S.READING_AHEAD, _T.TERM_USED): Row(_S.FOLLOWING, (_A.RAISE_FLOOR, _A.FOLLOW)),
    (_S.READING_AHEAD, _T.UNREACHABLE): Row(_S.STEPPING_DOWN, (_A.LET_OTHERS_TRY, _A.PAUSE)),
    (_S.READING_AHEAD, _T.SHUT_DOWN): _SHUT_DOWN,
    (_S.OPENING_WRITER, _T.DONE): Row(_S.READING_LOG, (_A.READ_LOG,)),
    (_S.OPENING_WRITER, _T.FENCED): _FAIL,
    (_S.OPENING_WRITER, _T.UNREACHABLE): _FAIL_PAUSED,
    (_S.OPENING_WRITER, _T.SHUT_DOWN): _SHUT_DOWN,
    (_S.READING_LOG, _T.TERM_UNUSED): Row(_S.CATCHING_UP, (_A.CATCH_UP,)),
    (_S.READING_LOG, _T.TERM_USED): _RAISE_FLOOR,
    (_S.READING_LOG, _T.UNREACHABLE): _FAIL_PAUSED,
    (_S.READING_LOG, _T.SHUT_DOWN): _SHUT_DOWN,
    (_S.CATCHING_UP, _T.DONE): Row(_S.CONFIRMING_AGAIN, (_A.CONFIRM_LEASE,)),
    (_S.CATCHING_UP, _T.UNREACHABLE): _FAIL_PAUSED,
    (_S.CATCHING_UP, _T.SHUT_DOWN): _SHUT_DOWN,
    (_S.CONFIRMING_AGAIN, _T.LEASE_CONFIRMED): Row(_S.OPENING_TERM, (_A.OPEN_TERM,)),
    (_S.CONFIRMING_AGAIN, _T.LEASE_UNCONFIRMED): _STEP_DOWN,
    (_S.CONFIRMING_AGAIN, _T.LEASE_LOST): _LOSE,
    (_S.CONFIRMING_AGAIN, _T.SHUT_DOWN): _SHUT_DOWN,
    (_S.OPENING_TERM, _T.COMMITTED): Row(_S.LEADING, (_A.ANNOUNCE, _A.OBSERVE)),
    (_S.OPENING_TERM, _T.ABORTED): _FAIL,
    (_S.OPENING_TERM, _T.UNANSWERED): Row(_S.OPENING_TERM, (_A.ASK_FOR_OUTCOME,)),
    (_S.OPENING_TERM, _T.UNANSWERED_FOR_LONG): _FAIL,
    (_S.OPENING_TERM, _T.FENCED): _FAIL,
    (_S.OPENING_TERM, _T.UNREACHABLE): _FAIL_PAUSED,
    (_S.OPENING_TERM, _T.SHUT_DOWN): _SHUT_DOWN,
    (_S.LEADING, _T.LEASE_HELD): Row(_S.LEADING, (_A.DECIDE,)),
    (_S.LEADING, _T.LEASE_LOST): _LOSE,
    (_S.LEADING, _T.CUT_OFF): _STEP_DOWN,
    (_S.LEADING, _T.NOTHING_TO_COMMIT): _LEAD_ON,
    (_S.LEADING, _T.COMMITTED): _LEAD_ON,
    (_S.LEADING, _T.RESIGNED): _HAND_OVER,
    (_S.LEADING, _T.ABORTED): _LEAD_ON,
    (_S.LEADING, _T.UNANSWERED): Row(_S.AWAITING_ANSWER, (_A.OBSERVE,)),
    (_S.LEADING, _T.FENCED): _STEP_DOWN,
    (_S.LEADING, _T.UNREACHABLE): _STEP_DOWN_PAUSED,
    (_S.LEADING, _T.SHUT_DOWN): _SHUT_DOWN,
    (_S.AWAITING_ANSWER, _T.LEASE_HELD): Row(_S.AWAITING_ANSWER, (_A.ASK_FOR_OUTCOME,)),
    (_S.AWAITING_ANSWER, _T.LEASE_LOST): _LOSE,
    (_S.AWAITING_ANSWER, _T.CUT_OFF): Row(_S.AWAITING_ANSWER, (_A.ASK_FOR_OUTCOME,)),
    (_S.AWAITING_ANSWER, _T.COMMITTED): _LEAD_ON,
    (_S.AWAITING_ANSWER, _T.RESIGNED): _HAND_OVER,
    (_S.AWAITING_ANSWER, _T.ABORTED): _LEAD_ON,
    (_S.AWAITING_ANSWER, _T.UNANSWERED): Row(_S.AWAITING_ANSWER, (_A.OBSERVE,)),
    (_S.AWAITING_ANSWER, _T.UNANSWERED_FOR_LONG): _STEP_DOWN,
    (_S.AWAITING_ANSWER, _T.FENCED): _STEP_DOWN,
    (_S.AWAITING_ANSWER, _T.UNREACHABLE): _STEP_DOWN_PAUSED,
    (_S.AWAITING_ANSWER, _T.SHUT_DOWN): _SHUT_DOWN,
    (_S.STEPPING_DOWN, _T.DONE): _FOLLOW,
    (_S.STEPPING_DOWN, _T.SHUT_DOWN): _SHUT_DOWN,
}
"""(step, trigger) to what follows. What is not here is an error; ``docs/reference/states.md`` is drawn from it."""


@dataclass(frozen=True, slots=True)
class Looked:
    """A round is done.

    Attributes:
        held_term: under which term the lease is ours by now.
        silent_for_ms: how long ago Kafka last acknowledged anything of ours.
        deaf_for_ms: how long ago anything was read of the inputs, into which we tick ourselves.
    """

    held_term: Term | None
    silent_for_ms: int
    deaf_for_ms: int


@dataclass(frozen=True, slots=True)
class LeaseChecked:
    """The store confirmed the lease under the machine's term, or did not; ``held_term`` is what the election says."""

    confirmed: bool
    held_term: Term | None


@dataclass(frozen=True, slots=True)
class LogRead:
    """The log was read to its end; its last decision has this term, 0 if it has none."""

    log_term: Term


LeadingEvent: TypeAlias = Trigger | Looked | LeaseChecked | LogRead
"""Either a trigger, or facts in which the machine finds one."""


class LeadingState(NamedTuple):
    """Everything that the machine remembers: ``term`` is None unless it takes over or leads."""

    step: Step = Step.FOLLOWING
    term: Term | None = None
    unanswered_since_ms: int | None = None


class _Contact(NamedTuple):
    """When, on the monotonic clock, Kafka last acknowledged anything of ours, and when anything was read."""

    acknowledged_at_ms: int
    read_at_ms: int


class Leading:
    """The machine. Its attributes may be read at any time; only :meth:`on_event` and :meth:`fail` change them.

    Attributes:
        state: see :class:`LeadingState`.
        last_trigger: what led to the present step.
        failures: the take-overs that failed since the last one that opened its term.
    """

    def __init__(self, lease_ms: int) -> None:
        """A controller that follows.

        Args:
            lease_ms: how long a lease lasts: without an acknowledged tick for longer than this a leader is cut off from
                Kafka; and without any tick that it can read for longer than some times this.
        """
        self.state = LeadingState()
        self.last_trigger = Trigger.DONE
        self.failures = Failures()
        self._lease_ms = lease_ms
        self._contact: _Contact | None = None

    def is_fit(self, now_ms: int) -> bool:
        """Whether it could lead well now, as far as it knows: only then others may leave the lease to it.

        Not before its first look, nor when it has not looked for long. Any thread may ask.
        """
        contact = self._contact
        if contact is None or now_ms < self.failures.unfit_until_ms:
            return False
        return not self._is_cut_off(now_ms - contact.acknowledged_at_ms, now_ms - contact.read_at_ms)

    def fail(self, now_ms: int) -> None:
        """The lease was ours, and no take-over came of it."""
        self.failures = self.failures.one_more(now_ms, self._lease_ms)

    def on_event(self, now_ms: int, event: LeadingEvent) -> Output[Action]:
        """Take an event up; ``now_ms`` is monotonic. The machine never asks to be woken: an action always answers.

        Raises:
            InvariantViolationError: the transition table does not know what happened.
        """
        before = self.state
        if isinstance(event, Looked):
            self._contact = _Contact(now_ms - event.silent_for_ms, now_ms - event.deaf_for_ms)
        trigger = self._trigger(now_ms, event)
        row = TRANSITIONS.get((before.step, trigger))
        if row is None:
            message = f"a controller that is {before.step.value} does not expect {trigger.value!r}"
            raise InvariantViolationError(message)
        if Action.ANNOUNCE in row.actions:
            self.failures = Failures()
        self.last_trigger = trigger
        self.state = LeadingState(
            row.step, self._term_after(row.step, event), self._unanswered_since_ms_after(now_ms, trigger)
        )
        return Output(None, row.actions)

    def _trigger(self, now_ms: int, event: LeadingEvent) -> Trigger:
        term = self.state.term
        match event:
            case Looked(held_term=held_term) if term not in {None, held_term}:
                return Trigger.LEASE_LOST
            case Looked(silent_for_ms=silent_for_ms, deaf_for_ms=deaf_for_ms) if self._is_cut_off(
                silent_for_ms, deaf_for_ms
            ):
                # Without the lease, too: who could not commit must not win a term only to give it back.
                return Trigger.CUT_OFF
            case Looked(held_term=held_term):
                return Trigger.NO_LEASE if held_term is None else Trigger.LEASE_HELD
            case LeaseChecked(confirmed=True):
                return Trigger.LEASE_CONFIRMED
            case LeaseChecked(held_term=held_term):
                return Trigger.LEASE_UNCONFIRMED if held_term == term else Trigger.LEASE_LOST
            case LogRead(log_term=log_term):
                return Trigger.TERM_USED if term is None or log_term >= term else Trigger.TERM_UNUSED
            case Trigger.UNANSWERED:
                since_ms = self.state.unanswered_since_ms
                too_long = since_ms is not None and now_ms - since_ms > UNANSWERED_LIMIT_MS
                return Trigger.UNANSWERED_FOR_LONG if too_long else Trigger.UNANSWERED
            case _:
                return event

    def _is_cut_off(self, silent_for_ms: int, deaf_for_ms: int) -> bool:
        return silent_for_ms > self._lease_ms or deaf_for_ms > _DEAF_FACTOR * self._lease_ms

    def _term_after(self, step: Step, event: LeadingEvent) -> Term | None:
        if step in {Step.FOLLOWING, Step.STEPPING_DOWN}:
            return None
        return event.held_term if self.state.term is None and isinstance(event, Looked) else self.state.term

    def _unanswered_since_ms_after(self, now_ms: int, trigger: Trigger) -> int | None:
        since_ms = self.state.unanswered_since_ms
        if trigger is Trigger.UNANSWERED:
            return now_ms if since_ms is None else since_ms
        return since_ms if trigger in {Trigger.LEASE_HELD, Trigger.CUT_OFF} else None
