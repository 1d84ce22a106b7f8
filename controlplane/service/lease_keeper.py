"""Drives an election machine against its lease store, in a thread of its own so that no commit delays a renewal.

If the store refuses this client's login or request before it has answered once, the process ends: the client's settings
are wrong. A later refusal counts as no answer: it means that the store's own settings were changed, and treating it as
fatal would end every controller at once.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import structlog

from controlplane.core.election.leading import HeldLease
from controlplane.core.election.messages import ConfirmationAsked, FloorRaised, GiveBackAsked, StoreSilent
from controlplane.core.values.identifiers import Term
from controlplane.core.values.machine import Woke
from controlplane.errors import ConfigurationError, LeaseStoreUnavailableError
from controlplane.ports import Clock, Threads
from controlplane.service.lease_notes import LeaseNotes
from controlplane.service.lease_profiles import AnyProfile, CommonEvent
from controlplane.service.metrics import ControllerMetrics

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class _Answers:
    """The store answers, or has not been asked yet."""


@dataclass(frozen=True, slots=True)
class _IsSilent:
    """The store does not answer, for any reason."""


@dataclass(frozen=True, slots=True)
class _Refuses:
    """The store refuses this client's requests, with this message."""

    error: str


_StoreConduct: TypeAlias = _Answers | _IsSilent | _Refuses
"""The result of the last request to the store; only changes are logged."""


class LeaseKeeper:
    """Stands for election, renews and releases the lease. Other threads read :attr:`hold` and call the methods."""

    def __init__(
        self,
        profile: AnyProfile,
        clock: Clock,
        threads: Threads,
        *,
        metrics: ControllerMetrics,
        store_timeout_ms: int,
        rest_ms: int,
        notes: LeaseNotes,
    ) -> None:
        """Set up without a request to the store: :meth:`start` begins.

        Args:
            profile: the election machine and its store.
            clock: monotonic time.
            threads: runs the keeper's thread.
            metrics: shows whether the store answers.
            store_timeout_ms: how long one request to the store may take.
            rest_ms: how long this controller does not ask for the lease after :meth:`stop`.
            notes: exchanged with the store by the keeper's thread, after requests that the store has answered.
        """
        self._profile = profile
        self._clock = clock
        self._metrics = metrics
        self._store_timeout_ms = store_timeout_ms
        self._rest_ms = rest_ms
        self.notes = notes
        self._condition = threads.condition()
        self._inbox: deque[CommonEvent] = deque()
        self._has_answered = False
        self._store: _StoreConduct = _Answers()
        self._failure: BaseException | None = None
        self._stopping = False
        self._thread = threads.thread(self._run, "lease-keeper")

    @property
    def hold(self) -> HeldLease:
        """What is known of the lease now.

        Raises:
            BaseException: the exception that ended the keeper's thread, if any: a controller without a keeper must not
                lead.
        """
        with self._condition:
            if self._failure is not None:
                raise self._failure
            return HeldLease(self._profile.term, self._profile.is_handed_over)

    def start(self) -> None:
        """Start the thread that stands for election."""
        self._thread.start()

    def stop(self) -> None:
        """Release the lease if this controller holds it, and end the thread."""
        with self._condition:
            self._inbox.append(GiveBackAsked(self._rest_ms))
            self._stopping = True
            self._condition.notify_all()
        if self._thread.is_alive():
            self._thread.join(timeout=(self._store_timeout_ms * 4 + 1_000) / 1_000)

    def give_back(self, wait_ms: int) -> None:
        """Release the lease now and ask for it again after ``wait_ms``; waits until the lease is not held any more."""
        self._post(GiveBackAsked(wait_ms), lambda: self._profile.term is None)

    def raise_floor(self, floor: Term) -> None:
        """Give the term up and ask for one above ``floor``, the term that the log holds."""
        self._post(FloorRaised(floor), lambda: self._profile.term is None or self._profile.term > floor)

    def confirm(self, term: Term) -> bool:
        """Ask the store whether the lease is still held under ``term``; False if it does not answer in time."""
        with self._condition:
            asked_at_ms = self._clock.monotonic_ms()
            self._inbox.append(ConfirmationAsked())
            self._condition.notify_all()
            self._condition.wait_for(
                lambda: (
                    self._profile.confirmed_at_ms >= asked_at_ms
                    or self._profile.term != term
                    or self._failure is not None
                ),
                timeout=2 * self._store_timeout_ms / 1_000,
            )
            return self._profile.term == term and self._profile.confirmed_at_ms >= asked_at_ms

    def _post(self, event: CommonEvent, done: Callable[[], bool]) -> None:
        with self._condition:
            self._inbox.append(event)
            self._condition.notify_all()
            self._condition.wait_for(
                lambda: done() or self._failure is not None, timeout=4 * self._store_timeout_ms / 1_000
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
        """Handle one event, after waiting for it if necessary; return False when the thread is to end."""
        with self._condition:
            wait_ms = self._profile.next_wake_at_ms - self._clock.monotonic_ms()
            if not self._inbox and wait_ms > 0:
                self._condition.wait(wait_ms / 1_000)
            event = self._inbox.popleft() if self._inbox else Woke()
            actions = deque(self._on_event(event))
        while actions:
            answer = self._perform(actions.popleft())
            if isinstance(answer, StoreSilent):
                actions.clear()
            if answer is not None:
                with self._condition:
                    actions.extend(self._on_event(answer))
        if isinstance(self._store, _Answers):  # a renewal must not wait behind a request that is not answered either
            self.notes.exchange(holds_lease=self._profile.term is not None)
        with self._condition:
            return not self._stopping or bool(self._inbox)

    def _on_event(self, event: object) -> tuple[object, ...]:
        before = self._profile.term
        actions = self._profile.on_event(event)
        held_term = self._profile.term
        if held_term != before:
            _log.info("lease", held_term=held_term, before=before)
        self._condition.notify_all()
        return actions

    def _perform(self, action: object) -> object:
        """Send one request to the store, and return its answer as an event."""
        try:
            answer = self._profile.perform(action)
        except LeaseStoreUnavailableError as error:
            if self._finds(_IsSilent()):
                _log.warning("lease store does not answer", error=str(error))
            return StoreSilent()
        except ConfigurationError as error:
            if not self._has_answered:
                raise
            if self._finds(_Refuses(str(error))):
                _log.error("lease store refuses", error=str(error))
            return StoreSilent()
        if self._finds(_Answers()):
            _log.info("lease store answers again")
        self._has_answered = True
        return answer

    def _finds(self, store: _StoreConduct) -> bool:
        """Record the result of a request to the store; return whether it differs from the one before."""
        self._metrics.lease_store_reachable.set(1 if isinstance(store, _Answers) else 0)
        before, self._store = self._store, store
        return store != before
