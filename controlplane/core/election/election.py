"""The state machine of the lease: it stands for election and holds the lease. It does no I/O.

The lease serves liveness only. A leader continues to lead while its lease store does not answer, unless it is
configured otherwise: all effects are commits, and Kafka fences commits. A term must be greater than every earlier one.
So the machine receives the greatest term of the log, the floor, and asks for a greater term.

The driver performs the actions in order and passes each answer to the machine before any other event, together with the
monotonic time from *before* the request. A deadline counted from that time is never later than the store's deadline.
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
    """The controller does not hold the lease. It asks for it at ``ask_at_ms``."""

    floor: Term
    ask_at_ms: int


@dataclass(frozen=True, slots=True)
class GivingBack:
    """The controller has sent the release of its lease of ``term`` and has no answer yet; otherwise a contender.

    It repeats the release at ``release_at_ms``. After a lost release, other controllers would have to wait until the
    lease expires.
    """

    floor: Term
    ask_at_ms: int
    term: Term
    release_at_ms: int


@dataclass(frozen=True, slots=True)
class Holder:
    """The controller has held the lease since ``since_ms``. Unless renewed, the lease expires at ``deadline_ms``."""

    term: Term
    deadline_ms: int
    renew_at_ms: int
    since_ms: int


ElectionState: TypeAlias = Contender | GivingBack | Holder


class _Rules(NamedTuple):
    """The settings that the transitions use."""

    lease: LeaseConfig
    stop_when_store_is_lost: bool

    def next_try_ms(self, now_ms: int) -> int:
        """The time of the next request to the store, unless the answer to this one sets another time."""
        return now_ms + self.lease.renew_interval_ms


class _Next(NamedTuple):
    """The result of an event."""

    state: ElectionState
    action: ElectionAction | None = None


class Outcome(NamedTuple):
    """A possible result of an event: a type of state, and a type of action or None."""

    state: type[ElectionState]
    action: type[ElectionAction] | None = None


@dataclass(frozen=True, slots=True)
class Transition:
    """A row of the transition table.

    Attributes:
        follow: computes the next state and the action from settings, state, monotonic time and event.
        outcomes: every result that ``follow`` may have.
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

    Both the contender's presence and this leadership must have lasted for ``handover_after_ms``, so that a contender
    that restarts repeatedly does not move the lease each time.
    """
    if event.term != holder.term:
        return _Next(holder)
    after_ms, above = rules.lease.handover_after_ms, event.outranked_by
    if after_ms and above is not None and min(above.present_ms, now_ms - holder.since_ms) >= after_ms:
        return _give_back(rules, holder, now_ms, GiveBackAsked(rules.lease.duration_ms))
    return _Next(_held(rules, event.term, event.asked_at_ms, holder.since_ms))


def _leave(_: _Rules, contender: Contender, now_ms: int, event: LeftToOther) -> _Next:
    """Ask again after the time for which the store reserves the lease for a preferred contender."""
    return _Next(Contender(contender.floor, now_ms + event.wait_ms))


def _stand_by(rules: _Rules, state: ElectionState, now_ms: int, event: HeldByOther) -> _Next:
    """Ask when the other lease expires, and at intervals before that, because its holder may give it back."""
    wait_ms = max(1, min(event.remaining_ms + 1, rules.lease.renew_interval_ms))
    return _Next(Contender(Term(max(_floor(state), event.term)), now_ms + wait_ms))


def _ask_again_later(rules: _Rules, contender: Contender, now_ms: int, _: StoreSilent) -> _Next:
    """Keep a later time to ask that is already set: it may be the end of a back-off."""
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
    """If both requests are due, only ask: a release that is repeated after that could give the new lease back."""
    if now_ms >= state.ask_at_ms:
        return _ask(rules, state.floor, now_ms)
    return _release_again(rules, state, now_ms) if now_ms >= state.release_at_ms else _Next(state)


def _give_back_again(rules: _Rules, state: GivingBack, now_ms: int, event: GiveBackAsked) -> _Next:
    """Repeat the release immediately, because the process may be about to end."""
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
"""Transition table by (type of state, type of event). A pair that is not in it is an error, and so is an outcome that
its row does not list. ``docs/reference/states.md`` is generated from it."""


class Election:
    """The state machine. ``state`` may be read at any time; only :meth:`on_event` changes it."""

    def __init__(self, config: LeaseConfig, *, stop_when_store_is_lost: bool) -> None:
        """Create a contender that asks immediately.

        Args:
            config: durations.
            stop_when_store_is_lost: stop leading when the lease expires without an answer of the store, instead of
                continuing to lead.
        """
        self._rules = _Rules(config, stop_when_store_is_lost)
        self.state: ElectionState = Contender(Term(0), 0)

    @property
    def term(self) -> Term | None:
        """The term of the lease that this controller holds, or None."""
        return self.state.term if isinstance(self.state, Holder) else None

    def on_event(self, now_ms: int, event: ElectionEvent) -> ElectionOutput:
        """Process an event at monotonic time ``now_ms``.

        Raises:
            InvariantViolationError: the transition table has no row for the event in this state, or its row does not
                list the result.
        """
        transition = TRANSITIONS.get((type(self.state), type(event)))
        if transition is None:
            raise InvariantViolationError(f"election: state {type(self.state).__name__} has no transition for {event}")
        state, action = transition.follow(self._rules, self.state, now_ms, event)
        if Outcome(type(state), None if action is None else type(action)) not in transition.outcomes:
            raise InvariantViolationError(f"election: {event} led {self.state} to {state}, {action}: no such outcome")
        self.state = state
        return Output(self.next_wake_at_ms, () if action is None else (action,))

    @property
    def next_wake_at_ms(self) -> int:
        """The monotonic time by which the machine needs a :class:`Woke`."""
        match self.state:
            case Holder(renew_at_ms=renew_at_ms):
                return renew_at_ms
            case GivingBack(ask_at_ms=ask_at_ms, release_at_ms=release_at_ms):
                return min(ask_at_ms, release_at_ms)
            case Contender(ask_at_ms=ask_at_ms):
                return ask_at_ms


def _floor(state: ElectionState) -> Term:
    """The greatest term that this controller held or heard of."""
    return state.term if isinstance(state, Holder) else state.floor


def _contend(rules: _Rules, floor: Term, now_ms: int) -> Contender:
    return Contender(floor, rules.next_try_ms(now_ms))


def _ask(rules: _Rules, floor: Term, now_ms: int) -> _Next:
    return _Next(_contend(rules, floor, now_ms), Acquire(floor))


def _release_again(rules: _Rules, state: GivingBack, now_ms: int) -> _Next:
    return _Next(replace(state, release_at_ms=rules.next_try_ms(now_ms)), Release(state.term))


def _held(rules: _Rules, term: Term, asked_at_ms: int, since_ms: int) -> Holder:
    return Holder(term, asked_at_ms + rules.lease.duration_ms, rules.next_try_ms(asked_at_ms), since_ms)
