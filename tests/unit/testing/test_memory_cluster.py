"""The cluster in memory that users' tests are written with."""

import inspect
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from controlplane import ConfigurationError, node_agent, routing_client
from controlplane.node import Access, NodeAgent, NodeCallbacks, SessionState, SlotGained
from controlplane.routing import RoutingTable
from controlplane.slot_policies import ClusterPolicy
from controlplane.testing import MemoryCluster
from tests.helpers.readme import ROOT, blocks, run

GAPS_PAGE = ROOT / "docs" / "how-to" / "serve-without-a-gap.md"
PAGE = ROOT / "docs" / "how-to" / "test-your-service.md"


class Service(NodeCallbacks):
    """Has the data of every slot at once."""

    def __init__(self, cluster: MemoryCluster, node_id: str) -> None:
        self.agent = cluster.agent(node_id, addresses={"http": "10.0.0.7:8080"}, callbacks=self)

    def on_slots_gained(self, slots: Sequence[SlotGained]) -> None:
        """Serve them."""
        for slot in slots:
            self.agent.slot_ready(slot.slot_id, slot.epoch)


class Faulty(NodeCallbacks):
    """Fails when it is given slots."""

    def on_slots_gained(self, slots: Sequence[SlotGained]) -> None:
        """A mistake of the service."""
        raise ValueError("no room for these slots")


def leaders(table: RoutingTable) -> set[str | None]:
    """The nodes that lead slots."""
    return {slot.leader for slot in table.slots}


def owners(table: RoutingTable) -> set[str | None]:
    """The nodes that own bundles."""
    return {bundle.owner for bundle in table.bundles.values()}


def served(agent: NodeAgent) -> int:
    """How many of eight slots a node serves."""
    return sum(agent.ownership(slot_id).access is Access.ACCEPT for slot_id in range(8))


def test_keys_are_routed_to_the_agent_that_serves_them() -> None:
    """An agent, a client and a controller, with nothing else."""
    with MemoryCluster() as cluster, Service(cluster, "n1").agent as agent, cluster.client() as client:
        client.wait_for(lambda table: leaders(table) == {"n1"})
        cluster.wait_until(lambda: served(agent) == 8)
        route = client.route("user-17")
        assert (route.node_id, route.address("http").port) == ("n1", 8080)


def test_a_disconnected_node_is_dead_and_joins_again_when_it_is_reconnected() -> None:
    """It refuses requests before another node serves its slots."""
    with MemoryCluster() as cluster, cluster.client() as client:
        first, second = (Service(cluster, node_id).agent.start() for node_id in ("n1", "n2"))
        client.wait_for(lambda table: leaders(table) == {"n1", "n2"})
        cluster.wait_until(lambda: served(first) + served(second) == 8)
        cluster.disconnect("n1")
        cluster.wait_until(lambda: served(second) == 8)
        assert served(first) == 0
        cluster.reconnect("n1")
        client.wait_for(lambda table: leaders(table) == {"n1", "n2"})
        cluster.wait_until(lambda: first.state is SessionState.ACTIVE and served(first) > 0)


def test_a_node_that_stops_hands_over_first() -> None:
    """The orderly end, as in production."""
    with MemoryCluster() as cluster, cluster.client() as client:
        first, second = (Service(cluster, node_id).agent.start() for node_id in ("n1", "n2"))
        client.wait_for(lambda table: leaders(table) == {"n1", "n2"})
        first.stop()
        assert first.state is SessionState.LEFT
        assert leaders(client.wait_for(lambda table: leaders(table) == {"n2"})) == {"n2"}
        cluster.wait_until(lambda: served(second) == 8)


def test_the_policy_is_that_of_the_cluster() -> None:
    """Its slots and its replicas are in the table."""
    policy = ClusterPolicy(slot_count=16, replica_count=2, join_linger_ms=50, silence_limit_ms=800)
    with MemoryCluster(policy=policy) as cluster, cluster.client() as client:
        for node_id in ("n1", "n2"):
            cluster.agent(node_id).start()
        table = client.wait_for(
            lambda table: all(len(slot.replicas) == 2 for slot in table.slots) and table.slots != ()
        )
        assert len(table.slots) == 16


def test_an_operator_creates_a_namespace_moves_its_bundles_and_deletes_it() -> None:
    """As with the commands; an order comes about after its answer."""
    with MemoryCluster() as cluster, cluster.client() as client:
        for name in ("n1", "n2"):
            Service(cluster, name).agent.start()
        client.wait_for(lambda table: leaders(table) == {"n1", "n2"})
        assert cluster.ask("create_namespace", namespace="orders", bundles="4") == "namespace 'orders' with 4 bundles"
        client.wait_for(lambda table: owners(table) == {"n1", "n2"})
        cluster.ask("transfer_bundles", bundles="orders", node="n2")
        client.wait_for(lambda table: owners(table) == {"n2"})
        cluster.ask("delete_namespace", namespace="orders")
        client.wait_for(lambda table: not table.bundles)


@pytest.mark.parametrize(
    ("kind", "arguments", "message"),
    [
        ("move_everything", {}, "there is no intent 'move_everything'; intents: change_policy, "),
        ("create_namespace", {"namespace": "orders", "bundles": "0"}, "bundles is '0'"),
        ("create_namespace", {"name": "orders"}, "name"),
        ("delete_namespace", {"namespace": "orders"}, "the leader has refused delete_namespace: "),
    ],
)
def test_what_cannot_be_carried_out_is_an_error(kind: str, arguments: dict[str, str], message: str) -> None:
    """It says what was wrong."""
    with MemoryCluster() as cluster, pytest.raises(ConfigurationError) as error:
        cluster.ask(kind, **arguments)
    assert message in str(error.value)


def test_two_clusters_do_not_see_each_other() -> None:
    """Not even of one name."""
    with MemoryCluster() as one, MemoryCluster() as other, one.client() as client:
        agents = [one.agent("n1").start(), other.agent("n2").start()]
        one.wait_until(lambda: all(agent.state is SessionState.ACTIVE for agent in agents))
        assert leaders(client.wait_for(lambda table: leaders(table) == {"n1"})) == {"n1"}
        one.wait_until(lambda: [leaders(agent.table) for agent in agents if agent.table] == [{"n1"}, {"n2"}])


def test_leaving_ends_every_thread() -> None:
    """Agents and clients that a test left running, and the controller, are gone for the next test."""
    before = set(threading.enumerate())
    registry = CollectorRegistry()
    with MemoryCluster() as cluster:
        agent = cluster.agent("n1", registry=registry).start()
        cluster.client(registry=registry).start()
        cluster.wait_until(lambda: agent.state is SessionState.ACTIVE)
        assert set(threading.enumerate()) > before
    assert set(threading.enumerate()) == before
    assert [sample for metric in registry.collect() for sample in metric.samples] == []


def test_a_condition_that_stays_false_is_an_error_with_the_failed_callback_as_cause() -> None:
    """The reason is in the service; the timeout alone would not tell."""
    with MemoryCluster() as cluster:
        with pytest.raises(TimeoutError, match="within 50 ms") as plain:
            cluster.wait_until(lambda: False, timeout_ms=50)
        assert plain.value.__cause__ is None
        agent = cluster.agent("n1", callbacks=Faulty()).start()
        with pytest.raises(ValueError, match="no room"):
            cluster.wait_until(agent.check)
        with pytest.raises(TimeoutError) as caused:
            cluster.wait_until(lambda: served(agent) == 8, timeout_ms=50)
        assert str(caused.value.__cause__) == "no room for these slots"


def test_a_node_that_has_no_agent_cannot_be_disconnected() -> None:
    """A mistyped name would make the test wait for nothing."""
    cluster = MemoryCluster("shop")
    with pytest.raises(ConfigurationError, match="agents: none"):
        cluster.disconnect("n1")
    with cluster:
        cluster.agent("n1")
        with pytest.raises(ConfigurationError, match="node 'n2' has no agent of cluster 'shop'; agents: n1"):
            cluster.reconnect("n2")


def test_agents_and_clients_take_the_arguments_of_production() -> None:
    """A service that makes its agent with a function needs no change for a test."""
    for ours, theirs in ((MemoryCluster.agent, node_agent), (MemoryCluster.client, routing_client)):
        expected = dict(inspect.signature(theirs).parameters)
        for only_with_servers in ("cluster", "bootstrap_servers", "security"):
            del expected[only_with_servers]
        found = dict(inspect.signature(ours).parameters)
        del found["self"]
        assert {name: (each.kind, each.default) for name, each in found.items()} == {
            name: (each.kind, each.default) for name, each in expected.items()
        }


def test_the_page_works_as_it_stands(tmp_path: Path) -> None:
    """Its service, its test and its policy."""
    (tmp_path / "counting.py").write_text(blocks(PAGE)["service"], encoding="utf-8")
    (tmp_path / "test_counting.py").write_text(blocks(PAGE)["test"], encoding="utf-8")
    (tmp_path / "policy.py").write_text(blocks(PAGE)["policy"], encoding="utf-8")
    words = [sys.executable, "-m", "pytest", "-q", "-W", "error", "test_counting.py"]
    assert "1 passed" in run(words, tmp_path, {"PYTHONPATH": str(ROOT)})
    run([sys.executable, "policy.py"], tmp_path, {"PYTHONPATH": str(ROOT)})


def test_the_page_about_gaps_works_as_it_stands(tmp_path: Path) -> None:
    """Its service and its test."""
    (tmp_path / "kept_words.py").write_text(blocks(GAPS_PAGE)["service"], encoding="utf-8")
    (tmp_path / "test_kept_words.py").write_text(blocks(GAPS_PAGE)["test"], encoding="utf-8")
    words = [sys.executable, "-m", "pytest", "-q", "-W", "error", "test_kept_words.py"]
    assert "1 passed" in run(words, tmp_path, {"PYTHONPATH": str(ROOT)})
