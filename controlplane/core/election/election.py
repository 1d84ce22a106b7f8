"""Standing for election and holding the lease: a passive machine over the lease store's answers.

The lease serves liveness only. A leader whose store does not answer goes on, unless it is configured otherwise, because
all effects are commits and commits are fenced by Kafka. A term must never be lower than one before, so the machine is
told the greatest term of the log, the floor, and asks for a term above it.

The driver performs the actions in order and brings each answer back before any other event, together with the
monotonic time from *before* the request: a deadline counted from then is never later than the store's own.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple, TypeAlias

from controlplane.config import LeaseConfig
from controlplane.core.election.messages import (
    Acquire,
    ConfirmationAsked,
    ElectionAction,
    ElectionEvent,
    ElectionOutput,
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


@dataclass(frozen=True, slots=True)
class Contender:
    """Does not hold the lease and asks for it from ``ask_at_ms`` on."""

    floor: Term
    ask_at_ms: int


@dataclass(frozen=True, slots=True)
class GivingBack:
    """Has given the lease back under ``term``, and repeats the request at ``release_at_ms`` unless the store answers.

    Apart from that a contender. If the request were lost, others would wait for the end of a lease that has no holder.
    """

    floor: Term
    ask_at_ms: int
    term: Term
    release_at_ms: int


@dataclass(frozen=True, slots=True)
class Holder:
    """Holds the lease since ``since_ms``; unless renewed others may take it after ``deadline_ms``."""

    term: Term
    deadline_ms: int
    renew_at_ms: int
    since_ms: int


ElectionState: TypeAlias = Contender | GivingBack | Holder


class _Rules(NamedTuple):
    """The settings that the rows of the table use."""

    lease: LeaseConfig
    stop_when_store_is_lost: bool

    def next_try_ms(self, now_ms: int) -> int:
        """When to send the next request to the store, unless its answer names another time."""
        return now_ms + self.lease.renew_interval_ms


class _Next(NamedTuple):
    """What an event leads to."""

    state: ElectionState
    action: ElectionAction | None = None


class Outcome(NamedTuple):
    """One thing that an event may lead to: a kind of state, with a kind of action or none."""

    state: type[ElectionState]
    action: type[ElectionAction] | None = None


@dataclass(frozen=True, slots=True)
class Transition:
    """What follows from an event.

    Attributes:
        follow: the next state and the action, from the rules, the state, the time and the event.
        outcomes: all that it may lead to.
    """

    follow: Callable[[_Rules, Any, int, Any], _Next]
    outcomes: tuple[Outcome, ...]


def _ask_when_due(rules: _Rules, contender: Contender, now_ms: int, _: Woke) -> _Next:
    if now_ms < contender.ask_at_ms:
        return _Next(contender)
    return _ask(rules, contender.floor, now_ms)


def _renew_when_due(rules: _Rules, holder: Holder, now_ms: int, event: Woke) -> _Next:
    return _renew(rules, holder, now_ms, event) if now_ms >= holder.renew_at_ms else _Next(holder)


def _renew(rules: _Rules, holder: Holder, now_ms: int, _: ElectionEvent) -> _Next:
    return _Next(replace(holder, renew_at_ms=rules.next_try_ms(now_ms)), Renew(holder.term))


def _hold(rules: _Rules, _: ElectionState, __: int, event: Granted) -> _Next:
    return _Next(_held(rules, event.term, event.asked_at_ms, event.asked_at_ms))


def _prolong(rules: _Rules, holder: Holder, now_ms: int, event: Renewed) -> _Next:
    """Keep the lease, or hand it over to a preferred contender.

    Both have to have been there for a while, so that a contender that comes and goes does not move the lease each time.
    """
    if event.term != holder.term:
        return _Next(holder)
    after_ms, above = rules.lease.handover_after_ms, event.outranked_by
    if after_ms and above is not None and min(above.present_ms, now_ms - holder.since_ms) >= after_ms:
        return _give_back(rules, holder, now_ms, GiveBackAsked(rules.lease.duration_ms))
    return _Next(_held(rules, event.term, event.asked_at_ms, holder.since_ms))


def _leave(_: _Rules, contender: Contender, now_ms: int, event: LeftToOther) -> _Next:
    """Ask after the time that the preferred contender is given."""
    return _Next(Contender(contender.floor, now_ms + event.wait_ms))


def _stand_by(rules: _Rules, state: ElectionState, now_ms: int, event: HeldByOther) -> _Next:
    """Ask when the other's lease ends, and at intervals before, because it may be given back."""
    wait_ms = max(1, min(event.remaining_ms + 1, rules.lease.renew_interval_ms))
    return _Next(Contender(Term(max(_floor(state), event.term)), now_ms + wait_ms))


def _ask_again_later(rules: _Rules, contender: Contender, now_ms: int, _: StoreSilent) -> _Next:
    """Not before the time to ask that was set already, which may be a back-off."""
    return _Next(replace(contender, ask_at_ms=max(contender.ask_at_ms, rules.next_try_ms(now_ms))))


def _ask_for_a_new_one(rules: _Rules, holder: Holder, now_ms: int, _: LeaseGone) -> _Next:
    return _ask(rules, holder.term, now_ms)


def _hold_on(rules: _Rules, holder: Holder, now_ms: int, _: StoreSilent) -> _Next:
    if rules.stop_when_store_is_lost and now_ms >= holder.deadline_ms:
        return _Next(_contend(rules, holder.term, now_ms))
    return _Next(holder)


def _note_floor(_: _Rules, state: Contender | GivingBack, __: int, event: FloorRaised) -> _Next:
    return _Next(replace(state, floor=Term(max(state.floor, event.floor))))


def _ask_above_floor(rules: _Rules, holder: Holder, now_ms: int, event: FloorRaised) -> _Next:
    return _ask(rules, Term(max(holder.term, event.floor)), now_ms)


def _wait(_: _Rules, contender: Contender, now_ms: int, event: GiveBackAsked) -> _Next:
    return _Next(replace(contender, ask_at_ms=max(contender.ask_at_ms, now_ms + event.wait_ms)))


def _give_back(rules: _Rules, holder: Holder, now_ms: int, event: GiveBackAsked) -> _Next:
    state = GivingBack(holder.term, now_ms + event.wait_ms, holder.term, rules.next_try_ms(now_ms))
    return _Next(state, Release(holder.term))


def _give_back_when_due(rules: _Rules, state: GivingBack, now_ms: int, _: Woke) -> _Next:
    """If both are due, ask: a release that is repeated after that could give the new lease back."""
    if now_ms >= state.ask_at_ms:
        return _ask(rules, state.floor, now_ms)
    return _release_again(rules, state, now_ms) if now_ms >= state.release_at_ms else _Next(state)


def _give_back_again(rules: _Rules, state: GivingBack, now_ms: int, event: GiveBackAsked) -> _Next:
    """At once, because the process may be about to end."""
    return _release_again(rules, replace(state, ask_at_ms=max(state.ask_at_ms, now_ms + event.wait_ms)), now_ms)


def _give_back_later(rules: _Rules, state: GivingBack, now_ms: int, _: StoreSilent) -> _Next:
    return _Next(replace(state, release_at_ms=rules.next_try_ms(now_ms)))


def _contend_when_due(_: _Rules, state: GivingBack, __: int, ___: GivenBack) -> _Next:
    return _Next(Contender(state.floor, state.ask_at_ms))


def _ignore(_: _Rules, state: ElectionState, __: int, ___: ElectionEvent) -> _Next:
    return _Next(state)


_CONTENDS: Final = Outcome(Contender)
_ASKS: Final = Outcome(Contender, Acquire)
_GIVES_BACK: Final = Outcome(GivingBack)
_RELEASES: Final = Outcome(GivingBack, Release)
_HOLDS: Final = Outcome(Holder)
_RENEWS: Final = Outcome(Holder, Renew)

TRANSITIONS: Final[dict[tuple[type[ElectionState], type[ElectionEvent]], Transition]] = {
    (Contender, Woke): Transition(_ask_when_due, (_CONTENDS, _ASKS)),
    (Contender, Granted): Transition(_hold, (_HOLDS,)),
    (Contender, HeldByOther): Transition(_stand_by, (_CONTENDS,)),
    (Contender, LeftToOther): Transition(_leave, (_CONTENDS,)),
    (Contender, StoreSilent): Transition(_ask_again_later, (_CONTENDS,)),
    (Contender, FloorRaised): Transition(_note_floor, (_CONTENDS,)),
    (Contender, GiveBackAsked): Transition(_wait, (_CONTENDS,)),
    (Contender, ConfirmationAsked): Transition(_ignore, (_CONTENDS,)),
    (GivingBack, Woke): Transition(_give_back_when_due, (_GIVES_BACK, _RELEASES, _ASKS)),
    (GivingBack, GivenBack): Transition(_contend_when_due, (_CONTENDS,)),
    (GivingBack, StoreSilent): Transition(_give_back_later, (_GIVES_BACK,)),
    (GivingBack, FloorRaised): Transition(_note_floor, (_GIVES_BACK,)),
    (GivingBack, GiveBackAsked): Transition(_give_back_again, (_RELEASES,)),
    (GivingBack, ConfirmationAsked): Transition(_ignore, (_GIVES_BACK,)),
    (Holder, Woke): Transition(_renew_when_due, (_HOLDS, _RENEWS)),
    (Holder, Renewed): Transition(_prolong, (_HOLDS, _RELEASES)),
    (Holder, HeldByOther): Transition(_stand_by, (_CONTENDS,)),
    (Holder, LeaseGone): Transition(_ask_for_a_new_one, (_ASKS,)),
    (Holder, StoreSilent): Transition(_hold_on, (_HOLDS, _CONTENDS)),
    (Holder, FloorRaised): Transition(_ask_above_floor, (_ASKS,)),
    (Holder, GiveBackAsked): Transition(_give_back, (_RELEASES,)),
    (Holder, ConfirmationAsked): Transition(_renew, (_RENEWS,)),
}
"""(kind of state, kind of event) to what follows. What is not here is an error, and so is an outcome that its row does
not name; ``docs/reference/states.md`` is drawn from it."""


class Election:
    """The machine. ``state`` may be read at any time; only :meth:`on_event` changes it."""

    def __init__(self, config: LeaseConfig, *, stop_when_store_is_lost: bool) -> None:
        """A contender that asks at once.

        Args:
            config: durations.
            stop_when_store_is_lost: give up when the deadline passes without an answer, instead of going on.
        """
        self._rules = _Rules(config, stop_when_store_is_lost)
        self.state: ElectionState = Contender(Term(0), 0)

    @property
    def term(self) -> Term | None:
        """The term under which the lease is ours, or None."""
        return self.state.term if isinstance(self.state, Holder) else None

    def on_event(self, now_ms: int, event: ElectionEvent) -> ElectionOutput:
        """Take an event up; ``now_ms`` is monotonic.

        Raises:
            InvariantViolationError: the transition table does not know what happened.
        """
        transition = TRANSITIONS.get((type(self.state), type(event)))
        if transition is None:
            raise InvariantViolationError(f"a {type(self.state).__name__} of the lease does not expect {event}")
        state, action = transition.follow(self._rules, self.state, now_ms, event)
        if Outcome(type(state), None if action is None else type(action)) not in transition.outcomes:
            raise InvariantViolationError(f"{event} led {self.state} to {state} and {action}, which its row forbids")
        self.state = state
        return Output(self.next_wake_at_ms, () if action is None else (action,))

    @property
    def next_wake_at_ms(self) -> int:
        """When the machine wants a :class:`Woke` next."""
        match self.state:
            case Holder(renew_at_ms=renew_at_ms):
                return renew_at_ms
            case GivingBack(ask_at_ms=ask_at_ms, release_at_ms=release_at_ms):
                return min(ask_at_ms, release_at_ms)
            case Contender(ask_at_ms=ask_at_ms):
                return ask_at_ms


def _floor(state: ElectionState) -> Term:
    """The greatest term that was held or named."""
    return state.term if isinstance(state, Holder) else state.floor


def _contend(rules: _Rules, floor: Term, now_ms: int) -> Contender:
    return Contender(floor, rules.next_try_ms(now_ms))


def _ask(rules: _Rules, floor: Term, now_ms: int) -> _Next:
    return _Next(_contend(rules, floor, now_ms), Acquire(floor))


def _release_again(rules: _Rules, state: GivingBack, now_ms: int) -> _Next:
    return _Next(replace(state, release_at_ms=rules.next_try_ms(now_ms)), Release(state.term))


def _held(rules: _Rules, term: Term, asked_at_ms: int, since_ms: int) -> Holder:
    return Holder(term, asked_at_ms + rules.lease.duration_ms, rules.next_try_ms(asked_at_ms), since_ms)
