"""The contract of the lease store, on a real Valkey; and what only a real server can do to us."""

from collections.abc import Callable, Iterator
from typing import cast

import pytest
import redis
from hypothesis import given, settings

from controlplane.adapters.redis_lease import RedisLeaseStore
from controlplane.config import ClusterConfig
from controlplane.core.values.identifiers import Term
from controlplane.embedded.valkey import EmbeddedValkey
from controlplane.errors import ConfigurationError, LeaseStoreUnavailableError
from controlplane.ports import NOTHING_NOTED, LeaseGranted, LeaseHeld, LeaseMissing, LeaseRenewed
from tests.contracts.lease_contract import (
    LeaseContract,
    LeaseOutageContract,
    Step,
    check_lease_history,
    steps,
)
from tests.contracts.lease_notes_contract import LONG_MS
from tests.fixtures import NewClusterName
from tests.helpers.lease_worlds import LeaseWorld, RedisLeaseWorld


@pytest.fixture
def world(valkey_server: EmbeddedValkey, cluster_name: str) -> Iterator[LeaseWorld]:
    """A cluster of this test's own on the shared server."""
    world = RedisLeaseWorld(valkey_server.redis_url, cluster_name)
    yield world
    world.close()


class TestValkeyLease(LeaseContract):
    """The lease in Valkey."""


class TestValkeyLeaseOutage(LeaseOutageContract):
    """A server that is frozen: connections stay, and no request is answered."""

    @pytest.fixture
    def world(self, own_valkey_server: Callable[[], EmbeddedValkey], cluster_name: str) -> Iterator[LeaseWorld]:
        """A server of this test's own."""
        server = own_valkey_server()
        world = RedisLeaseWorld(server.redis_url, cluster_name, server.pause, server.resume, timeout_ms=150)
        yield world
        server.resume()
        world.close()


@pytest.fixture(scope="module")
def lasting_name(new_cluster_name: NewClusterName) -> str:
    """A cluster for many examples on the shared server."""
    return new_cluster_name("histories")


@settings(max_examples=25)
@given(history=steps)
def test_histories_have_one_owner_at_a_time(
    valkey_server: EmbeddedValkey, lasting_name: str, history: list[Step]
) -> None:
    """The scripts and the model agree on any mixture of rivals and lost data; time stands still here."""
    world = RedisLeaseWorld(valkey_server.redis_url, lasting_name)
    world.lose_data()
    check_lease_history(world, history, duration_ms=LONG_MS, step_ms=0)
    world.close()


def test_a_killed_server_that_comes_back_empty_never_lowers_the_term(
    own_valkey_server: Callable[[], EmbeddedValkey],
) -> None:
    """The same store object finds the new server by itself, and the floor keeps the term above what was granted."""
    server = own_valkey_server()
    store = RedisLeaseStore(ClusterConfig("demo"), server.redis_url, 500)
    assert store.acquire("a", Term(4), LONG_MS) == LeaseGranted(Term(5))
    server.kill()
    with pytest.raises(LeaseStoreUnavailableError, match=str(server.port)):
        store.renew("a", Term(5), LONG_MS)
    server.start()
    with redis.Redis.from_url(server.redis_url) as connection:
        connection.flushall()
    assert store.renew("a", Term(5), LONG_MS) == LeaseMissing()
    assert store.acquire("a", Term(5), LONG_MS) == LeaseGranted(Term(6))
    store.close()


def test_a_lease_of_a_former_release_is_another_processs(valkey_server: EmbeddedValkey, cluster_name: str) -> None:
    """Controllers are upgraded one by one: what the old one left says nothing of processes, and is waited out."""
    cluster = ClusterConfig(cluster_name)
    store = RedisLeaseStore(cluster, valkey_server.redis_url, 5_000)
    store.acquire("a", Term(6), LONG_MS)
    with redis.Redis.from_url(valkey_server.redis_url) as connection:
        connection.hdel(cluster.lease_key, "process")
        held = store.acquire("a", Term(0), LONG_MS)
        assert isinstance(held, LeaseHeld)
        assert (held.owner, held.process, held.term) == ("a", "", Term(7))
        assert isinstance(store.renew("a", Term(7), LONG_MS), LeaseHeld)
        assert not store.release("a", Term(7))
        connection.hset(cluster.lease_key, "expires_at_ms", 0)
    assert store.acquire("a", Term(0), LONG_MS) == LeaseGranted(Term(8))
    assert store.renew("a", Term(8), LONG_MS) == LeaseRenewed(Term(8))
    store.close()


def test_a_note_of_a_former_release_says_nothing_of_partitions(
    valkey_server: EmbeddedValkey, cluster_name: str
) -> None:
    """It holds the last acknowledgement alone; and a former release overwrites nothing but that."""
    cluster = ClusterConfig(cluster_name)
    store = RedisLeaseStore(cluster, valkey_server.redis_url, 5_000)
    with redis.Redis.from_url(valkey_server.redis_url) as connection:
        seconds, _ = cast("tuple[int, int]", connection.time())
        connection.hset(cluster.acknowledged_key, mapping={"owner": "b", "at_ms": seconds * 1_000})
    acknowledged_ms, worst_ms = store.read_note("a")
    assert acknowledged_ms is not None
    assert worst_ms is None
    store.write_note("c", LONG_MS, 100)
    assert store.read_note("a").longest_unanswered_ms is not None
    store.close()


def test_a_note_from_a_time_ahead_is_replaced(valkey_server: EmbeddedValkey, cluster_name: str) -> None:
    """The server's clock was set back since: the note would say nothing until the clock has come that far again."""
    cluster = ClusterConfig(cluster_name)
    store = RedisLeaseStore(cluster, valkey_server.redis_url, 5_000)
    store.write_note("b", 0, 0)
    with redis.Redis.from_url(valkey_server.redis_url) as connection:
        for field in ("at_ms", "worst_at_ms"):
            connection.hincrby(cluster.acknowledged_key, field, 3_600_000)
    assert store.read_note("a") == NOTHING_NOTED
    store.write_note("c", 100, 200)
    assert None not in store.read_note("a")
    store.close()


def test_clusters_do_not_share_a_lease(valkey_server: EmbeddedValkey, new_cluster_name: NewClusterName) -> None:
    """Several control planes may use one Redis."""
    clusters = [ClusterConfig(new_cluster_name(word)) for word in ("left", "right")]
    stores = [RedisLeaseStore(cluster, valkey_server.redis_url, 5_000) for cluster in clusters]
    assert [store.acquire("a", Term(0), LONG_MS) for store in stores] == [LeaseGranted(Term(1))] * 2
    for store in stores:
        store.close()


def test_a_key_that_holds_something_else_is_the_operators_to_mend(
    valkey_server: EmbeddedValkey, cluster_name: str
) -> None:
    """Waiting would not help: the message names the key."""
    cluster = ClusterConfig(cluster_name)
    with redis.Redis.from_url(valkey_server.redis_url) as connection:
        connection.set(cluster.lease_key, "not a hash")
    store = RedisLeaseStore(cluster, valkey_server.redis_url, 5_000)
    with pytest.raises(ConfigurationError, match=cluster_name):
        store.read()
    store.close()


def test_a_refused_login_is_the_operators_to_mend(valkey_server: EmbeddedValkey) -> None:
    """A wrong password does not become right by trying again."""
    url = valkey_server.redis_url.replace("redis://", "redis://nobody:wrong@")
    store = RedisLeaseStore(ClusterConfig("demo"), url, 5_000)
    with pytest.raises(ConfigurationError, match="refuses the credentials of user 'nobody'"):
        store.read()
    store.close()


def test_an_address_that_is_none_is_refused_at_once() -> None:
    """The message says how an address is written."""
    with pytest.raises(ConfigurationError, match="redis://"):
        RedisLeaseStore(ClusterConfig("demo"), "localhost:6379", 100)
