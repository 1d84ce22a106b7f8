"""The story of SOFAStack's article on a real Valkey, in every lease profile: leaders are killed one after the other.

Each controller is a process of its own that does nothing but stand for election, and dies by SIGKILL.
"""

import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, TypeVar

import pytest

from controlplane.adapters.redis_lease import RedisLeaseStore
from controlplane.adapters.redis_lock import RedisLockStore
from controlplane.config import ClusterConfig
from controlplane.core.election.lock_record import LockRecord
from controlplane.core.values.identifiers import Term
from controlplane.embedded.valkey import EmbeddedValkey
from controlplane.ports import LeaseGranted, LeaseHeld
from tests.helpers.elector import LOCK
from tests.helpers.polling import poll_until

pytestmark = pytest.mark.slow

Store = TypeVar("Store")
Answer = TypeVar("Answer")

THREE = ("10.177.41.99", "10.177.41.100", "10.181.160.18")
ROOT = Path(__file__).resolve().parents[2]


class Elector:
    """A process that stands, and what it has told."""

    def __init__(self, kind: str, redis_url: str, cluster: str, owner: str) -> None:
        command = [sys.executable, "-m", "tests.helpers.elector", kind, redis_url, cluster, owner]
        self.owner = owner
        self.told: list[dict[str, Any]] = []
        self._process = subprocess.Popen(
            command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL, text=True
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @property
    def term(self) -> int | None:
        """Under which it says that it may lead."""
        terms = [each["term"] for each in self.told if "term" in each]
        return terms[-1] if terms else None

    def attempts(self, *, won: bool) -> int:
        """How many of its attempts ended so."""
        return sum(1 for each in self.told if each.get("won") is won)

    def kill(self) -> None:
        """SIGKILL."""
        self._process.kill()
        self._process.wait(10)
        self._reader.join(10)
        if self._process.stdout is not None:
            self._process.stdout.close()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self.told.append(json.loads(line))


@contextmanager
def electors(kind: str, redis_url: str, cluster: str, owners: tuple[str, ...]) -> Iterator[dict[str, Elector]]:
    """Processes that end with the test."""
    with ExitStack() as stack:
        started = {owner: Elector(kind, redis_url, cluster, owner) for owner in owners}
        for elector in started.values():
            stack.callback(elector.kill)
        yield started


@pytest.fixture
def look(valkey_server: EmbeddedValkey, cluster_name: str) -> Iterator[Callable[[str], tuple[str, int] | None]]:
    """Owner and term as the store has them, by profile; None where nobody leads."""
    lease = RedisLeaseStore(ClusterConfig(cluster_name), valkey_server.redis_url, 5_000)
    lock = RedisLockStore(ClusterConfig(cluster_name), valkey_server.redis_url, LOCK.data_center, LOCK.lock_name, 5_000)

    def owner_and_term(kind: str) -> tuple[str, int] | None:
        if kind == "default":
            held = lease.read()
            return (held.owner, held.term) if isinstance(held, LeaseHeld) else None
        record = lock.read().record
        return None if record is None else (record.owner, record.term)

    yield owner_and_term
    lease.close()
    lock.close()


@pytest.mark.timeout(120)
@pytest.mark.parametrize("kind", ["default", "sofa", "guarded"])
def test_leaders_killed_one_after_the_other(
    kind: str, look: Callable[[str], tuple[str, int] | None], valkey_server: EmbeddedValkey, cluster_name: str
) -> None:
    """Exactly one compare-and-set wins each time, the term grows by one, and who observes never wins."""
    url = valkey_server.redis_url
    with ExitStack() as stack:
        observers: dict[str, Elector] = {}
        if kind != "default":  # there an observer does not even ask
            observers = stack.enter_context(electors("observer", url, cluster_name, ("10.0.0.1",)))
        alive = dict(stack.enter_context(electors(kind, url, cluster_name, THREE)))
        everybody = list(alive.values())
        for term in (1, 2, 3):
            poll_until(lambda: any(elector.term is not None for elector in alive.values()))
            (leader,) = [elector for elector in alive.values() if elector.term is not None]
            assert leader.term == term
            assert look(kind) == (leader.owner, term)
            assert sum(elector.attempts(won=True) for elector in everybody) == term
            alive.pop(leader.owner).kill()
        assert not alive
        for observer in observers.values():
            assert observer.told == []


def _at_once(stores: Sequence[Store], attempt: Callable[[Store, str], Answer]) -> list[Answer]:
    """What each controller's attempt answers, when all are made at the same moment."""
    barrier = threading.Barrier(len(stores))

    def wait_and_attempt(number: int) -> Answer:
        barrier.wait()
        return attempt(stores[number], f"c{number}")

    with ThreadPoolExecutor(len(stores)) as pool:
        return list(pool.map(wait_and_attempt, range(len(stores))))


def test_of_twenty_that_saw_the_same_lock_exactly_one_takes_over(
    valkey_server: EmbeddedValkey, cluster_name: str
) -> None:
    """The loser changes nothing: the row is the winner's, and its term has grown by one."""
    cluster, url = ClusterConfig(cluster_name), valkey_server.redis_url
    stores = [RedisLockStore(cluster, url, "dc1", "L", 5_000) for _ in range(20)]
    stores[0].insert("first", 1, 0)
    for term in (1, 2, 3):
        seen = _row_that_is_over(stores[0])
        won = _at_once(stores, lambda store, name, seen=seen: store.take_over(name, seen))  # type: ignore[misc] # bound at once
        assert won.count(True) == 1
        after = stores[0].read().record
        assert after is not None
        assert (after.owner, after.term) == (f"c{won.index(True)}", term)
    for store in stores:
        store.close()


def _row_that_is_over(store: RedisLockStore) -> LockRecord:
    def row() -> LockRecord | None:
        record, now_ms = store.read()
        return record if record and now_ms // 1_000 * 1_000 - record.gmt_modified_ms >= 1_000 else None

    poll_until(row)
    found = row()
    assert found is not None
    return found


def test_of_twenty_that_ask_for_a_free_lease_exactly_one_has_it(
    valkey_server: EmbeddedValkey, cluster_name: str
) -> None:
    """The others are told of the winner, and the term has grown by one."""
    cluster, url = ClusterConfig(cluster_name), valkey_server.redis_url
    stores = [RedisLeaseStore(cluster, url, 5_000) for _ in range(20)]
    for term in (1, 2, 3):
        answers = _at_once(stores, lambda store, name: store.acquire(name, Term(0), 60_000))
        (winner,) = (number for number, answer in enumerate(answers) if isinstance(answer, LeaseGranted))
        held = stores[0].read()
        assert isinstance(held, LeaseHeld)
        assert (held.owner, held.term) == (f"c{winner}", term)
        assert {(each.owner, each.term) for each in answers if isinstance(each, LeaseHeld)} == {(held.owner, term)}
        assert stores[0].release(held.owner, held.term)
    for store in stores:
        store.close()
