"""A process that only stands for election: ``python -m tests.helpers.elector PROFILE REDIS_URL CLUSTER OWNER``.

It prints one JSON object per line: ``{"term": N}`` when the term under which it may lead changes, and ``{"won": bool}``
for each attempt to become the owner of a free lease or of another's. PROFILE is default, sofa, guarded or observer.
"""

import json
import os
import sys
import time

import structlog

from controlplane.adapters.redis_lease import RedisLeaseStore
from controlplane.adapters.redis_lock import RedisLockStore
from controlplane.adapters.system_clock import SystemClock
from controlplane.adapters.system_threads import SystemThreads
from controlplane.config import ClusterConfig, LeaseConfig, SofaLeaseConfig, SofaRenewal
from controlplane.core.election.lock_record import LockRecord
from controlplane.core.values.identifiers import Term
from controlplane.ports import AcquireOutcome, LeaseGranted
from controlplane.service.lease_keeper import LeaseKeeper
from controlplane.service.lease_notes import LeaseNotes
from controlplane.service.lease_profiles import AnyProfile, OwnLease, SofaLease
from controlplane.service.metrics import ControllerMetrics

LEASE = LeaseConfig(duration_ms=2_000, renew_interval_ms=200, store_timeout_ms=400)
LOCK = SofaLeaseConfig("dc1", "META-MASTER", duration_ms=2_000, loop_interval_ms=100, first_term=1)


class TellingLeaseStore(RedisLeaseStore):
    """Prints each attempt to acquire."""

    def acquire(self, owner: str, floor: Term, duration_ms: int, priority: int | None = None) -> AcquireOutcome:
        """Ask, and tell."""
        outcome = super().acquire(owner, floor, duration_ms, priority)
        _tell(won=isinstance(outcome, LeaseGranted))
        return outcome


class TellingLockStore(RedisLockStore):
    """Prints each attempt to insert or to take over."""

    def insert(self, owner: str, duration_ms: int, first_term: int) -> bool:
        """Ask, and tell."""
        won = super().insert(owner, duration_ms, first_term)
        _tell(won=won)
        return won

    def take_over(self, new_owner: str, seen: LockRecord) -> bool:
        """Ask, and tell."""
        won = super().take_over(new_owner, seen)
        _tell(won=won)
        return won


def profile_of(kind: str, redis_url: str, cluster: str, owner: str) -> AnyProfile:
    """The election of the process."""
    clock, name = SystemClock(), ClusterConfig(cluster)
    if kind == "default":
        store = TellingLeaseStore(name, redis_url, 400, str(os.getpid()))
        return OwnLease(store, clock, owner, LEASE, stop_when_store_is_lost=False, is_ready=lambda: True)
    renewal = SofaRenewal.GUARDED if kind == "guarded" else SofaRenewal.OWNER
    config = SofaLeaseConfig(
        LOCK.data_center, LOCK.lock_name, LOCK.duration_ms, LOCK.loop_interval_ms, renewal, LOCK.first_term
    )
    lock_store = TellingLockStore(name, redis_url, LOCK.data_center, LOCK.lock_name, 400)
    return SofaLease(lock_store, clock, owner, config, observes=kind == "observer")


def main(kind: str, redis_url: str, cluster: str, owner: str) -> None:
    """Stand for election until the process is killed."""
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
    profile = profile_of(kind, redis_url, cluster, owner)
    notes = RedisLeaseStore(ClusterConfig(cluster), redis_url, 400)
    keeper = LeaseKeeper(
        profile,
        SystemClock(),
        SystemThreads(),
        metrics=ControllerMetrics(),
        store_timeout_ms=400,
        rest_ms=LEASE.duration_ms,
        notes=LeaseNotes(notes, SystemClock(), owner, lambda: 0, lambda: 0),
    )
    keeper.start()
    told: Term | None = None
    while True:
        if keeper.hold.term != told:
            told = keeper.hold.term
            _tell(term=told)
        time.sleep(0.01)


def _tell(**what: object) -> None:
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
