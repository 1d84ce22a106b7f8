"""Routing by ring without slots, on hand-written tables."""

from collections.abc import Iterator

import pytest
from prometheus_client import CollectorRegistry

from controlplane.adapters.system_threads import SystemThreads
from controlplane.config import ROUTING_TABLE, ClusterConfig
from controlplane.core.membership.node import NodeRole, NodeStatus
from controlplane.core.membership.rows import NodeRow
from controlplane.core.slots.ring.hash_ring import HashRing
from controlplane.core.values.addresses import Address
from controlplane.errors import ConfigurationError, NoRouteError, UnroutableError
from controlplane.routing import RingRoute, RoutingClient
from controlplane.testing import MemoryBroker, MemoryLogReader, MemoryTransactionalWriter, VirtualClock
from tests.helpers.table_feed import TableFeed

CLUSTER = ClusterConfig("test")
KV = Address("kv", "10.0.0.1", 4000)
KEYS = [f"client-{number}" for number in range(200)]


class Setting:
    """A hand-written table, and a client that is moved by hand."""

    def __init__(self) -> None:
        broker = MemoryBroker(VirtualClock())
        broker.create_topic(CLUSTER.topic(ROUTING_TABLE))
        self.feed = TableFeed(MemoryTransactionalWriter(CLUSTER, broker))
        self.client = RoutingClient(
            MemoryLogReader(CLUSTER, broker), SystemThreads(), cluster=CLUSTER.name, registry=CollectorRegistry()
        )

    def commit(self) -> None:
        """Commit what is staged, and let the client read it."""
        self.feed.commit()
        for _ in range(2):
            self.client.step(0)


@pytest.fixture
def setting() -> Iterator[Setting]:
    """A setting whose client is closed in the end."""
    made = Setting()
    yield made
    made.client.close()


def test_a_key_is_routed_by_the_ring_of_the_living_data_nodes(setting: Setting) -> None:
    """Slots, weights and who joined first do not matter; by default there are the policy's two copies."""
    setting.feed.node("n11", addresses=[KV]).node("n1", addresses=[KV]).node("a", addresses=[KV])
    setting.feed.node("dead", NodeStatus.FENCED)
    setting.feed._stage(NodeRow("user", 1, NodeRole.SESSION, NodeStatus.ACTIVE, (), "", 1, ""))  # noqa: SLF001
    setting.commit()
    router, ring = setting.client.ring, HashRing(["a", "n1", "n11"])
    assert router.nodes == ("a", "n1", "n11")
    for key in (*KEYS, "", "\ud83d"):
        copies = ring.replicas(key, 1)
        assert router.route(key) == RingRoute(ring.owner(key), (KV,), copies, copies, 1, 1)  # type: ignore[arg-type]
        assert router.owner(key) == ring.owner(key)
        assert router.route(key).readable == copies | {ring.owner(key)}
        assert router.route(key, 0).replicas == frozenset()
        assert router.route(key, 9).readable == {*router.nodes}
    assert router.route("key").address("kv") == KV
    with pytest.raises(UnroutableError, match="no address 'admin', it has kv"):
        router.route("key").address("admin")


def test_while_a_node_drains_its_heirs_are_written_to(setting: Setting) -> None:
    """It serves on; with its last table nobody has to be told."""
    setting.feed.node("a").node("b").node("c", NodeStatus.DRAINING)
    setting.commit()
    before, after = HashRing("abc"), HashRing("ab")
    for key in KEYS:
        route = setting.client.ring.route(key, 0)
        assert (route.node_id, route.replicas) == (before.owner(key), frozenset())
        assert route.writable == {after.owner(key)} - {before.owner(key)}
    setting.feed.without("c")
    setting.commit()
    assert [setting.client.ring.owner(key) for key in KEYS] == [after.owner(key) for key in KEYS]


def test_if_all_nodes_drain_they_stay_on_both_rings(setting: Setting) -> None:
    """There is nobody else to write to."""
    setting.feed.node("a", NodeStatus.DRAINING).node("b", NodeStatus.DRAINING)
    setting.commit()
    ring = HashRing("ab")
    for key in KEYS:
        route = setting.client.ring.route(key, 1)
        assert (route.node_id, route.writable) == (ring.owner(key), ring.replicas(key, 1))


def test_rings_are_kept_while_the_nodes_are_the_same(setting: Setting) -> None:
    """A table of another epoch costs nothing, and its epoch is in the routes."""
    setting.feed.node("a").node("b")
    setting.commit()
    first = setting.client.ring
    assert setting.client.ring is first
    setting.feed.slot(0, "a")
    setting.commit()
    second = setting.client.ring
    assert second._rings is first._rings  # noqa: SLF001 - the saving itself
    assert (first.route("key").epoch, second.route("key").epoch) == (1, 2)
    setting.feed.status("b", NodeStatus.DRAINING)
    setting.commit()
    assert setting.client.ring._rings is not first._rings  # noqa: SLF001


def test_without_a_table_or_nodes_there_is_no_route(setting: Setting) -> None:
    """The caller is told to wait."""
    with pytest.raises(NoRouteError, match="no routing table"):
        setting.client.ring  # noqa: B018 - the access is the question
    setting.commit()
    with pytest.raises(NoRouteError, match="no node is on the ring"):
        setting.client.ring.route("key")


def test_bytes_are_refused(setting: Setting) -> None:
    """They have no UTF-16 units, and a guess at their encoding would be another key than other clients hash."""
    setting.feed.node("a")
    setting.commit()
    with pytest.raises(TypeError, match="decode it first"):
        setting.client.ring.route(b"key")  # type: ignore[arg-type]


def test_a_node_that_this_version_cannot_read_makes_the_ring_unknown(setting: Setting) -> None:
    """Without it, keys would go to others, and no error would tell."""
    setting.feed.node("a").raw(b"main/node/b", b"\xc3\x01" + b"12345678" + b"body")
    setting.commit()
    with pytest.raises(UnroutableError, match="newer version"):
        setting.client.ring  # noqa: B018 - the access is the question


@pytest.mark.parametrize("count", [1.0, "2", True])
def test_a_count_that_is_no_whole_number_is_refused(setting: Setting, count: object) -> None:
    """It would be an error within the ring, or one copy for True."""
    setting.feed.node("a", addresses=[KV])
    setting.commit()
    with pytest.raises(TypeError, match=r"^count is .*, expected a whole number of copies, or None$"):
        setting.client.ring.route("user-1", count)  # type: ignore[arg-type]  # on purpose


def test_a_negative_count_is_refused(setting: Setting) -> None:
    """There are no fewer than no copies."""
    setting.feed.node("a", addresses=[KV])
    setting.commit()
    with pytest.raises(ConfigurationError, match="count is -1, expected 0 or more"):
        setting.client.ring.route("user-1", count=-1)
    assert setting.client.ring.route("user-1", count=0).replicas == frozenset()
