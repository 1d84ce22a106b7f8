"""One controller: the real machines, and what their driver does with the stores, one request at a time.

A turn is the smallest thing that others can see half done: one request to a store with what its answer makes of the
machines. A machine's reaction is local, so an answer that comes late is the same as a next request that goes out late,
and that may be as late as it likes. The thread of the lease takes its turns beside those of the loop.
"""

from collections import deque
from dataclasses import replace
from typing import assert_never

from controlplane.config import LeaseConfig
from controlplane.core.election.backoff import BackOff
from controlplane.core.election.contenders import Outranking
from controlplane.core.election.election import Election, ElectionState, GivingBack, Holder
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
from controlplane.core.election.steps import ControllerAction, ControllerPhase, ControllerTrigger
from controlplane.core.values.identifiers import Term
from controlplane.core.values.machine import Woke
from tests.exploration.choices import Choices
from tests.exploration.parts import LeaseThread, Loop, Parts, timeless
from tests.exploration.rows import election_row, loop_row
from tests.exploration.stores import GONE, HELD_MS, LIVING, BrokenError, Decision, Kafka, commit, owner_of

_LEASE = LeaseConfig()
_OBSERVED = RoundObserved(
    0,
    0,
    0,
    is_deaf=False,
    contender_ahead_ms=None,
    longest_unanswered_ms=0,
    has_answers=True,
    contender_unanswered_ms=None,
)
_LOCAL = frozenset({ControllerAction.ANNOUNCE, ControllerAction.READ_BACK, ControllerAction.PAUSE})
"""Actions that ask nobody and change nothing here: they belong to the turn that leads to them."""


class Turn:
    """One turn of one controller; what is left of it stands in the attributes."""

    def __init__(self, controller: int, parts: Parts, choices: Choices, rows: set[str]) -> None:
        """Begin; each turn is one call of one of the methods that follow, and adds the ``rows`` that it uses."""
        self.thread, self.loop, self.kafka, self.lease = parts
        self._controller = controller
        self._choices = choices
        self._rows = rows

    @property
    def parts(self) -> Parts:
        """What it has left behind."""
        return Parts(self.thread, self.loop, self.kafka, self.lease)

    def begin(self) -> None:
        """A process starts, its log is folded."""
        self.thread, self.loop = LeaseThread(), Loop()
        self._react(ControllerTrigger.DONE)

    def wake(self) -> None:
        """The time has come to ask for the lease, or to renew it."""
        self._elect(Woke())

    def go_on(self) -> None:
        """The loop does the next thing that it has to do."""
        action, *rest = self.loop.pending
        event, is_error = self._perform(action)
        if is_error or not rest:
            self._react(event)
        elif not self._do_next(tuple(rest)):
            self._react(ControllerTrigger.DONE)

    def shut_down(self) -> None:
        """The loop ends, whatever it is about; what it has sent is still on its way. One ends because of an error."""
        self._react(ControllerTrigger.SHUT_DOWN if self._controller == 0 else ControllerTrigger.FAILED, ends=True)
        self.kafka = self.kafka.ended(self._controller)
        self.loop = Loop()

    def end(self) -> None:
        """After the loop the thread gives back what it has, and another process starts."""
        self._elect(GiveBackAsked(1))
        self.vanish()

    def vanish(self) -> None:
        """The process is gone: what the lease store holds in its name is no more the next one's than anybody else's."""
        if self.lease.is_held_by(0, owner_of(self._controller), LIVING):
            self.lease = replace(self.lease, process=GONE)
        self.begin()

    # -- the lease's thread ------------------------------------------------------------------------------------------

    def _elect(self, event: ElectionEvent) -> bool:
        """Tell the machine, and bring it the answers to what it asks; True if the store prolonged the lease."""
        machine = Election(_LEASE, stop_when_store_is_lost=self._controller == 1)
        machine.state = self.thread.election
        renewed = False
        events: deque[ElectionEvent] = deque([event])
        while events:
            event = events.popleft()
            renewed = renewed or isinstance(event, Renewed)
            if isinstance(event, Granted | HeldByOther):
                self._know(event.term)
            before = type(machine.state)
            actions = machine.on_event(self._now_ms(event, machine.state), event).actions
            self._rows.add(election_row(before, type(event), type(machine.state)))
            machine.state = timeless(machine.state)
            for action in actions:
                answer = self._ask(action)
                if answer is not None:
                    events.append(answer)
        self.thread = self.thread._replace(election=machine.state)
        return renewed

    def _now_ms(self, event: ElectionEvent, state: ElectionState) -> int:
        if isinstance(event, Renewed) and event.outranked_by is not None:
            return _LEASE.handover_after_ms
        if isinstance(event, Woke) and isinstance(state, GivingBack):
            return {"waits": 0, "has waited": state.ask_at_ms}[self._choices.of("waits", "has waited")]
        if self._controller == 1 and isinstance(event, StoreSilent) and isinstance(state, Holder):
            return {"before the deadline": 0, "after it": state.deadline_ms}[
                self._choices.of("before the deadline", "after it")
            ]
        return 0

    def _ask(self, action: ElectionAction) -> ElectionEvent | None:
        what = type(action).__name__.lower()
        arrives = self._choices.of(f"{what} answered", f"{what} lost", f"{what}'s answer lost")
        if arrives == f"{what} lost":
            return StoreSilent()
        answer = self._answer(action)
        return StoreSilent() if arrives == f"{what}'s answer lost" else answer

    def _answer(self, action: ElectionAction) -> ElectionEvent | None:
        owner = owner_of(self._controller)
        match action:
            case Acquire(floor=floor):
                if floor < self.thread.greatest_term:
                    raise BrokenError(f"{owner} asks for a term above {floor}, and knew {self.thread.greatest_term}")
                after = self.lease.acquired(0, owner, LIVING, floor, HELD_MS)
                outranked = after is not None and self._controller == 1 and not self.lease.holder(0)
                if outranked and self._choices.of("granted", "left to another") == "left to another":
                    return LeftToOther(1)
            case Renew(term=term):
                after = self.lease.renewed(0, owner, LIVING, term, HELD_MS)
            case Release(term=term):
                self.lease = self.lease.released(0, owner, LIVING, term) or self.lease
                return GivenBack()
            case _:
                assert_never(action)
        if after is not None:
            self.lease = after
            return Granted(after.term, 0) if isinstance(action, Acquire) else self._renewed(after.term)
        if not self.lease.holder(0):
            return LeaseGone()
        return HeldByOther(self.lease.owner, self.lease.term, self.lease.remaining_ms(0))

    def _renewed(self, term: Term) -> Renewed:
        """One controller may find out that another one is preferred to it and has stood by for long."""
        if self._controller == 0 or self._choices.of("first", "outranked") == "first":
            return Renewed(term, 0)
        return Renewed(term, 0, Outranking("preferred", 1, _LEASE.handover_after_ms))

    def _know(self, term: Term) -> None:
        self.thread = self.thread._replace(greatest_term=Term(max(term, self.thread.greatest_term)))

    # -- the loop ----------------------------------------------------------------------------------------------------

    def _hold(self) -> HeldLease:
        """What the loop is told of the lease; only one controller is ever outranked."""
        is_handed_over = self._controller == 1 and isinstance(self.thread.election, GivingBack)
        return HeldLease(self.thread.held_term, is_handed_over)

    def _react(self, event: LeadingEvent, *, ends: bool = False) -> None:
        machine = ControllerMachine(_LEASE.duration_ms)
        machine.state = self.loop.leading
        since_ms = machine.state.unanswered_since_ms
        now_ms = 0
        if event is ControllerTrigger.UNANSWERED and since_ms is not None:
            now_ms = {"not for long": 0, "for long": UNANSWERED_LIMIT_MS + 1}[
                self._choices.of("not for long", "for long")
            ]
        before = machine.state.phase
        actions = machine.on_event(now_ms, event, NOT_HELD if ends else self._hold(), 0.0).actions
        self._rows.add(loop_row(before, machine.last_trigger))
        phase, term, since_ms = machine.state
        self.loop = self.loop._replace(leading=LeadingState(phase, term, None if since_ms is None else 0))
        if ControllerAction.RAISE_FLOOR not in actions:
            self.loop = self.loop._replace(read_term=Term(0))
        self._do_next(actions)

    def _do_next(self, actions: tuple[LeadingAction, ...]) -> bool:
        """Do what asks nobody; False if nothing else is left."""
        while actions and actions[0] in _LOCAL:
            actions = actions[1:]
        self.loop = self.loop._replace(pending=actions)
        return bool(actions)

    def _perform(self, action: LeadingAction) -> tuple[LeadingEvent, bool]:  # noqa: PLR0911, PLR0912, C901 - one case an action
        """What the action brings, and whether that is an error, which ends what should come after it."""
        match action:
            case ControllerAction.FOLLOW | ControllerAction.OBSERVE:
                return self._look()
            case ControllerAction.DISCARD:
                self.kafka = self.kafka.left_by(self._controller)
                self.loop = self.loop._replace(unanswered=False, confirmed=False)
            case ControllerAction.CONFIRM_LEASE:
                return self._confirm_lease(), False
            case ControllerAction.READ_AHEAD | ControllerAction.READ_LOG:
                return self._read_log()
            case ControllerAction.OPEN_WRITER:
                return self._open_writer()
            case ControllerAction.RAISE_FLOOR:
                read_term = self.loop.read_term
                self._know(read_term)
                self.loop = self.loop._replace(read_term=Term(0))
                self._elect(FloorRaised(read_term))
            case ControllerAction.CATCH_UP:
                if self._choices.of("caught up", "nobody answers") == "nobody answers":
                    return ControllerTrigger.UNREACHABLE, True
            case ControllerAction.OPEN_TERM:
                return self._commit(opens_term=True)
            case ControllerAction.DECIDE:
                return self._commit(opens_term=False)
            case ControllerAction.ASK_FOR_OUTCOME:
                return self._ask_for_outcome(), False
            case BackOff():
                self._elect(GiveBackAsked(1))
            case _:
                raise AssertionError(f"{action} asks nobody")
        return ControllerTrigger.DONE, False

    def _look(self) -> tuple[LeadingEvent, bool]:
        held_term = self.thread.held_term
        options = ["observed"] if held_term is None else ["observed", "cut off"]
        if self.loop.leading.phase is ControllerPhase.LEADING and self._controller == 1:
            options.append("deaf")
        seen = self._choices.of(*options, "nobody answers")
        if seen == "nobody answers":
            return ControllerTrigger.UNREACHABLE, True
        if seen == "observed":
            return _OBSERVED, False
        if seen == "deaf":
            return replace(_OBSERVED, is_deaf=True, contender_unanswered_ms=0), False
        stood_ms = _LEASE.duration_ms + 1
        stood_still_ms = stood_ms if self._controller == 1 else 0
        cut_off = replace(_OBSERVED, since_acknowledged_ms=stood_ms, stood_still_ms=stood_still_ms)
        return replace(cut_off, contender_ahead_ms=stood_ms), False

    def _confirm_lease(self) -> LeadingEvent:
        term = self.loop.leading.term
        renewed = self._elect(ConfirmationAsked())
        confirmed = renewed and self.thread.held_term == term
        self.loop = self.loop._replace(confirmed=confirmed)
        return LeaseChecked(confirmed=confirmed)

    def _require_confirmation(self, what: str) -> None:
        if not self.loop.confirmed:
            raise BrokenError(f"{owner_of(self._controller)} {what} and has not asked for the lease just before")
        self.loop = self.loop._replace(confirmed=False)

    def _open_writer(self) -> tuple[LeadingEvent, bool]:
        self._require_confirmation("opens a writer")
        overtaken = ("opened, then a late opening arrives",) if self.kafka.late_opening else ("opening comes late",)
        what = self._choices.of("opened", "opening lost", "opening's answer lost", *overtaken)
        if what == "opening comes late":
            self.kafka = self.kafka._replace(late_opening=True)
        elif what == "opening's answer lost":
            self.kafka = self.kafka.opened_by(None)
        elif what != "opening lost":
            self.kafka = self.kafka.opened_by(self._controller)
            if what == "opened":
                return ControllerTrigger.DONE, False
            self.kafka = self.kafka.opened_by(None)._replace(late_opening=False)
            return ControllerTrigger.FENCED, True
        return ControllerTrigger.UNREACHABLE, True

    def _read_log(self) -> tuple[LeadingEvent, bool]:
        if self._choices.of("read", "nobody answers") == "nobody answers":
            return ControllerTrigger.UNREACHABLE, True
        self.kafka = self.kafka.known_by(self._controller)
        self.loop = self.loop._replace(read_term=self.kafka.log_term)
        return LogRead(self.kafka.log_term), False

    # -- commits -----------------------------------------------------------------------------------------------------

    def _commit(self, *, opens_term: bool) -> tuple[LeadingEvent, bool]:
        if self.loop.unanswered:
            raise BrokenError(f"{owner_of(self._controller)} commits while a commit of its own has no answer")
        if opens_term:
            self._require_confirmation("opens a term")
        nothing = () if opens_term else ("nothing to commit",)
        what = self._choices.of("commits", *nothing, "Kafka unreachable")
        if what == "Kafka unreachable":
            return ControllerTrigger.UNREACHABLE, True
        if what == "nothing to commit":
            return ControllerTrigger.NOTHING_TO_COMMIT, False
        if self.kafka.writer == self._controller:
            term = self.loop.leading.term
            assert term is not None
            by_leader = (self.kafka.log_term, self.kafka.log_leader) == (term, self._controller)
            decision = Decision(self._controller, term, opens_term, self.kafka.is_at_end(self._controller), by_leader)
            appended = self._choices.of("appended", "on its way") == "appended"
            self.kafka = self.kafka._replace(transaction=decision, appended=appended)
            if not appended:
                return self._unanswered(), False
        return self._ask_for_outcome(), False

    def _ask_for_outcome(self) -> LeadingEvent:
        if self.kafka.writer != self._controller:
            if self._choices.of("fenced", "answer lost") == "answer lost":
                return self._unanswered()
            return self._answered(ControllerTrigger.FENCED)
        transaction = self.kafka.transaction
        if transaction is None:  # it was committed meanwhile: whatever aborts it fences its writer
            if self._choices.of("committed", "answer lost") == "answer lost":
                return self._unanswered()
        else:
            outcome = self._choices.of("committed", "committed, answer lost", "not asked", "aborted")
            if outcome == "aborted":
                self.kafka = self.kafka.without_transaction()
                return self._answered(ControllerTrigger.ABORTED)
            if outcome == "not asked":
                self.kafka = self.kafka._replace(appended=True)
                return self._unanswered()
            self.kafka = commit(self.kafka, transaction)
            if outcome == "committed, answer lost":
                return self._unanswered()
        self.kafka = self.kafka.known_by(self._controller)
        return self._answered(self._committed())

    def _committed(self) -> ControllerTrigger:
        """What was committed may answer an operator who asks for another leader; only one controller is ever asked."""
        asked = self._controller == 1 and self.loop.leading.phase is not ControllerPhase.OPENING_TERM
        resigns = asked and self._choices.of("goes on", "resigns") == "resigns"
        return ControllerTrigger.RESIGNED if resigns else ControllerTrigger.COMMITTED

    def _unanswered(self) -> LeadingEvent:
        self.loop = self.loop._replace(unanswered=True)
        return ControllerTrigger.UNANSWERED

    def _answered(self, trigger: ControllerTrigger) -> LeadingEvent:
        self.loop = self.loop._replace(unanswered=False)
        return trigger


def require_leader_knows_the_log(controller: int, loop: Loop, kafka: Kafka) -> None:
    """A leader that can commit knows the log's end, and that end is of its own term.

    Raises:
        BrokenError: it does not.
    """
    phase, term, _ = loop.leading
    leads = phase in {ControllerPhase.LEADING, ControllerPhase.AWAITING_ANSWER}
    if not leads or loop.unanswered or kafka.writer != controller:
        return
    log = (kafka.log_term, kafka.log_leader, kafka.is_at_end(controller))
    if log != (term, controller, True):
        raise BrokenError(f"c{controller} leads term {term}, and the log says {log}")
