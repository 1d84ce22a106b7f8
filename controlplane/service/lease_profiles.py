"""The two lease profiles, each a machine with the store that answers it; ``lease_keeper`` drives them."""

from collections.abc import Callable
from typing import Any, Protocol, TypeAlias, TypeVar

import structlog

from controlplane.config import LeaseConfig, SofaLeaseConfig, SofaRenewal
from controlplane.core.election.election import Election
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
from controlplane.core.election.sofa_election import (
    Announce,
    InsertAnswered,
    InsertLock,
    LocalTime,
    LockRead,
    ReadLock,
    RenewLock,
    SofaElection,
    SofaElectionAction,
    SofaElectionEvent,
    TakeLockOver,
)
from controlplane.core.values.identifiers import ControllerId, ProcessId, Term
from controlplane.core.values.machine import Woke
from controlplane.ports import (
    AcquireOutcome,
    Clock,
    LeaseGranted,
    LeaseHeld,
    LeaseLeft,
    LeaseMissing,
    LeaseRenewed,
    LeaseStore,
    LockStore,
)

ActionT = TypeVar("ActionT")
EventT = TypeVar("EventT")

CommonEvent: TypeAlias = Woke | StoreSilent | FloorRaised | GiveBackAsked | ConfirmationAsked
"""The events that the machine of every profile handles, independent of its store."""

_log = structlog.get_logger(__name__)


class LeaseProfile(Protocol[ActionT, EventT]):
    """An election machine and its store. The keeper calls everything but :meth:`perform` while holding its lock."""

    @property
    def term(self) -> Term | None:
        """The term under which this controller may lead now, or None."""
        ...

    @property
    def next_wake_at_ms(self) -> int:
        """The time at which the machine has to be woken next, in ms of the monotonic clock."""
        ...

    @property
    def confirmed_at_ms(self) -> int:
        """The monotonic time of the last request that confirmed that the lease is held; -1 if there was none."""
        ...

    @property
    def is_handed_over(self) -> bool:
        """Whether the lease was given back so that a preferred controller can take it."""
        ...

    def on_event(self, event: EventT | CommonEvent) -> tuple[ActionT, ...]:
        """Pass an event to the machine; return the actions to perform, in order."""
        ...

    def perform(self, action: ActionT) -> EventT | None:
        """Perform an action; return the store's answer as an event, or None if the machine waits for none.

        Raises:
            LeaseStoreUnavailableError: the store did not answer.
        """
        ...


AnyProfile: TypeAlias = LeaseProfile[Any, Any]
"""A profile whose action and event types do not matter, because its caller only passes them between its two halves."""


class OwnLease:
    """The default: a lease in Redis that is granted, renewed and released by owner, process and term."""

    def __init__(
        self,
        store: LeaseStore,
        clock: Clock,
        owner: ControllerId,
        config: LeaseConfig,
        *,
        stop_when_store_is_lost: bool,
        is_ready: Callable[[], bool],
    ) -> None:
        """Set up without a request to the store.

        Args:
            store: holds the lease.
            clock: monotonic time.
            owner: the name of this controller.
            config: durations and priority.
            stop_when_store_is_lost: give the term up when the lease ends without an answer from the store.
            is_ready: whether this controller could lead well now. Only then is it entered as a contender with its
                priority, to which others leave a free lease.
        """
        self._is_ready = is_ready
        self._has_asked = False
        self._twin: ProcessId | None = None
        self.confirmed_at_ms = -1
        self.is_handed_over = False
        self._store = store
        self._clock = clock
        self._owner = owner
        self._config = config
        self._election = Election(config, stop_when_store_is_lost=stop_when_store_is_lost)

    @property
    def term(self) -> Term | None:
        """See :attr:`LeaseProfile.term`."""
        return self._election.term

    @property
    def next_wake_at_ms(self) -> int:
        """See :attr:`LeaseProfile.next_wake_at_ms`."""
        return self._election.next_wake_at_ms

    def on_event(self, event: ElectionEvent) -> tuple[ElectionAction, ...]:
        """See :meth:`LeaseProfile.on_event`."""
        actions = self._election.on_event(self._clock.monotonic_ms(), event).actions
        if isinstance(event, Granted | Renewed):
            self.confirmed_at_ms = event.asked_at_ms
            self.is_handed_over = self._election.term is None
        if isinstance(event, Renewed) and event.outranked_by is not None and self.is_handed_over:
            preferred, priority, _ = event.outranked_by
            _log.info("handing the lease over to a preferred controller", preferred=preferred, priority=priority)
        return actions

    def perform(self, action: ElectionAction) -> ElectionEvent | None:
        """See :meth:`LeaseProfile.perform`."""
        asked_at_ms = self._clock.monotonic_ms()
        match action:
            case Acquire(floor=floor):
                # No priority with the first request: the store's record of this name is of an earlier process.
                priority = self._config.priority if self._has_asked and self._is_ready() else None
                self._has_asked = True
                outcome = self._store.acquire(self._owner, floor, self._config.duration_ms, priority)
                self._look_for_twin(outcome)
                match outcome:
                    case LeaseGranted(term=granted):
                        return Granted(granted, asked_at_ms)
                    case LeaseLeft(left_to=preferred, wait_ms=wait_ms):
                        _log.info("leaving the lease to a preferred controller", preferred=preferred, wait_ms=wait_ms)
                        return LeftToOther(wait_ms)
                    case LeaseHeld(owner=owner, term=other, remaining_ms=remaining_ms):
                        return HeldByOther(owner, other, remaining_ms)
            case Renew(term=term):
                match self._store.renew(self._owner, term, self._config.duration_ms, self._config.priority):
                    case LeaseRenewed(outranked_by=outranking):
                        return Renewed(term, asked_at_ms, outranking)
                    case LeaseHeld(owner=owner, term=other, remaining_ms=remaining_ms):
                        return HeldByOther(owner, other, remaining_ms)
                    case LeaseMissing():
                        return LeaseGone()
            case Release(term=term):
                self._store.release(self._owner, term)
                return GivenBack()

    def _look_for_twin(self, outcome: AcquireOutcome) -> None:
        """Log that another process holds the lease under this controller's name, once for each such process."""
        twin = outcome.process if isinstance(outcome, LeaseHeld) and outcome.owner == self._owner else None
        if twin not in {None, self._twin}:
            _log.warning(
                "another process runs under this controller's name, or one was killed less than a lease ago: "
                "unless its lease runs out soon, give each controller a --controller-id of its own",
                controller=self._owner,
                holder_process=twin,
            )
        self._twin = twin


class SofaLease:
    """The profile of SOFARegistry's meta servers: a record of ``distribute_lock``, stored in Redis here."""

    is_handed_over = False
    """Always False: this profile has no priorities."""

    def __init__(
        self,
        store: LockStore,
        clock: Clock,
        owner: ControllerId,
        config: SofaLeaseConfig,
        *,
        observes: bool = False,
    ) -> None:
        """Set up without a request to the store.

        With ``observes`` the machine only reads the record. That serves the parity tests; a controller of ours that
        observes has no lease keeper.
        """
        self._store = store
        self._clock = clock
        self._owner = owner
        self._config = config
        self._election = SofaElection(owner, config, observes=observes)

    @property
    def term(self) -> Term | None:
        """See :attr:`LeaseProfile.term`; it ends by the wall clock, whether or not the machine was woken."""
        return self._election.term_at(self._clock.wall_ms())

    @property
    def next_wake_at_ms(self) -> int:
        """See :attr:`LeaseProfile.next_wake_at_ms`."""
        return self._election.next_wake_at_ms

    @property
    def confirmed_at_ms(self) -> int:
        """See :attr:`LeaseProfile.confirmed_at_ms`."""
        return self._election.confirmed_at_ms

    def on_event(self, event: SofaElectionEvent) -> tuple[SofaElectionAction, ...]:
        """See :meth:`LeaseProfile.on_event`."""
        now = LocalTime(self._clock.monotonic_ms(), self._clock.wall_ms())
        return self._election.on_event(now, event).actions

    def perform(self, action: SofaElectionAction) -> SofaElectionEvent | None:
        """See :meth:`LeaseProfile.perform`."""
        asked_at_ms = self._clock.monotonic_ms()
        match action:
            case ReadLock():
                return LockRead(self._store.read(), asked_at_ms)
            case InsertLock():
                self._store.insert(self._owner, self._config.duration_ms, self._config.first_term)
                return InsertAnswered()
            case RenewLock(seen=seen):
                self._store.renew(seen, guarded=self._config.renewal is SofaRenewal.GUARDED)
            case TakeLockOver(seen=seen):
                won = self._store.take_over(self._owner, seen)
                _log.info("lock expired, took it over" if won else "lock expired, another controller was first")
            case Announce(leads=leads):
                _log.info("holds the lock" if leads else "no longer holds the lock")
        return None
