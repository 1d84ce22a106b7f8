"""Standing for election as SOFARegistry's meta server does, over the record of ``distribute_lock``: a passive machine.

A round each second: read the row; make it where there is none; renew it where it is one's own; try to take it over
where it has run out; read back, because only the row says what came of it. An observer only reads. The rounds are
those of ``MetaJdbcLeaderElector`` and ``AbstractLeaderElector`` (6.x), and so are their holes:
``docs/explanation/sofa-election.md``.

Two things are ours. A leadership has a *term* for our log, which grows although the row's may not (it is lost with the
store's data): greater than every one that this controller had or was told of. And whoever is to *give back* leads no
more at once and only watches until the row is another's or has run out; SOFARegistry's leads on for half the duration.

The driver performs the actions in order, and none of those that follow a request without an answer.
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
    """A controller's two clocks: rounds go by the monotonic one, leading ends by the wall clock, as in SOFARegistry."""

    monotonic_ms: int
    wall_ms: int


@dataclass(frozen=True, slots=True)
class ReadLock:
    """Read the row."""


@dataclass(frozen=True, slots=True)
class InsertLock:
    """Make the row with oneself as owner, unless there is one."""


@dataclass(frozen=True, slots=True)
class RenewLock:
    """Say that one lives; ``seen`` is one's own row as it was read."""

    seen: LockRecord


@dataclass(frozen=True, slots=True)
class TakeLockOver:
    """Become the owner if the row still is as it was seen and its time is over."""

    seen: LockRecord


@dataclass(frozen=True, slots=True)
class Announce:
    """Leading has begun or ended; once for each time."""

    leads: bool


SofaElectionAction: TypeAlias = ReadLock | InsertLock | RenewLock | TakeLockOver | Announce


@dataclass(frozen=True, slots=True)
class LockRead:
    """The row as the store has it; ``asked_at_ms`` is the monotonic time from before the request."""

    reading: LockReading
    asked_at_ms: int


@dataclass(frozen=True, slots=True)
class InsertAnswered:
    """The store has run the insert, whatever it did."""


@dataclass(frozen=True, slots=True)
class QuitElection:
    """Only observe from now on (``PUT meta/leader/quit/election``).

    Told by the tests of parity alone: a controller of ours that only observes is started as one.
    """


@dataclass(frozen=True, slots=True)
class JoinElection:
    """Stand for election again; told by the tests of parity alone, as :class:`QuitElection`."""


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
    """Where a round stands."""

    RESTING = "resting"
    """Between two rounds."""
    LOOKING = "looking"
    INSERTING = "inserting"
    READING_BACK = "reading_back"
    """After the insert, whether or not that was answered."""
    RENEWING = "renewing"
    TAKING_OVER = "taking_over"


class Finding(Enum):
    """What an event says to a round."""

    DUE = "due"
    NO_RECORD = "no_record"
    OWN = "own"
    """The row names this controller, which believes itself that it leads."""
    HELD = "held"
    """The row names somebody and has not run out. It may be this controller, which no longer believes it."""
    RUN_OUT = "run_out"
    OBSERVED = "observed"
    """Whatever the row says: who reads it does not stand."""
    INSERT_ANSWERED = "insert_answered"
    READ_BACK = "read_back"
    VANISHED = "vanished"
    """There is no row to read back: somebody deleted it in between."""
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
"""(phase, finding) to the next phase. What is not here is an error; ``docs/reference/states.md`` is drawn from it."""


@dataclass(frozen=True, slots=True)
class Stands:
    """Takes part."""


@dataclass(frozen=True, slots=True)
class Observes:
    """Reads only, until it is told to stand."""


@dataclass(frozen=True, slots=True)
class Yields:
    """Is to give back: reads only, until ``not_before_ms`` and until the row is another's or has run out."""

    not_before_ms: int


Stance: TypeAlias = Stands | Observes | Yields


class SofaElection:
    """The machine. Its attributes may be read at any time; only :meth:`on_event` changes them.

    Attributes:
        phase: where the round stands.
        stance: whether it takes part.
        info: what it believes of the leader.
        record: the row as it was last read.
        next_wake_at_ms: when it wants a :class:`Woke` next, by the monotonic clock.
        confirmed_at_ms: the row was this controller's after this monotonic time, as far as is known; -1 for never.
    """

    def __init__(self, owner: ControllerId, config: SofaLeaseConfig, *, observes: bool = False) -> None:
        """Its first round is due at once."""
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
        """Whether SOFARegistry's meta server would call itself the leader (``amILeader``)."""
        return self._names_me(self.info.leader, wall_ms)

    def term_at(self, wall_ms: int) -> Term | None:
        """The term in which this controller may lead now, or None."""
        return self._term if self.leads(wall_ms) and not isinstance(self.stance, Yields) else None

    def on_event(self, now: LocalTime, event: SofaElectionEvent) -> Output[SofaElectionAction]:
        """Take an event up.

        Raises:
            InvariantViolationError: an answer to something that was not asked.
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
            raise InvariantViolationError(f"the election is {self.phase.value}: {finding.value} answers nothing asked")
        before, self.phase = self.phase, after
        if after is not Phase.RESTING:
            if read is not None:
                self.record = read.reading.record
            return self._asks(after, self.record)
        self.next_wake_at_ms = now.monotonic_ms + self._config.loop_interval_ms
        if read is not None and finding is not Finding.VANISHED:
            return self._conclude(now, finding, read)
        if (before, finding) == (Phase.RENEWING, Finding.SILENCE) and self.record is not None:
            # Only this error is caught there: the row as read before counts. After others nobody is told anything.
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
        """A round ends with a row, or for an observer with none."""
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
        """From the next round on, so that others come first."""
        record = reading.record
        is_free = record is None or record.owner != self._owner or record.has_run_out(reading.store_now_ms)
        if is_free and now.monotonic_ms >= stance.not_before_ms:
            self.stance = Stands()

    def _tell(self, *, leads: bool) -> tuple[SofaElectionAction, ...]:
        """Keep the term in step with leading, and announce where leading begins or ends.

        A leadership has one term; the next one has a greater one, also where the owner is the same.
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
        """Both tests of the source look at the same belief: it has to name me, or the row, and not to have expired."""
        return leader == self._owner and wall_ms < self.info.expires_at_ms
