"""A real cluster under the slot policy ``ring``, through a seeded history, against a ring with the same history."""

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from prometheus_client import CollectorRegistry

from controlplane.bootstrap.members import routing_client
from controlplane.cli.root import run
from controlplane.core.routing.replica import RoutingTable
from controlplane.core.slots.policies.ring import slot_key
from controlplane.core.slots.ring.hash_ring import HashRing
from controlplane.embedded.kafka import EmbeddedKafka
from controlplane.embedded.valkey import EmbeddedValkey
from tests.helpers.node_processes import NodeProcesses
from tests.helpers.real_cluster import RealCluster

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

SEED = 16
STEPS = 12
REPLICAS = 2
POLICY = {"slot_policy": "ring", "slot_count": "64", "replica_count": str(1 + REPLICAS), "join_linger_ms": "50"}
KEYS = [f"client-{number}" for number in range(100)]
WITHIN_MS = 30_000


class Step(NamedTuple):
    """A node comes or dies; ``returns`` says whether a process of that name died before."""

    node: str
    comes: bool
    returns: bool = False


def history(choose: random.Random) -> Iterator[Step]:
    """Steps without end: at least two nodes live, and one that comes has an old name or a new one.

    No two names share virtual nodes, so the history leaves no other trace in a ring than the nodes that live.
    """
    living: list[str] = []
    dead: list[str] = []
    while True:
        if len(living) > 2 and choose.random() < 0.5:
            node = living.pop(choose.randrange(len(living)))
            dead.append(node)
            yield Step(node, comes=False)
        else:
            returns = bool(dead) and choose.random() < 0.5
            node = dead.pop(choose.randrange(len(dead))) if returns else f"10.0.0.{10 + len(living) + len(dead)}:7800"
            living.append(node)
            yield Step(node, comes=True, returns=returns)


def is_that_of(ring: HashRing, table: RoutingTable) -> bool:
    """Whether each slot is led by its key's owner and followed by its replicas."""
    return all(
        slot.leader == ring.owner(slot_key(slot.slot_id))
        and {*slot.followers} == ring.replicas(slot_key(slot.slot_id), REPLICAS)
        for slot in table.slots
    )


@pytest.fixture
def cluster(
    kafka_broker: EmbeddedKafka, valkey_server: EmbeddedValkey, cluster_name: str, tmp_path: Path
) -> Iterator[RealCluster]:
    """Two controllers, which create the cluster under the policy, on the shared servers."""
    with RealCluster(cluster_name, kafka_broker.bootstrap_servers, valkey_server.redis_url, tmp_path) as running:
        options = [word for name, value in POLICY.items() for word in ("--policy", f"{name}={value}")]
        for controller_id in ("c1", "c2"):
            running.start_controller(controller_id, *options)
        yield running


def test_the_live_table_is_that_of_the_ring(cluster: RealCluster, capsys: pytest.CaptureFixture[str]) -> None:
    """Joins, deaths and returns, a killed leader in the middle; a client without slots and the commands agree, too."""
    planned = history(random.Random(SEED))
    steps = [next(planned) for _ in range(STEPS)]
    deaths = [step.node for step in steps if not step.comes]
    assert len(deaths) >= 3
    assert {step.returns for step in steps if step.comes} == {False, True}
    ring = HashRing()
    client = routing_client(cluster.cluster.name, cluster.kafka.bootstrap_servers, registry=CollectorRegistry())
    place = ("--cluster", cluster.cluster.name, "--bootstrap-servers", cluster.kafka.bootstrap_servers)

    def asked(*words: str) -> dict[str, Any]:
        capsys.readouterr()
        assert run([*place, *words, "--format", "json"]) == 0, capsys.readouterr()
        found: dict[str, Any] = json.loads(capsys.readouterr().out)
        return found

    with client, NodeProcesses(cluster) as nodes:
        cluster.wait_until(lambda: bool(cluster.tables()), "the first table")
        for number, step in enumerate(steps):
            if number == STEPS // 2:
                cluster.kill_leader()
            if step.comes:
                ring.add(step.node)
                nodes.start(step.node)
            else:
                ring.remove(step.node)
                nodes.kill(step.node)
            client.wait_for(lambda table: is_that_of(ring, table), timeout_ms=WITHIN_MS)
            assert [client.ring.owner(key) for key in KEYS] == [ring.owner(key) for key in KEYS]
            assert [client.ring.route(key).replicas for key in KEYS] == [ring.replicas(key, REPLICAS) for key in KEYS]
            assert asked("log", "verify")["complaints"] == []
        found = asked("ring", "replicas", KEYS[0])
        assert found["owner"] == ring.owner(KEYS[0])
        assert frozenset(found["replicas"]) == ring.replicas(KEYS[0], REPLICAS)
    assert {decision.controller_id for decision in cluster.decisions()} == {"c1", "c2"}
    assert {*deaths} <= {*cluster.fenced()}
    cluster.assert_log_is_whole()
