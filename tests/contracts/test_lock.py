"""The contract of SOFARegistry's lock: the SQL statements themselves, in memory, and on a real Valkey."""

import time
from collections.abc import Iterator

import pytest
from hypothesis import given, settings

from controlplane.adapters.redis_lock import RedisLockStore
from controlplane.config import ClusterConfig
from controlplane.embedded.valkey import EmbeddedValkey
from controlplane.errors import ConfigurationError, LeaseStoreUnavailableError
from tests.contracts.lock_contract import LockContract, LockStep, check_lock_history, lock_steps, row_of
from tests.fixtures import NewClusterName
from tests.helpers.lock_worlds import LockWorld, MemoryLockWorld, RedisLockWorld, SqlLockWorld


class TestSqlLock(LockContract):
    """The statements themselves: what the suite says of them is so."""

    @pytest.fixture
    def world(self) -> Iterator[LockWorld]:
        """A table."""
        world = SqlLockWorld()
        yield world
        world.close()


class TestMemoryLock(LockContract):
    """The fake."""

    @pytest.fixture
    def world(self) -> LockWorld:
        """In memory."""
        return MemoryLockWorld()


class TestValkeyLock(LockContract):
    """The Lua scripts in the server."""

    @pytest.fixture
    def world(self, valkey_server: EmbeddedValkey, cluster_name: str) -> Iterator[LockWorld]:
        """A cluster of this test's own on the shared server."""
        world = RedisLockWorld(valkey_server.redis_url, cluster_name)
        yield world
        world.close()


@settings(max_examples=300)
@given(history=lock_steps)
def test_the_fake_does_what_the_sql_does(history: list[LockStep]) -> None:
    """Any mixture of statements of three controllers, by any time, on rows seen at any time."""
    oracle = SqlLockWorld()
    check_lock_history(MemoryLockWorld(), oracle, history)
    oracle.close()


@pytest.fixture(scope="module")
def lasting_name(new_cluster_name: NewClusterName) -> str:
    """A cluster for many examples on the shared server."""
    return new_cluster_name("lock-histories")


@settings(max_examples=40, deadline=None)
@given(history=lock_steps)
def test_the_scripts_do_what_the_sql_does(
    valkey_server: EmbeddedValkey, lasting_name: str, history: list[LockStep]
) -> None:
    """The same in the real server."""
    world, oracle = RedisLockWorld(valkey_server.redis_url, lasting_name), SqlLockWorld()
    world.lose_data()
    check_lock_history(world, oracle, history)
    for each in (world, oracle):
        each.close()


def test_the_scripts_go_by_the_servers_own_time(valkey_server: EmbeddedValkey, cluster_name: str) -> None:
    """Without the virtual time: what the row is dated is now, and a second later it is over."""
    store = RedisLockStore(ClusterConfig(cluster_name), valkey_server.redis_url, "dc", "lock", 5_000)
    store.insert("a", 500, 1)
    seen = row_of(store)
    assert abs(seen.gmt_modified_ms - time.time() * 1_000) < 5_000
    assert not store.take_over("b", seen)
    time.sleep(2)
    assert store.read().store_now_ms - seen.gmt_modified_ms >= 1_900
    assert store.take_over("b", seen)
    store.close()


def test_no_answer_is_an_error_of_its_own() -> None:
    """The election has to tell "no answer" from "another was first"."""
    store = RedisLockStore(ClusterConfig("demo"), "redis://127.0.0.1:1", "dc", "lock", 200)
    with pytest.raises(LeaseStoreUnavailableError, match=r"127\.0\.0\.1:1"):
        store.read()
    store.close()


def test_an_address_that_is_none_is_refused_at_once() -> None:
    """The message says how an address is written."""
    with pytest.raises(ConfigurationError, match="redis://"):
        RedisLockStore(ClusterConfig("demo"), "localhost:6379", "dc", "lock")
