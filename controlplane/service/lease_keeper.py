"""Drives the election machine against the lease store in a thread of its own, so that no commit delays a renewal."""

import threading
from collections import deque
from collections.abc import Callable

import structlog

from controlplane.config import LeaseConfig
from controlplane.core.election import (
    Acquire,
    ConfirmationAsked,
    Election,
    ElectionAction,
    ElectionEvent,
    FloorRaised,
    Granted,
    HeldByOther,
    LeaseGone,
    Release,
    Renew,
    Renewed,
    Resigned,
    StoreSilent,
    Woke,
)
from controlplane.core.identifiers import ControllerId, Term
from controlplane.errors import LeaseStoreUnavailableError
from controlplane.ports import Clock, LeaseGranted, LeaseHeld, LeaseMissing, LeaseRenewed, LeaseStore

_log = structlog.get_logger(__name__)


class LeaseKeeper:
    """Stands for election, renews, releases; other threads read :attr:`term` and ask."""

    def __init__(
        self,
        store: LeaseStore,
        clock: Clock,
        owner: ControllerId,
        config: LeaseConfig,
        *,
        stop_when_store_is_lost: bool,
    ) -> None:
        """Nothing is asked of the store before :meth:`start`."""
        self._store = store
        self._clock = clock
        self._owner = owner
        self._config = config
        self._election = Election(config, stop_when_store_is_lost=stop_when_store_is_lost)
        self._condition = threading.Condition()
        self._inbox: deque[ElectionEvent] = deque()
        self._confirmed_at_ms = -1
        self._store_silent = False
        self._failure: BaseException | None = None
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="lease-keeper", daemon=True)

    @property
    def term(self) -> Term | None:
        """The term under which this controller holds the lease, or None.

        Raises:
            BaseException: what ended the keeper's thread, if anything did: never lead without it.
        """
        with self._condition:
            if self._failure is not None:
                raise self._failure
            return self._election.term

    def start(self) -> None:
        """Begin to stand for election."""
        self._thread.start()

    def stop(self) -> None:
        """Give the lease back if it is ours, and end the thread."""
        with self._condition:
            self._inbox.append(Resigned(self._config.duration_ms))
            self._stopping = True
            self._condition.notify_all()
        if self._thread.is_alive():
            self._thread.join(timeout=(self._config.store_timeout_ms * 4 + 1_000) / 1_000)

    def resign(self, wait_ms: int) -> None:
        """Give the lease back now and stand again after ``wait_ms``; the lease is not ours when this returns."""
        self._post(Resigned(wait_ms), lambda: self._election.term is None)

    def raise_floor(self, floor: Term) -> None:
        """The log holds ``floor``: drop the term that we have and ask for one above it."""
        self._post(FloorRaised(floor), lambda: self._election.term is None or self._election.term > floor)

    def confirm(self, term: Term) -> bool:
        """Ask the store now whether the lease is still ours under ``term``. No answer in time means no."""
        with self._condition:
            asked_at_ms = self._clock.monotonic_ms()
            self._inbox.append(ConfirmationAsked())
            self._condition.notify_all()
            self._condition.wait_for(
                lambda: (
                    self._confirmed_at_ms >= asked_at_ms or self._election.term != term or self._failure is not None
                ),
                timeout=2 * self._config.store_timeout_ms / 1_000,
            )
            return self._election.term == term and self._confirmed_at_ms >= asked_at_ms

    def _post(self, event: ElectionEvent, done: Callable[[], bool]) -> None:
        with self._condition:
            self._inbox.append(event)
            self._condition.notify_all()
            self._condition.wait_for(
                lambda: done() or self._failure is not None, timeout=4 * self._config.store_timeout_ms / 1_000
            )

    def _run(self) -> None:
        try:
            while self._step():
                pass
        except BaseException as failure:  # noqa: BLE001 - handed to the controller's thread, which raises it
            with self._condition:
                self._failure = failure
                self._condition.notify_all()

    def _step(self) -> bool:
        """Handle one event, or wait for one; False when the thread is to end."""
        with self._condition:
            wait_ms = self._election.next_wake_at_ms - self._clock.monotonic_ms()
            if not self._inbox and wait_ms > 0:
                self._condition.wait(wait_ms / 1_000)
            event = self._inbox.popleft() if self._inbox else Woke()
            actions = deque(self._handle(event))
        while actions:
            answer = self._perform(actions.popleft())
            if answer is not None:
                with self._condition:
                    actions.extend(self._handle(answer))
        with self._condition:
            return not self._stopping or bool(self._inbox)

    def _handle(self, event: ElectionEvent) -> tuple[ElectionAction, ...]:
        before = self._election.term
        actions = self._election.on_event(self._clock.monotonic_ms(), event).actions
        if isinstance(event, Granted | Renewed):
            self._confirmed_at_ms = event.asked_at_ms
        if self._election.term != before:
            _log.info("lease", held_term=self._election.term, before=before)
        self._condition.notify_all()
        return actions

    def _perform(self, action: ElectionAction) -> ElectionEvent | None:
        asked_at_ms = self._clock.monotonic_ms()
        try:
            answer = self._ask(action, asked_at_ms)
        except LeaseStoreUnavailableError as error:
            if not self._store_silent:
                _log.warning("lease store does not answer", error=str(error))
            self._store_silent = True
            return StoreSilent()
        self._store_silent = False
        return answer

    def _ask(self, action: ElectionAction, asked_at_ms: int) -> ElectionEvent | None:
        match action:
            case Acquire(floor=floor):
                acquired = self._store.acquire(self._owner, floor, self._config.duration_ms)
                if isinstance(acquired, LeaseGranted):
                    return Granted(acquired.term, asked_at_ms)
                return HeldByOther(acquired.owner, acquired.term, acquired.remaining_ms)
            case Renew(term=term):
                match self._store.renew(self._owner, term, self._config.duration_ms):
                    case LeaseRenewed():
                        return Renewed(term, asked_at_ms)
                    case LeaseHeld(owner=owner, term=other, remaining_ms=remaining_ms):
                        return HeldByOther(owner, other, remaining_ms)
                    case LeaseMissing():
                        return LeaseGone()
            case Release(term=term):
                self._store.release(self._owner, term)
                return None
