"""The transition table of a controller: phases, triggers and actions.

:mod:`controlplane.core.election.leading` is the state machine that uses it.
"""

from enum import Enum
from typing import Final, NamedTuple, TypeAlias

from controlplane.core.election.backoff import BackoffReason


class ControllerPhase(Enum):
    """The phase of a controller."""

    FOLLOWING = "following"
    """Folds the log and observes the inputs. It holds no lease, or has not noticed yet that it does."""
    CONFIRMING_LEASE = "confirming lease"
    """Asks the lease store whether it still holds the lease, before it fences another writer."""
    READING_AHEAD = "reading ahead"
    """Reads the log before it fences. If it cannot read it, or its term is used, it fences no writer."""
    OPENING_WRITER = "opening writer"
    """Fences every earlier writer, and writes a barrier."""
    READING_LOG = "reading log"
    """Reads the log to its end. No other writer can append to it any more."""
    CATCHING_UP = "catching up"
    """Compares log, table and lease store, and observes every heartbeat up to now."""
    CONFIRMING_AGAIN = "confirming again"
    """Asks the lease store again, because reading may have taken long."""
    OPENING_TERM = "opening term"
    """Commits the first decision of its term, or asks for the outcome of that commit."""
    LEADING = "leading"
    """Decides and commits."""
    AWAITING_ANSWER = "awaiting answer"
    """Asks for the outcome of a commit, and decides nothing until it has one."""
    STEPPING_DOWN = "stepping down"
    """Gives the lease back and backs off."""


class ControllerTrigger(Enum):
    """What moves a controller from one phase to the next. Logs and metrics name the values as reasons."""

    DONE = "done"
    NO_LEASE = "no lease"
    LEASE_HELD = "lease held"
    LEASE_LOST = "lease lost"
    HANDED_OVER = "lease handed over"
    """A leader's lease was given back for a preferred controller."""
    LEASE_CONFIRMED = "lease confirmed"
    LEASE_UNCONFIRMED = "lease unconfirmed"
    CUT_OFF = "cut off from Kafka"
    STALLED = "stalled"
    """A leader has no acknowledgement of Kafka because its process or its machine was suspended."""
    DEAF = "deaf to a partition"
    """A leader does not read an input partition on, although records stand there, and another controller ticks."""
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
    """A commit answers the intent by which an operator asks the leader to hand over."""
    SHUT_DOWN = "shutdown"
    FAILED = "failed"
    """An error ends the controller. The code that catches it logs it."""


REQUESTED: Final = frozenset({ControllerTrigger.HANDED_OVER, ControllerTrigger.RESIGNED, ControllerTrigger.SHUT_DOWN})
"""Reasons to step down that an operator or a setting asked for; they are logged without a warning."""


class ControllerAction(Enum):
    """What the driver has to do. It answers with :attr:`ControllerTrigger.DONE` unless stated otherwise.

    A row of the table may also name a :class:`~controlplane.core.election.backoff.BackoffReason`: the driver then backs
    off.
    """

    FOLLOW = "follow"
    """Fold new decisions, observe, validate heartbeats as a standby; answer with ``RoundObserved``."""
    CONFIRM_LEASE = "confirm lease"
    """Ask the lease store whether this controller holds the lease with its term; answer with ``LeaseChecked``."""
    READ_AHEAD = "read ahead"
    """Fold the log to its end, to which the former leader may still append; answer with ``LogRead``."""
    OPEN_WRITER = "open writer"
    """Open a new transactional writer, and write a barrier behind everything that was committed before."""
    READ_LOG = "read log"
    """Fold the log past the barrier with a reader that starts now; answer with ``LogRead``."""
    RAISE_FLOOR = "raise floor"
    """Pass the greatest term of the log to the election."""
    CATCH_UP = "catch up"
    """Refuse a log that contradicts the table or the lease store, and observe all inputs up to now."""
    OPEN_TERM = "open term"
    """Commit *term opened*; answer with the outcome."""
    ANNOUNCE = "announce"
    """Write a log line that this controller leads, and store the log id in the lease store."""
    OBSERVE = "observe"
    """Observe new inputs; answer with ``RoundObserved``."""
    DECIDE = "decide"
    """Decide and commit; answer with the outcome, or :attr:`ControllerTrigger.NOTHING_TO_COMMIT`."""
    ASK_FOR_OUTCOME = "ask for outcome"
    """Ask for the outcome of the commit that has no answer, and answer with it."""
    READ_BACK = "read back"
    """Read this controller's own decisions back, at intervals."""
    DISCARD = "discard"
    """Close the writer and drop what is not committed."""
    PAUSE = "pause"
    """Wait for a moment before the next attempt."""


Planned: TypeAlias = ControllerAction | BackoffReason
"""An action of a row, or a reason to back off."""


class Transition(NamedTuple):
    """The next phase, and the actions in their order."""

    phase: ControllerPhase
    actions: tuple[Planned, ...]


_S, _T, _A, _B = ControllerPhase, ControllerTrigger, ControllerAction, BackoffReason
_FOLLOW: Final = Transition(_S.FOLLOWING, (_A.FOLLOW,))
_LOSE: Final = Transition(_S.FOLLOWING, (_A.DISCARD, _A.FOLLOW))
_RAISE_FLOOR: Final = Transition(_S.FOLLOWING, (_A.DISCARD, _A.RAISE_FLOOR, _A.FOLLOW))
_LEAVE: Final = Transition(_S.STEPPING_DOWN, (_B.STEPPED_DOWN,))
_STEP_DOWN: Final = Transition(_S.STEPPING_DOWN, (_A.DISCARD, _B.STEPPED_DOWN))
_STEP_DOWN_PAUSED: Final = Transition(_S.STEPPING_DOWN, (_A.DISCARD, _B.STEPPED_DOWN, _A.PAUSE))
_FAIL: Final = Transition(_S.STEPPING_DOWN, (_A.DISCARD, _B.FAILED))
_FAIL_PAUSED: Final = Transition(_S.STEPPING_DOWN, (_A.DISCARD, _B.FAILED, _A.PAUSE))
_HAND_OVER: Final = Transition(_S.STEPPING_DOWN, (_A.DISCARD, _B.RESIGNED))
_LEAD_ON: Final = Transition(_S.LEADING, (_A.READ_BACK, _A.OBSERVE))
_SHUT_DOWN: Final = Transition(_S.STEPPING_DOWN, (_A.DISCARD,))

TRANSITIONS: Final[dict[tuple[ControllerPhase, ControllerTrigger], Transition]] = {
    (_S.FOLLOWING, _T.DONE): _FOLLOW,
    (_S.FOLLOWING, _T.NO_LEASE): _FOLLOW,
    (_S.FOLLOWING, _T.LEASE_HELD): Transition(_S.CONFIRMING_LEASE, (_A.CONFIRM_LEASE,)),
    (_S.FOLLOWING, _T.CUT_OFF): Transition(_S.STEPPING_DOWN, (_B.CUT_OFF, _A.PAUSE)),
    (_S.FOLLOWING, _T.UNREACHABLE): Transition(_S.STEPPING_DOWN, (_B.FAILED, _A.PAUSE)),
    (_S.FOLLOWING, _T.SHUT_DOWN): _SHUT_DOWN,
    (_S.FOLLOWING, _T.FAILED): _SHUT_DOWN,
    (_S.CONFIRMING_LEASE, _T.LEASE_CONFIRMED): Transition(_S.READING_AHEAD, (_A.READ_AHEAD,)),
    (_S.CONFIRMING_LEASE, _T.LEASE_UNCONFIRMED): _LEAVE,
    (_S.CONFIRMING_LEASE, _T.LEASE_LOST): _FOLLOW,
    (_S.CONFIRMING_LEASE, _T.SHUT_DOWN): _SHUT_DOWN,
    (_S.CONFIRMING_LEASE, _T.FAILED): _SHUT_DOWN,
    (_S.READING_AHEAD, _T.TERM_UNUSED): Transition(_S.OPENING_WRITER, (_A.OPEN_WRITER,)),
    (_S.READING_AHEAD, _T.TERM_USED): Transition(_S.FOLLOWING, (_A.RAISE_FLOOR, _A.FOLLOW)),
    (_S.READING_AHEAD, _T.UNREACHABLE): Transition(_S.STEPPING_DOWN, (_B.FAILED, _A.PAUSE)),
    (_S.READING_AHEAD, _T.SHUT_DOWN): _SHUT_DOWN,
    (_S.READING_AHEAD, _T.FAILED): _SHUT_DOWN,
    (_S.OPENING_WRITER, _T.DONE): Transition(_S.READING_LOG, (_A.READ_LOG,)),
    (_S.OPENING_WRITER, _T.FENCED): _FAIL,
    (_S.OPENING_WRITER, _T.UNREACHABLE): _FAIL_PAUSED,
    (_S.OPENING_WRITER, _T.SHUT_DOWN): _SHUT_DOWN,
    (_S.OPENING_WRITER, _T.FAILED): _SHUT_DOWN,
    (_S.READING_LOG, _T.TERM_UNUSED): Transition(_S.CATCHING_UP, (_A.CATCH_UP,)),
    (_S.READING_LOG, _T.TERM_USED): _RAISE_FLOOR,
    (_S.READING_LOG, _T.UNREACHABLE): _FAIL_PAUSED,
    (_S.READING_LOG, _T.SHUT_DOWN): _SHUT_DOWN,
    (_S.READING_LOG, _T.FAILED): _SHUT_DOWN,
    (_S.CATCHING_UP, _T.DONE): Transition(_S.CONFIRMING_AGAIN, (_A.CONFIRM_LEASE,)),
    (_S.CATCHING_UP, _T.UNREACHABLE): _FAIL_PAUSED,
    (_S.CATCHING_UP, _T.SHUT_DOWN): _SHUT_DOWN,
    (_S.CATCHING_UP, _T.FAILED): _SHUT_DOWN,
    (_S.CONFIRMING_AGAIN, _T.LEASE_CONFIRMED): Transition(_S.OPENING_TERM, (_A.OPEN_TERM,)),
    (_S.CONFIRMING_AGAIN, _T.LEASE_UNCONFIRMED): _STEP_DOWN,
    (_S.CONFIRMING_AGAIN, _T.LEASE_LOST): _LOSE,
    (_S.CONFIRMING_AGAIN, _T.SHUT_DOWN): _SHUT_DOWN,
    (_S.CONFIRMING_AGAIN, _T.FAILED): _SHUT_DOWN,
    (_S.OPENING_TERM, _T.COMMITTED): Transition(_S.LEADING, (_A.ANNOUNCE, _A.OBSERVE)),
    (_S.OPENING_TERM, _T.ABORTED): _FAIL,
    (_S.OPENING_TERM, _T.UNANSWERED): Transition(_S.OPENING_TERM, (_A.ASK_FOR_OUTCOME,)),
    (_S.OPENING_TERM, _T.UNANSWERED_FOR_LONG): _FAIL,
    (_S.OPENING_TERM, _T.FENCED): _FAIL,
    (_S.OPENING_TERM, _T.UNREACHABLE): _FAIL_PAUSED,
    (_S.OPENING_TERM, _T.SHUT_DOWN): _SHUT_DOWN,
    (_S.OPENING_TERM, _T.FAILED): _SHUT_DOWN,
    (_S.LEADING, _T.LEASE_HELD): Transition(_S.LEADING, (_A.DECIDE,)),
    (_S.LEADING, _T.LEASE_LOST): _LOSE,
    (_S.LEADING, _T.HANDED_OVER): _LOSE,
    (_S.LEADING, _T.CUT_OFF): _STEP_DOWN,
    (_S.LEADING, _T.STALLED): _STEP_DOWN,
    (_S.LEADING, _T.DEAF): _HAND_OVER,
    (_S.LEADING, _T.NOTHING_TO_COMMIT): _LEAD_ON,
    (_S.LEADING, _T.COMMITTED): _LEAD_ON,
    (_S.LEADING, _T.RESIGNED): _HAND_OVER,
    (_S.LEADING, _T.ABORTED): _LEAD_ON,
    (_S.LEADING, _T.UNANSWERED): Transition(_S.AWAITING_ANSWER, (_A.OBSERVE,)),
    (_S.LEADING, _T.FENCED): _STEP_DOWN,
    (_S.LEADING, _T.UNREACHABLE): _STEP_DOWN_PAUSED,
    (_S.LEADING, _T.SHUT_DOWN): _SHUT_DOWN,
    (_S.LEADING, _T.FAILED): _SHUT_DOWN,
    (_S.AWAITING_ANSWER, _T.LEASE_HELD): Transition(_S.AWAITING_ANSWER, (_A.ASK_FOR_OUTCOME,)),
    (_S.AWAITING_ANSWER, _T.LEASE_LOST): _LOSE,
    (_S.AWAITING_ANSWER, _T.HANDED_OVER): _LOSE,
    (_S.AWAITING_ANSWER, _T.CUT_OFF): Transition(_S.AWAITING_ANSWER, (_A.ASK_FOR_OUTCOME,)),
    (_S.AWAITING_ANSWER, _T.STALLED): Transition(_S.AWAITING_ANSWER, (_A.ASK_FOR_OUTCOME,)),
    (_S.AWAITING_ANSWER, _T.COMMITTED): _LEAD_ON,
    (_S.AWAITING_ANSWER, _T.RESIGNED): _HAND_OVER,
    (_S.AWAITING_ANSWER, _T.ABORTED): _LEAD_ON,
    (_S.AWAITING_ANSWER, _T.UNANSWERED): Transition(_S.AWAITING_ANSWER, (_A.OBSERVE,)),
    (_S.AWAITING_ANSWER, _T.UNANSWERED_FOR_LONG): _STEP_DOWN,
    (_S.AWAITING_ANSWER, _T.FENCED): _STEP_DOWN,
    (_S.AWAITING_ANSWER, _T.UNREACHABLE): _STEP_DOWN_PAUSED,
    (_S.AWAITING_ANSWER, _T.SHUT_DOWN): _SHUT_DOWN,
    (_S.AWAITING_ANSWER, _T.FAILED): _SHUT_DOWN,
    (_S.STEPPING_DOWN, _T.DONE): _FOLLOW,
    (_S.STEPPING_DOWN, _T.SHUT_DOWN): _SHUT_DOWN,
    (_S.STEPPING_DOWN, _T.FAILED): _SHUT_DOWN,
}
"""Transition table by (phase, trigger). A pair that is not in it is an error. ``docs/reference/states.md`` is generated
from it."""
