"""A cluster in which everything happens that writes a row: joins, splits, handoffs, deaths, ends, a second term."""

from controlplane.core.bundles.orders import BY_NUMBER, BundleOrder, BundleOrderKind
from controlplane.core.cluster.policy import ClusterPolicy
from controlplane.core.intents.intent import IntentKind
from controlplane.core.log.decision import Decision
from controlplane.core.values.identifiers import Term
from tests.helpers.bundle_world import BundleWorld


def eventful_decisions(drains: int = 2) -> list[Decision]:
    """What its leaders decided; a node is drained so many times, some five decisions each."""
    world = BundleWorld(ClusterPolicy(slot_count=8))
    world.start("n1", "n2", "n3", "n4")
    world.create("kv", 4)
    world.create("old", 2)
    world.give(BundleOrder(world.bundle(0).bundle_id, BundleOrderKind.SPLIT, None, BY_NUMBER, (2,)))
    world.go(2_000)
    world.give(BundleOrder(world.bundle(1).bundle_id, BundleOrderKind.TRANSFER, "n2"))
    world.go(2_000)
    for _ in range(drains):
        world.ask(IntentKind.DRAIN_NODE.value, node="n4")
        world.go(2_000)
        world.ask(IntentKind.UNDRAIN_NODE.value, node="n4")
        world.go(2_000)
    world.ask(IntentKind.DRAIN_NODE.value, node="nobody")
    world.end_namespace("old")
    world.go(2_000)
    world.leave("n4")
    world.go(2_000)
    world.left("n4")
    world.decide()
    world.die("n4")
    world.die("n3")
    world.go(8_000)
    world.open_term(Term(2))
    world.ask(IntentKind.CHANGE_POLICY.value, slot_count="16")
    world.go(2_000)
    return world.decisions
