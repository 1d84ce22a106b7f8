"""Standing for election and holding the lease: a passive machine over the lease store's answers.

The lease is liveness only. A leader whose store does not answer goes on (unless told otherwise), because all effects
are commits and commits are fenced by Kafka. What must never happen is a term that falls; hence the floor from the log.

The driver performs the actions in order and brings each answer back as an event together with the monotonic time from
*before* the request: a deadline counted from then is never later than the store's own.
"""

from dataclasses import dataclass
from typing import TypeAlias, assert_never

from controlplane.config import LeaseConfig
from controlplane.core.identifiers import ControllerId, Term
from controlplane.core.machine import Output


@dataclass(frozen=True, slots=True)
class Acquire:
    """Ask for the lease with a term above ``floor``."""

    floor: Term


@dataclass(frozen=True, slots=True)
class Renew:
    """Prolong the lease."""

    term: Term


@dataclass(frozen=True, slots=True)
class Release:
    """Give the lease back; no answer is awaited."""

    term: Term


ElectionAction: TypeAlias = Acquire | Renew | Release


@dataclass(frozen=True, slots=True)
class Woke:
    """Time has passed; may come early, late or repeatedly."""


@dataclass(frozen=True, slots=True)
class Granted:
    """The store granted the lease."""

    term: Term
    asked_at_ms: int


@dataclass(frozen=True, slots=True)
class Renewed:
    """The store prolonged the lease."""

    term: Term
    asked_at_ms: int


@dataclass(frozen=True, slots=True)
class HeldByOther:
    """The store names another holder, or ourselves under another term."""

    owner: ControllerId
    term: Term
    remaining_ms: int


@dataclass(frozen=True, slots=True)
class LeaseGone:
    """The store knows no lease: it ran out, or the store lost its data."""


@dataclass(frozen=True, slots=True)
class StoreSilent:
    """The store did not answer in time."""


@dataclass(frozen=True, slots=True)
class FloorRaised:
    """The log holds this term or a higher one: our own has to be above it."""

    floor: Term


@dataclass(frozen=True, slots=True)
class Resigned:
    """We give the lease back on our own account and stand again after ``wait_ms``."""

    wait_ms: int


@dataclass(frozen=True, slots=True)
class ConfirmationAsked:
    """Somebody needs to know now whether the lease is still ours."""


ElectionEvent: TypeAlias = (
    Woke | Granted | Renewed | HeldByOther | LeaseGone | StoreSilent | FloorRaised | Resigned | ConfirmationAsked
)


@dataclass(frozen=True, slots=True)
class Contender:
    """Does not hold the lease and asks for it from ``ask_at_ms`` on."""

    floor: Term
    ask_at_ms: int


@dataclass(frozen=True, slots=True)
class Holder:
    """Holds the lease; unless renewed others may take it after ``deadline_ms``."""

    term: Term
    deadline_ms: int
    renew_at_ms: int


ElectionState: TypeAlias = Contender | Holder
ElectionOutput: TypeAlias = Output[ElectionAction]


class Election:
    """The machine. ``state`` may be read at any time; only :meth:`on_event` changes it."""

    def __init__(self, config: LeaseConfig, *, stop_when_store_is_lost: bool) -> None:
        """A contender that asks at once.

        Args:
            config: durations.
            stop_when_store_is_lost: give up when the deadline passes without an answer, instead of going on.
        """
        self._config = config
        self._stop_when_store_is_lost = stop_when_store_is_lost
        self.state: ElectionState = Contender(Term(0), 0)

    @property
    def term(self) -> Term | None:
        """The term under which the lease is ours, or None."""
        return self.state.term if isinstance(self.state, Holder) else None

    def on_event(self, now_ms: int, event: ElectionEvent) -> ElectionOutput:
        """Take an event up; ``now_ms`` is monotonic."""
        if isinstance(self.state, Contender):
            actions = self._as_contender(now_ms, self.state, event)
        else:
            actions = self._as_holder(now_ms, self.state, event)
        return Output(self.next_wake_at_ms, actions)

    @property
    def next_wake_at_ms(self) -> int:
        """When the machine wants a :class:`Woke` next."""
        return self.state.renew_at_ms if isinstance(self.state, Holder) else self.state.ask_at_ms

    def _as_contender(self, now_ms: int, contender: Contender, event: ElectionEvent) -> tuple[ElectionAction, ...]:
        match event:
            case Granted(term=term, asked_at_ms=asked_at_ms):
                self.state = self._held(term, asked_at_ms)
            case HeldByOther(term=term, remaining_ms=remaining_ms):
                wait_ms = max(1, min(remaining_ms + 1, self._config.renew_interval_ms))
                self.state = Contender(Term(max(contender.floor, term)), now_ms + wait_ms)
            case StoreSilent() | LeaseGone():
                self.state = Contender(contender.floor, now_ms + self._config.renew_interval_ms)
            case FloorRaised(floor=floor):
                self.state = Contender(Term(max(contender.floor, floor)), contender.ask_at_ms)
            case Resigned(wait_ms=wait_ms):
                self.state = Contender(contender.floor, max(contender.ask_at_ms, now_ms + wait_ms))
            case Woke():
                if now_ms >= contender.ask_at_ms:
                    self.state = Contender(contender.floor, now_ms + self._config.renew_interval_ms)
                    return (Acquire(contender.floor),)
            case Renewed() | ConfirmationAsked():
                pass  # an answer that came after we gave up
            case _:
                assert_never(event)
        return ()

    def _as_holder(self, now_ms: int, holder: Holder, event: ElectionEvent) -> tuple[ElectionAction, ...]:
        match event:
            case Renewed(term=term, asked_at_ms=asked_at_ms):
                if term == holder.term:
                    self.state = self._held(term, asked_at_ms)
            case Granted(term=term, asked_at_ms=asked_at_ms):
                self.state = self._held(term, asked_at_ms)
            case HeldByOther(term=term, remaining_ms=remaining_ms):
                wait_ms = max(1, min(remaining_ms + 1, self._config.renew_interval_ms))
                self.state = Contender(Term(max(holder.term, term)), now_ms + wait_ms)
            case LeaseGone():
                self.state = Contender(holder.term, now_ms + self._config.renew_interval_ms)
                return (Acquire(holder.term),)
            case FloorRaised(floor=floor):
                self.state = Contender(Term(max(holder.term, floor)), now_ms + self._config.renew_interval_ms)
                return (Acquire(Term(max(holder.term, floor))),)
            case Resigned(wait_ms=wait_ms):
                self.state = Contender(holder.term, now_ms + wait_ms)
                return (Release(holder.term),)
            case StoreSilent():
                self._hold_on(now_ms, holder)
            case Woke():
                if now_ms >= holder.renew_at_ms:
                    return self._renew(now_ms, holder)
            case ConfirmationAsked():
                return self._renew(now_ms, holder)
            case _:
                assert_never(event)
        return ()

    def _held(self, term: Term, asked_at_ms: int) -> Holder:
        return Holder(term, asked_at_ms + self._config.duration_ms, asked_at_ms + self._config.renew_interval_ms)

    def _renew(self, now_ms: int, holder: Holder) -> tuple[ElectionAction, ...]:
        self.state = Holder(holder.term, holder.deadline_ms, now_ms + self._config.renew_interval_ms)
        return (Renew(holder.term),)

    def _hold_on(self, now_ms: int, holder: Holder) -> None:
        if self._stop_when_store_is_lost and now_ms >= holder.deadline_ms:
            self.state = Contender(holder.term, now_ms + self._config.renew_interval_ms)
