"""The state machine of the lease profile ``sofa``: an election over the record of ``distribute_lock``. It does no I/O.

A round takes place once per second. It reads the row, inserts one if there is none, renews it if it is the controller's
own, or tries to take it over if it has expired. Then it reads the row back, because only the row shows the result. An
observer only reads. The rounds are those of SOFARegistry's ``MetaJdbcLeaderElector`` and ``AbstractLeaderElector``
(6.x) and have the same weaknesses: ``docs/explanation/sofa-election.md``.

Two things differ from SOFARegistry:

- A leadership has a *term* for the decision log. It is greater than every term that this controller had and than the
  floor. The row's own term does not ensure that, because it is lost with the store's data.
- A controller that *gives back* stops leading immediately. It then only reads until the row has another owner or has
  expired. SOFARegistry's leader continues to lead for half the duration.

The driver performs the actions in order, and drops those that follow a request without an answer.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final, NamedTuple, TypeAlias

from controlplane.config import SofaLeaseConfig
from controlplane.core.election.lock_record import HAS_NO_LEADER, LeaderInfo, LockReading, LockRecord, leader_info
from controlplane.core.election.messages import ConfirmationAsked, FloorRaised, GiveBackAsked, StoreSilent
from controlplane.core.values.identifiers import ControllerId, Term
from controlplane.core.values.machine import Output, Woke
from controlplane.errors import InvariantViolationError


class LocalTime(NamedTuple):
    """A controller's clocks: the monotonic one times rounds, the wall clock ends a leadership, as in SOFARegistry."""

    monotonic_ms: int
    wall_ms: int


@dataclass(frozen=True, slots=True)
class ReadLock:
    """Read the row."""


@dataclass(frozen=True, slots=True)
class InsertLock:
    """Insert the row with this controller as owner, unless there is one."""


@dataclass(frozen=True, slots=True)
class RenewLock:
    """Renew this controller's row; ``seen`` is the row as it was read."""

    seen: LockRecord


@dataclass(frozen=True, slots=True)
class TakeLockOver:
    """Become the owner, if the row is still as in ``seen`` and has expired."""

    seen: LockRecord


@dataclass(frozen=True, slots=True)
class Announce:
    """Report that leading has begun or ended, once for each change."""

    leads: bool


SofaElectionAction: TypeAlias = ReadLock | InsertLock | RenewLock | TakeLockOver | Announce


@dataclass(frozen=True, slots=True)
class LockRead:
    """The store returned the row; ``asked_at_ms`` is the monotonic time from before the request."""

    reading: LockReading
    asked_at_ms: int


@dataclass(frozen=True, slots=True)
class InsertAnswered:
    """The store answered the insert, which may have had no effect."""


@dataclass(frozen=True, slots=True)
class QuitElection:
    """Only observe from now on (``PUT meta/leader/quit/election``).

    Only tests send this event. A controller that only observes is started as an observer.
    """


@dataclass(frozen=True, slots=True)
class JoinElection:
    """Stand for election again. Only tests send this event, as :class:`QuitElection`."""


SofaElectionEvent: TypeAlias = (
    Woke
    | LockRead
    | InsertAnswered
    | StoreSilent
    | QuitElection
    | JoinElection
    | FloorRaised
    | GiveBackAsked
    | ConfirmationAsked
)


class Phase(Enum):
    """The phase of a round."""

    RESTING = "resting"
    """Between two rounds."""
    LOOKING = "looking"
    INSERTING = "inserting"
    READING_BACK = "reading_back"
    """After the insert, with or without its answer."""
    RENEWING = "renewing"
    TAKING_OVER = "taking_over"


class Finding(Enum):
    """What an event means to a round."""

    DUE = "due"
    NO_RECORD = "no_record"
    OWN = "own"
    """The row names this controller, and its :class:`LeaderInfo` has not expired."""
    HELD = "held"
    """The row has not expired. Its owner may be this controller, if its :class:`LeaderInfo` has expired."""
    RUN_OUT = "run_out"
    OBSERVED = "observed"
    """The row was read by a controller that does not stand for election."""
    INSERT_ANSWERED = "insert_answered"
    READ_BACK = "read_back"
    VANISHED = "vanished"
    """There is no row to read back: it was deleted in between."""
    SILENCE = "silence"
    """The store did not answer."""


_P, _F = Phase, Finding
TRANSITIONS: Final[Mapping[tuple[Phase, Finding], Phase]] = {
    (_P.RESTING, _F.DUE): _P.LOOKING,
    (_P.LOOKING, _F.NO_RECORD): _P.INSERTING,
    (_P.LOOKING, _F.OWN): _P.RENEWING,
    (_P.LOOKING, _F.RUN_OUT): _P.TAKING_OVER,
    (_P.LOOKING, _F.HELD): _P.RESTING,
    (_P.LOOKING, _F.OBSERVED): _P.RESTING,
    (_P.LOOKING, _F.SILENCE): _P.RESTING,
    (_P.INSERTING, _F.INSERT_ANSWERED): _P.READING_BACK,
    (_P.INSERTING, _F.SILENCE): _P.READING_BACK,
    (_P.READING_BACK, _F.READ_BACK): _P.RESTING,
    (_P.READING_BACK, _F.VANISHED): _P.RESTING,
    (_P.READING_BACK, _F.SILENCE): _P.RESTING,
    (_P.RENEWING, _F.READ_BACK): _P.RESTING,
    (_P.RENEWING, _F.VANISHED): _P.RESTING,
    (_P.RENEWING, _F.SILENCE): _P.RESTING,
    (_P.TAKING_OVER, _F.READ_BACK): _P.RESTING,
    (_P.TAKING_OVER, _F.VANISHED): _P.RESTING,
    (_P.TAKING_OVER, _F.SILENCE): _P.RESTING,
}
"""Transition table: (phase, finding) to the next phase. A pair that is not in it is an error.
``docs/reference/states.md`` is generated from it."""


@dataclass(frozen=True, slots=True)
class Stands:
    """The controller stands for election."""


@dataclass(frozen=True, slots=True)
class Observes:
    """The controller only reads, until :class:`JoinElection`."""


@dataclass(frozen=True, slots=True)
class Yields:
    """The controller gives back: it only reads until ``not_before_ms``, and until the row expires or changes owner."""

    not_before_ms: int


Stance: TypeAlias = Stands | Observes | Yields


class SofaElection:
    """The state machine. Its attributes may be read at any time; only :meth:`on_event` changes them.

    Attributes:
        phase: phase of the present round.
        stance: whether the controller stands for election.
        info: the leader by the last row that counted.
        record: the row as it was last read.
        next_wake_at_ms: the monotonic time by which the machine needs a :class:`Woke`.
        confirmed_at_ms: monotonic time from before the last request that showed this controller as leader; -1 without
            one.
    """

    def __init__(self, owner: ControllerId, config: SofaLeaseConfig, *, observes: bool = False) -> None:
        """Create a machine whose first round is due immediately."""
        self.phase = Phase.RESTING
        self.stance: Stance = Observes() if observes else Stands()
        self.info: LeaderInfo = HAS_NO_LEADER
        self.record: LockRecord | None = None
        self.next_wake_at_ms = 0
        self.confirmed_at_ms = -1
        self._owner = owner
        self._config = config
        self._announced = False
        self._floor = Term(0)
        self._term: Term | None = None
        self._term_of_record = 0

    def leads(self, wall_ms: int) -> bool:
        """Whether SOFARegistry's meta server would consider itself the leader (``amILeader``)."""
        return self._names_me(self.info.leader, wall_ms)

    def term_at(self, wall_ms: int) -> Term | None:
        """The term in which this controller may lead now, or None."""
        return self._term if self.leads(wall_ms) and not isinstance(self.stance, Yields) else None

    def on_event(self, now: LocalTime, event: SofaElectionEvent) -> Output[SofaElectionAction]:
        """Process an event.

        Raises:
            InvariantViolationError: the event answers a request that was not sent in this phase.
        """
        if self._term is not None and not self.leads(now.wall_ms):
            self._end_term()
        actions = self._take(now, event)
        return Output(self.next_wake_at_ms, actions)

    def _take(self, now: LocalTime, event: SofaElectionEvent) -> tuple[SofaElectionAction, ...]:
        match event:
            case Woke():
                due = self.phase is Phase.RESTING and now.monotonic_ms >= self.next_wake_at_ms
                return self._step(now, Finding.DUE, None) if due else ()
            case ConfirmationAsked():
                return self._step(now, Finding.DUE, None) if self.phase is Phase.RESTING else ()
            case LockRead(reading=reading):
                return self._step(now, self._found(now, reading), event)
            case InsertAnswered():
                return self._step(now, Finding.INSERT_ANSWERED, None)
            case StoreSilent():
                return self._step(now, Finding.SILENCE, None)
            case QuitElection():
                self.stance = Observes()
            case JoinElection():
                self.stance = Stands()
            case FloorRaised(floor=floor):
                self._floor = Term(max(self._floor, floor))
                if self._term is not None and self._term <= floor:
                    self._term = Term(floor + 1)
            case GiveBackAsked(wait_ms=wait_ms):
                if not isinstance(self.stance, Observes):
                    self.stance = Yields(now.monotonic_ms + wait_ms)
                return self._tell(leads=False)
        return ()

    def _found(self, now: LocalTime, reading: LockReading) -> Finding:
        record = reading.record
        if self.phase is not Phase.LOOKING:
            return Finding.VANISHED if record is None else Finding.READ_BACK
        if not isinstance(self.stance, Stands):
            return Finding.OBSERVED
        if record is None:
            return Finding.NO_RECORD
        if self._names_me(record.owner, now.wall_ms):
            return Finding.OWN
        return Finding.RUN_OUT if record.has_run_out(reading.store_now_ms) else Finding.HELD

    def _step(self, now: LocalTime, finding: Finding, read: LockRead | None) -> tuple[SofaElectionAction, ...]:
        after = TRANSITIONS.get((self.phase, finding))
        if after is None:
            raise InvariantViolationError(f"election: phase {self.phase.value} has no transition for {finding.value}")
        before, self.phase = self.phase, after
        if after is not Phase.RESTING:
            if read is not None:
                self.record = read.reading.record
            return self._asks(after, self.record)
        self.next_wake_at_ms = now.monotonic_ms + self._config.loop_interval_ms
        if read is not None and finding is not Finding.VANISHED:
            return self._conclude(now, finding, read)
        if (before, finding) == (Phase.RENEWING, Finding.SILENCE) and self.record is not None:
            # SOFARegistry catches only this error, and uses the row as read before. Other errors announce nothing.
            self.info = leader_info(self.record)
            return self._tell(leads=self.leads(now.wall_ms))
        return ()

    @staticmethod
    def _asks(phase: Phase, record: LockRecord | None) -> tuple[SofaElectionAction, ...]:
        match phase, record:
            case Phase.INSERTING, None:
                return (InsertLock(),)
            case Phase.RENEWING, LockRecord() as seen:
                return RenewLock(seen), ReadLock()
            case Phase.TAKING_OVER, LockRecord() as seen:
                return TakeLockOver(seen), ReadLock()
            case _:
                return (ReadLock(),)

    def _conclude(self, now: LocalTime, finding: Finding, read: LockRead) -> tuple[SofaElectionAction, ...]:
        """End a round that has read the row, which only an observer may find missing."""
        self.record = read.reading.record
        self.info = HAS_NO_LEADER if self.record is None else leader_info(self.record)
        if isinstance(self.stance, Yields):
            self._stand_again(now, self.stance, read.reading)
            return ()
        leads = self.leads(now.wall_ms)
        if leads and finding is Finding.READ_BACK:
            self.confirmed_at_ms = read.asked_at_ms
        return self._tell(leads=leads)

    def _stand_again(self, now: LocalTime, stance: Yields, reading: LockReading) -> None:
        """Stand for election from the next round on, so that other contenders come first."""
        record = reading.record
        is_free = record is None or record.owner != self._owner or record.has_run_out(reading.store_now_ms)
        if is_free and now.monotonic_ms >= stance.not_before_ms:
            self.stance = Stands()

    def _tell(self, *, leads: bool) -> tuple[SofaElectionAction, ...]:
        """Begin or end the term as leading begins or ends, and announce the change.

        A leadership has one term. The next leadership has a greater one, also with the same owner.
        """
        record = self.record
        if self._term is not None and (not leads or (record is not None and record.term != self._term_of_record)):
            self._end_term()
        if leads and self._term is None and record is not None:
            self._term_of_record = record.term
            self._term = Term(max(record.term + 1 - self._config.first_term, self._floor + 1))
        if leads == self._announced:
            return ()
        self._announced = leads
        return (Announce(leads),)

    def _end_term(self) -> None:
        if self._term is not None:
            self._floor = Term(max(self._floor, self._term))
            self._term = None

    def _names_me(self, leader: ControllerId | None, wall_ms: int) -> bool:
        """Whether ``leader`` is this controller and :attr:`info` has not expired. SOFARegistry checks both twice."""
        return leader == self._owner and wall_ms < self.info.expires_at_ms
