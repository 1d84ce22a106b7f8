"""Electors over a lock store, one round at a time: this package's state machine, and SOFARegistry's own loop."""

from collections.abc import Callable
from dataclasses import dataclass, field

from controlplane.config import SofaLeaseConfig, SofaRenewal
from controlplane.core.election.lock_record import HAS_NO_LEADER, LeaderInfo, LockRecord, leader_info
from controlplane.core.election.messages import StoreSilent
from controlplane.core.election.sofa_election import Announce, LocalTime, SofaElection, SofaElectionEvent
from controlplane.core.values.machine import Woke
from controlplane.errors import LeaseStoreUnavailableError
from controlplane.ports import LockStore
from controlplane.service.lease_profiles import SofaLease
from controlplane.testing import VirtualClock


class NoAnswerStore:
    """A lock store of which one request in a round, by its number, has no answer."""

    def __init__(self, store: LockStore) -> None:
        self._store = store
        self.fails_at: int | None = None
        self._requests = 0

    def begin_round(self, fails_at: int | None) -> None:
        """The next requests count from 0."""
        self.fails_at, self._requests = fails_at, 0

    def __getattr__(self, name: str) -> Callable[..., object]:
        """The store's method, unless it is this request's turn to fail."""
        method = getattr(self._store, name)

        def ask(*arguments: object, **options: object) -> object:
            number, self._requests = self._requests, self._requests + 1
            if number == self.fails_at:
                raise LeaseStoreUnavailableError("this request is not answered")
            return method(*arguments, **options)

        return ask


class MachineElector:
    """This package's state machine, driven as by the lease keeper. Its wall clock may be wrong."""

    def __init__(
        self, name: str, store: LockStore, clock: VirtualClock, config: SofaLeaseConfig, *, observes: bool = False
    ) -> None:
        self.name = name
        self.skew_ms = 0
        self.announced: list[bool] = []
        self._clock = clock
        self._store = NoAnswerStore(store)
        self._profile = SofaLease(self._store, self, name, config, observes=observes)  # type: ignore[arg-type] # passes requests on
        self.machine: SofaElection = self._profile._election  # noqa: SLF001 - what it believes is what is tested

    def monotonic_ms(self) -> int:
        """This machine's clocks."""
        return self._clock.monotonic_ms()

    def wall_ms(self) -> int:
        """This machine's clocks."""
        return self._clock.wall_ms() + self.skew_ms

    @property
    def leads(self) -> bool:
        """``amILeader``."""
        return self.machine.leads(self.wall_ms())

    def elect(self, fails_at: int | None = None) -> None:
        """One round, now."""
        self._store.begin_round(fails_at)
        self.machine.next_wake_at_ms = self.monotonic_ms()
        self.tell(Woke())

    def tell(self, event: SofaElectionEvent) -> None:
        """An event and everything that follows from it."""
        actions = list(self._profile.on_event(event))
        while actions:
            action = actions.pop(0)
            if isinstance(action, Announce):
                self.announced.append(action.leads)
            try:
                answer = self._profile.perform(action)
            except LeaseStoreUnavailableError:
                actions, answer = [], StoreSilent()
            if answer is not None:
                actions += self._profile.on_event(answer)

    @property
    def now(self) -> LocalTime:
        """Both clocks."""
        return LocalTime(self.monotonic_ms(), self.wall_ms())


@dataclass
class ReferenceElector:
    """``MetaJdbcLeaderElector`` and ``AbstractLeaderElector`` of SOFARegistry, line by line."""

    name: str
    store: LockStore
    clock: VirtualClock
    config: SofaLeaseConfig
    is_observer: bool = False
    skew_ms: int = 0
    info: LeaderInfo = HAS_NO_LEADER
    announced: list[bool] = field(default_factory=list)

    @property
    def leads(self) -> bool:
        """``amILeader()``."""
        return self._am_i_leader(self.info.leader)

    def elect(self, fails_at: int | None = None) -> None:
        """``elect``, in the loop that catches its exceptions."""
        failing = NoAnswerStore(self.store)
        failing.begin_round(fails_at)
        store: LockStore = failing  # type: ignore[assignment] # passes requests on
        try:
            self.info = self._do_query(store) if self.is_observer else self._do_elect(store)
        except (LeaseStoreUnavailableError, AttributeError):
            return  # the second is a NullPointerException there
        if self.leads != (self.announced[-1] if self.announced else False):
            self.announced.append(self.leads)

    def _am_i_leader(self, leader: str | None) -> bool:
        return leader == self.name and self.clock.wall_ms() + self.skew_ms < self.info.expires_at_ms

    def _do_query(self, store: LockStore) -> LeaderInfo:
        lock = store.read().record
        return HAS_NO_LEADER if lock is None else leader_info(lock)

    def _do_elect(self, store: LockStore) -> LeaderInfo:
        lock, now_ms = store.read()
        if lock is None:
            return self._compete_leader(store)
        if self._am_i_leader(lock.owner):
            return leader_info(self._on_leader_working(store, lock))
        return self._info_of(self._on_follow_working(store, lock, now_ms))

    def _compete_leader(self, store: LockStore) -> LeaderInfo:
        try:
            store.insert(self.name, self.config.duration_ms, self.config.first_term)
        except LeaseStoreUnavailableError:
            return self._info_of(store.read().record)
        return self._info_of(store.read().record)

    def _on_leader_working(self, store: LockStore, lock: LockRecord) -> LockRecord:
        try:
            store.renew(lock, guarded=self.config.renewal is SofaRenewal.GUARDED)
            after = store.read().record
        except LeaseStoreUnavailableError:
            return lock
        return self._present(after)

    def _on_follow_working(self, store: LockStore, lock: LockRecord, now_ms: int) -> LockRecord | None:
        if now_ms > lock.gmt_modified_ms + lock.duration_ms:
            store.take_over(self.name, lock)
            return store.read().record
        return lock

    def _info_of(self, lock: LockRecord | None) -> LeaderInfo:
        return leader_info(self._present(lock))

    @staticmethod
    def _present(lock: LockRecord | None) -> LockRecord:
        if lock is None:
            raise AttributeError("a null pointer there")
        return lock
