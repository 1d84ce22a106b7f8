"""Several agents and clients in one process, of one cluster or of several, with one registry of metrics."""

import gc
import threading
import weakref
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import chain

import pytest
from prometheus_client import CollectorRegistry

from controlplane.adapters.system_threads import SystemThreads
from controlplane.core.session.node_session import SessionSettings
from controlplane.node import Access, NodeAgent
from controlplane.node.description import NodeDescription
from controlplane.node.metrics import NodeMetrics
from controlplane.routing import RoutingClient
from controlplane.routing.metrics import RoutingMetrics
from tests.helpers.memory_cluster import ObservedCluster
from tests.helpers.polling import poll_until

CLUSTERS = ("blue", "green")
SETTINGS = SessionSettings(heartbeat_interval_ms=100, join_retry_ms=200, self_fencing_margin_ms=200)


@pytest.fixture
def clusters() -> Iterator[dict[str, ObservedCluster]]:
    """Two clusters with a controller each."""
    with ExitStack() as stack:
        worlds = {name: stack.enter_context(ObservedCluster(name=name)) for name in CLUSTERS}
        for world in worlds.values():
            world.start("c1")
        yield worlds


@pytest.fixture
def registry() -> CollectorRegistry:
    """The program's registry."""
    return CollectorRegistry()


def client_of(world: ObservedCluster, registry: CollectorRegistry) -> RoutingClient:
    """A client that was not started yet."""
    return RoutingClient(world.reader(), SystemThreads(), cluster=world.cluster.name, registry=registry)


def agent_of(world: ObservedCluster, node_id: str, registry: CollectorRegistry) -> NodeAgent:
    """An agent that was not started yet."""
    return NodeAgent(
        writer=world.event_writer(),
        reader=world.reader(),
        clock=world.clock,
        threads=SystemThreads(),
        node=NodeDescription(node_id),
        cluster=world.cluster.name,
        settings=SETTINGS,
        registry=registry,
    )


def serves(agent: NodeAgent) -> bool:
    """Whether the agent serves a slot; what it leads is ready at once."""
    table = agent.table
    slot_ids = range(len(table.slots)) if table is not None else ()
    return any(agent.slot_ready(each) and agent.ownership(each).access is Access.ACCEPT for each in slot_ids)


def labels_in(registry: CollectorRegistry) -> set[tuple[str, ...]]:
    """The cluster and the node or the client of every sample that the registry shows."""
    samples = chain.from_iterable(metric.samples for metric in registry.collect())
    return {
        (sample.labels["cluster"], sample.labels.get("node") or f"client {sample.labels['client']}")
        for sample in samples
    }


def test_agents_and_clients_of_two_clusters_share_a_process(
    clusters: dict[str, ObservedCluster], registry: CollectorRegistry
) -> None:
    """Each cluster's agents serve and its clients route; the metrics tell them apart, and none are left at the end."""
    names = [(cluster, node_id) for cluster in CLUSTERS for node_id in ("n1", "n2")]
    with ExitStack() as stack:
        agents = [stack.enter_context(agent_of(clusters[cluster], node_id, registry)) for cluster, node_id in names]
        clients = [stack.enter_context(client_of(world, registry)) for world in clusters.values() for _ in range(2)]
        for agent in agents:
            poll_until(lambda: serves(agent))  # noqa: B023 - it is called at once
        for client in clients:
            client.wait_for(lambda table: {slot.leader for slot in table.slots} == {"n1", "n2"})
        assert labels_in(registry) == {*names, *((name, f"client {each}") for name in CLUSTERS for each in (1, 2))}
        for cluster, node_id in names:
            led = list(clusters[cluster].owners().values()).count(node_id)
            labels = {"cluster": cluster, "node": node_id, "part": "leader"}
            assert registry.get_sample_value("controlplane_node_slots", labels) == led > 0
    assert labels_in(registry) == set()


def test_a_client_can_be_opened_again(clusters: dict[str, ObservedCluster], registry: CollectorRegistry) -> None:
    """It bears the same number again, and begins to count anew."""
    clusters["blue"].join("n1")
    clusters["blue"].wait_until(lambda: set(clusters["blue"].owners().values()) == {"n1"})
    for _ in range(3):
        with client_of(clusters["blue"], registry) as client:
            client.wait_for()
            assert labels_in(registry) == {("blue", "client 1")}
            labels = {"cluster": "blue", "client": "1"}
            assert registry.get_sample_value("controlplane_client_tables_total", labels) == 1
        client.close()
        assert labels_in(registry) == set()


def test_an_agent_can_be_started_again(clusters: dict[str, ObservedCluster], registry: CollectorRegistry) -> None:
    """A new one of the same node, after the former has stopped."""
    for _ in range(2):
        with agent_of(clusters["blue"], "n1", registry) as agent:
            poll_until(lambda: serves(agent))
            assert labels_in(registry) == {("blue", "n1")}
        agent.stop()
        assert labels_in(registry) == set()


def test_the_lowest_number_that_is_free_names_a_client(registry: CollectorRegistry) -> None:
    """A program that opens and closes clients for ever must not fill its metrics with numbers."""
    first, second = RoutingMetrics("blue", registry), RoutingMetrics("blue", registry)
    other = RoutingMetrics("green", registry)
    assert labels_in(registry) == {("blue", "client 1"), ("blue", "client 2"), ("green", "client 1")}
    first.close()
    first.close()
    third = RoutingMetrics("blue", registry)
    third.epoch.set(7)
    assert registry.get_sample_value("controlplane_client_epoch", {"cluster": "blue", "client": "1"}) == 7
    for metrics in (second, third, other):
        metrics.close()
    assert labels_in(registry) == set()


def test_two_agents_of_one_node_share_their_metrics(registry: CollectorRegistry) -> None:
    """Only where one supersedes the other in the same process: the end of the first must not hide the second."""
    older, newer = NodeMetrics("blue", "n1", registry), NodeMetrics("blue", "n1", registry)
    older.close()
    newer.epoch.set(7)
    assert registry.get_sample_value("controlplane_node_epoch", {"cluster": "blue", "node": "n1"}) == 7
    newer.close()
    assert labels_in(registry) == set()


def test_a_registry_is_not_kept_alive() -> None:
    """Programs make registries as they like, and tests make one each."""
    registry = CollectorRegistry()
    metrics = [NodeMetrics("blue", "n1", registry), RoutingMetrics("blue", registry)]
    assert len(labels_in(registry)) == len(metrics)
    kept = weakref.ref(registry)
    del registry, metrics
    gc.collect()
    assert kept() is None


def test_threads_that_open_clients_at_once_get_numbers_of_their_own(registry: CollectorRegistry) -> None:
    """The collectors are made once, whichever thread is first."""
    gate = threading.Barrier(8)
    opened: list[RoutingMetrics] = []

    def open_one() -> None:
        gate.wait(10)
        opened.append(RoutingMetrics("blue", registry))

    threads = [threading.Thread(target=open_one) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert labels_in(registry) == {("blue", f"client {number}") for number in range(1, 9)}
    assert len(opened) == 8
