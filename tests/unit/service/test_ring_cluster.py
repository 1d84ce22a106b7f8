"""Controllers that lead by the slot policy ``ring``: the live table is that of a ring with the same history."""

import random

from prometheus_client import CollectorRegistry

from controlplane.adapters.system_threads import SystemThreads
from controlplane.core.cluster.policy import ClusterPolicy
from controlplane.core.routing.replica import RoutingTable
from controlplane.core.slots.policies.ring import slot_key
from controlplane.core.slots.ring.hash_ring import HashRing
from controlplane.routing import RoutingClient
from tests.helpers.logs import complaints_of
from tests.helpers.memory_cluster import ObservedCluster, assert_log_is_whole

NAMES = ("10.0.0.1:7800", "10.0.0.2:7800", "10.0.0.3:7800", "10.0.0.4:7800", "10.0.0.5:7800")
KEYS = [f"client-{number}" for number in range(100)]
STEPS = 10


def is_that_of(ring: HashRing, table: RoutingTable | None) -> bool:
    """Whether each slot is led by its key's owner and followed by its replicas."""
    return table is not None and all(
        slot.leader == ring.owner(slot_key(slot.slot_id))
        and {*slot.followers} == ring.replicas(slot_key(slot.slot_id), 2)
        for slot in table.slots
    )


def test_a_live_cluster_agrees_with_the_ring() -> None:
    """Joins, deaths and returns, and another leader in the middle; a client without slots agrees, too."""
    choose = random.Random(17)
    with ObservedCluster() as world:
        world.policy = ClusterPolicy(
            slot_count=32, replica_count=3, slot_policy="ring", join_linger_ms=50, silence_limit_ms=800
        )
        first = world.start("c1")
        client = RoutingClient(
            world.reader(), SystemThreads(), cluster=world.cluster.name, registry=CollectorRegistry()
        )
        ring = HashRing()
        with client:
            for step in range(STEPS):
                node = choose.choice(NAMES)
                if node in ring.nodes and len(ring.nodes) > 2:
                    ring.remove(node)
                    world.silence(node)
                else:
                    node = next(name for name in NAMES if name not in ring.nodes)
                    ring.add(node)
                    world.join(node)
                if step == STEPS // 2:
                    world.start("c2")
                    first.end()
                world.wait_until(lambda: is_that_of(ring, world.table()))
                client.wait_for(lambda table: is_that_of(ring, table))
                assert [client.ring.owner(key) for key in KEYS] == [ring.owner(key) for key in KEYS]
                assert [client.ring.route(key).replicas for key in KEYS] == [ring.replicas(key, 2) for key in KEYS]
        assert {decision.controller_id for decision in world.decisions()} == {"c1", "c2"}
        assert complaints_of(world.decisions()) == []
        assert_log_is_whole(world)
