"""The routing client on a hand-written table in memory."""

import threading
from collections.abc import Iterator

import pytest
from prometheus_client import CollectorRegistry

from controlplane.adapters.system_threads import SystemThreads
from controlplane.config import ROUTING_TABLE, ClusterConfig
from controlplane.core.bundles.ranges import bundle_hash
from controlplane.core.cluster.policy import HashFunction
from controlplane.core.routing.hashing import slot_of
from controlplane.core.routing.replica import RoutingTable
from controlplane.core.values.addresses import Address
from controlplane.errors import LogContinuityError, LogUnavailableError, NoRouteError, UnroutableError
from controlplane.ports import OutgoingRecord
from controlplane.routing import RoutingClient
from controlplane.testing import MemoryBroker, MemoryLogReader, MemoryTransactionalWriter, VirtualClock
from tests.helpers.memory_cluster import WaitingReader
from tests.helpers.table_feed import TableFeed

CLUSTER = ClusterConfig("test")
KV = Address("kv", "10.0.0.1", 4000)


class Setting:
    """A broker, a hand-written table, and a client that is moved by hand or started."""

    def __init__(self) -> None:
        self.broker = MemoryBroker(VirtualClock())
        self.broker.create_topic(CLUSTER.topic(ROUTING_TABLE))
        self.feed = TableFeed(MemoryTransactionalWriter(CLUSTER, self.broker))
        self.registry = CollectorRegistry()
        self.reader = MemoryLogReader(CLUSTER, self.broker)
        self.client = RoutingClient(
            WaitingReader(self.reader),  # type: ignore[arg-type]  # forwards what it does not change
            SystemThreads(),
            cluster=CLUSTER.name,
            registry=self.registry,
        )

    def read(self) -> None:
        """Steps to the end, which is told only where a poll finds nothing more."""
        for _ in range(2):
            self.client.step(0)

    def metric(self, name: str) -> float | None:
        """A metric's value."""
        return self.registry.get_sample_value(name, {"cluster": CLUSTER.name, "client": "1"})


@pytest.fixture
def setting() -> Iterator[Setting]:
    """A setting whose client is closed in the end."""
    made = Setting()
    yield made
    made.client.close()


def test_a_key_is_routed_to_its_slot_leader(setting: Setting) -> None:
    """What the caller needs to reach the node and to fence its requests is in the route."""
    feed = setting.feed.node("a", addresses=[KV]).node("b")
    for slot_id in range(4):
        feed.slot(slot_id, "a", "b")
    feed.term = 3
    feed.commit()
    setting.read()
    route = setting.client.route("user-1")
    table = setting.client.table
    assert table is not None
    assert route.slot_id == table.slot_for("user-1").slot_id
    assert (route.node_id, route.followers, route.addresses) == ("a", ("b",), (KV,))
    assert (route.term, route.epoch, route.leader_epoch) == (3, 1, 1)
    assert route.address("kv") == KV
    with pytest.raises(UnroutableError, match="no address 'admin', it has kv"):
        route.address("admin")


def test_a_bundle_is_routed_to_its_owner(setting: Setting) -> None:
    """Namespaces have owners of their own, one for each hash range."""
    setting.feed.node("a").node("b").namespace("kv", ["a", "b"]).commit()
    setting.read()
    for key in ("one", "two", "three", "four", "five"):
        route = setting.client.route_bundle("kv", key)
        assert route.node_id == ("a" if bundle_hash(key) < 1 << 31 else "b")
    with pytest.raises(NoRouteError, match="'other'"):
        setting.client.route_bundle("other", "key")


def test_without_a_table_or_a_leader_there_is_no_route(setting: Setting) -> None:
    """The caller is told to wait, in a sentence that says for what."""
    with pytest.raises(NoRouteError, match="no routing table"):
        setting.client.route("key")
    setting.feed.namespace("kv", ["a"]).commit()
    setting.read()
    with pytest.raises(NoRouteError, match="no leader in epoch 1"):
        setting.client.route("key")
    assert setting.client.route_bundle("kv", "key").addresses == (), "an owner that has no row has no address"


def test_nothing_is_shown_before_the_end_was_reached(setting: Setting, monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that starts must not route by what was true long ago, in however small pieces it reads."""
    poll = setting.reader.poll
    monkeypatch.setattr(setting.reader, "poll", lambda max_records, timeout_ms: poll(1, timeout_ms))
    seen: list[tuple[int | None, int]] = []
    setting.client.on_change(lambda before, after: seen.append((before.epoch if before else None, after.epoch)))
    for leader in ("a", "b", "c"):
        setting.feed.slot(0, leader).commit()
    for _ in range(20):
        setting.read()
    assert seen == [(None, 3)]
    setting.feed.slot(0, "d").commit()
    setting.feed.slot(0, "e").commit()
    for _ in range(20):
        setting.read()
    assert seen == [(None, 3), (3, 4), (4, 5)]


def test_the_last_table_is_kept_while_kafka_is_away(setting: Setting) -> None:
    """Routing does not depend on the control plane being up, and goes on by itself when it is back."""
    setting.feed.node("a").slot(0, "a").slot(1, "a").slot(2, "a").slot(3, "a").commit()
    setting.client.start()
    setting.client.wait_for()
    setting.broker.available = False
    assert setting.client.route("key").node_id == "a"
    with pytest.raises(NoRouteError, match="the present one has epoch 1"):
        setting.client.wait_for(lambda table: table.epoch > 1, timeout_ms=30)
    setting.broker.available = True
    setting.feed.slot(0, "b").commit()
    assert setting.client.wait_for(lambda table: table.epoch > 1).slots[0].leader == "b"
    assert setting.metric("controlplane_client_epoch") == 2
    assert setting.metric("controlplane_client_tables_total") == 2


def test_a_wait_in_vain_says_where_to_look(setting: Setting) -> None:
    """A wrong address shows in nothing else: the client goes on trying in its thread."""
    with pytest.raises(NoRouteError, match="none was read at all; is Kafka's address right"):
        setting.client.wait_for(timeout_ms=1)


def test_a_wait_names_its_unit(setting: Setting) -> None:
    """A bare 3 would be read as seconds and be milliseconds."""
    with pytest.raises(TypeError):
        setting.client.wait_for(None, 3)  # type: ignore[call-arg]  # on purpose


def test_kafka_may_come_later_than_the_client(setting: Setting, monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that starts before Kafka answers asks again until it does."""
    setting.feed.slot(0, "a").commit()
    answers = iter([LogUnavailableError("away"), LogUnavailableError("away")])
    start_offsets = setting.reader.start_offsets

    def answer(topic: str) -> object:
        for error in answers:
            raise error
        return start_offsets(topic)

    monkeypatch.setattr(setting.reader, "start_offsets", answer)
    with setting.client as client:
        assert client.wait_for().slots[0].leader == "a"
        assert setting.metric("controlplane_client_log_unavailable_total") == 2


def test_a_removed_row_that_was_missed_is_mended_by_rebuilding(setting: Setting) -> None:
    """A client that slept through a tombstone keeps routing by its last table and then shows the right one."""
    setting.feed.node("a").node("b").commit()
    setting.read()
    setting.feed.without("b").commit()
    setting.broker.compact(CLUSTER.topic(ROUTING_TABLE), drop_tombstones=True)
    setting.read()
    table = setting.client.table
    assert table is not None
    assert table.epoch == 1
    setting.read()
    table = setting.client.table
    assert table is not None
    assert table.epoch == 2
    assert "b" not in table.nodes
    assert setting.metric("controlplane_client_rebuilds") == 1


def test_a_forged_marker_ends_the_client(setting: Setting) -> None:
    """Going on in silence with a table that will never be renewed is the worst that a client can do."""
    setting.feed.slot(0, "a").commit()
    setting.feed.slot(0, None).commit()
    setting.client.start().wait_for(lambda table: table.epoch == 2)
    setting.feed.epoch = 0
    setting.feed.commit()
    with pytest.raises(LogContinuityError, match=r"the epoch fell, so no leader wrote it; let nothing but controllers"):
        setting.client.wait_for(lambda table: table.epoch > 2)
    with pytest.raises(LogContinuityError):
        setting.client.route("key")
    assert setting.metric("controlplane_client_failed") == 1


def test_a_route_to_a_node_whose_row_a_newer_version_wrote_says_so(setting: Setting) -> None:
    """A route without an address would not say what helps: an upgrade."""
    setting.feed.node("a").slot(0, "b").slot(1, "a")
    setting.feed.raw(b"main/node/b", b"\xc3\x01" + b"12345678" + b"body").commit()
    setting.read()
    keys = {slot_of(key, 4, HashFunction.CRC32C): key for key in map(str, range(100))}
    assert setting.client.route(keys[1]).node_id == "a"
    with pytest.raises(UnroutableError, match=r"'main/node/b' of epoch 1 was written by a newer version: upgrade"):
        setting.client.route(keys[0])


def test_foreign_records_are_counted_and_the_last_table_is_routed_by(setting: Setting) -> None:
    """Also by a client that begins while the topic shows no whole table: the last one that was whole is good enough."""
    setting.feed.node("a").slot(0, "a").commit()
    setting.feed.write(OutgoingRecord(ROUTING_TABLE, b"nonsense", b"garbage"))
    setting.feed.slot(1, "a").commit()
    for _ in range(5):
        setting.read()
    table = setting.client.table
    assert table is not None
    assert table.epoch == 1
    assert setting.metric("controlplane_client_foreign_records") == 1
    setting.feed.repair([b"nonsense"]).commit()
    setting.read()
    assert setting.client.table is not None
    assert setting.client.table.epoch == 3


def test_a_callback_that_fails_ends_the_client(setting: Setting) -> None:
    """An exception of the user's code is not swallowed: it comes back at the next call."""

    def fail(before: RoutingTable | None, after: RoutingTable) -> None:
        message = f"cannot take epoch {after.epoch}"
        raise ValueError(message)

    setting.client.on_change(fail)
    setting.feed.slot(0, "a").commit()
    setting.client.start()
    with pytest.raises(ValueError, match="cannot take epoch 1"):
        setting.client.wait_for(lambda table: table.epoch > 1)


def test_closing_ends_the_thread(setting: Setting) -> None:
    """A user's process must be able to end."""
    before = threading.active_count()
    with setting.client:
        setting.feed.slot(0, "a").commit()
        setting.client.wait_for()
    assert threading.active_count() == before
    assert setting.client.table is not None
