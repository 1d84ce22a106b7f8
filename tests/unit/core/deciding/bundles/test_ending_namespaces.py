"""Namespaces that are deleted: all their bundles are released first, whatever state they are in."""

import pytest

from controlplane.core.bundles.orders import BY_NUMBER, BundleOrder, BundleOrderKind, OrderOutcome
from controlplane.core.bundles.ownership_state import OwnershipState
from controlplane.core.bundles.reports import BundleStep, BundleStepReport
from controlplane.core.cluster.policy import ClusterPolicy
from controlplane.core.deciding.consent import release_bound_ms
from tests.helpers.bundle_world import BundleWorld

TRANSFER, SPLIT = BundleOrderKind.TRANSFER, BundleOrderKind.SPLIT
BOUND_MS = release_bound_ms(ClusterPolicy().silence_limit_ms)


@pytest.fixture
def world() -> BundleWorld:
    """Three nodes that own a namespace."""
    world = BundleWorld()
    world.start("n1", "n2", "n3")
    world.create()
    return world


def test_a_namespace_ends_when_all_its_bundles_are_released(world: BundleWorld) -> None:
    """Others are untouched."""
    world.create("other", 2)
    world.end_namespace()
    world.go(500)
    assert {each.namespace for each in world.state.bundles.by_id.values()} == {"other"}
    assert set(world.state.bundles.namespaces) == {"other"}
    assert not world.state.bundles.orders


def test_it_ends_although_bundles_are_in_every_state(world: BundleWorld) -> None:
    """Steps under way give way to the end."""
    world.idle |= {(node_id, step) for node_id in ("n1", "n2", "n3") for step in BundleStep}
    world.give(
        BundleOrder(world.bundle(0).bundle_id, TRANSFER, "n2"),
        BundleOrder(world.bundle(1).bundle_id, SPLIT, None, BY_NUMBER, (2,)),
    )
    world.go(300)
    world.end_namespace()
    world.idle.clear()
    world.go(1_000)
    assert not world.state.bundles.namespaces
    assert not world.state.bundles.by_id


@pytest.mark.parametrize("count", [1, 2])
def test_an_owner_that_was_dividing_a_bundle_is_told_to_release_it(count: int) -> None:
    """The split is given up, and the order to end stands until the bundle is released."""
    world = BundleWorld()
    world.start("n1", "n2")
    world.create(count=count)
    bundle, owner = world.bundle(), world.bundle().owner or ""
    world.idle |= {(owner, BundleStep.DIVIDED), (owner, BundleStep.RELEASED)}
    world.give(BundleOrder(bundle.bundle_id, SPLIT, None, BY_NUMBER, (2,)))
    world.go(300)
    assert world.bundle().state is OwnershipState.SPLITTING
    world.end_namespace()
    world.go(300)
    assert (world.bundle().state, world.bundle().owner) == (OwnershipState.RELEASING, owner)
    world.idle.clear()
    world.go(500)
    assert not world.state.bundles.namespaces
    outcomes = [each.outcome for each in world.ended() if each.bundle_id == bundle.bundle_id]
    assert outcomes == [OrderOutcome.FAILED, OrderOutcome.DONE]


def test_what_nodes_said_for_a_deleted_namespace_counts_for_nothing_in_the_next_of_its_name(world: BundleWorld) -> None:
    """Ids and versions of its bundles begin again; a heartbeat of before has not read the present rows."""
    create = {"namespace": "again", "bundles": "2"}
    world.ask("create_namespace", **create)
    world.go(300)
    world.end_namespace("again")
    while "again" in world.state.bundles.namespaces:
        world.go(100)
    world.ask("create_namespace", **create)
    bundle = world.bundle(namespace="again")
    assert bundle.owner is not None
    said = world.observations.latest_heartbeat(bundle.owner, 1)
    assert said is not None
    assert BundleStepReport(bundle.bundle_id, bundle.version + 1, BundleStep.RELEASED) in said.bundle_steps
    other = next(each for each in world.living if each != bundle.owner)
    world.ask("transfer_bundles", bundles=bundle.bundle_id, node=other)
    for _ in range(5):  # and nobody sends a heartbeat
        world.tick(100)
        world.decide()
    assert world.bundle(namespace="again").state is OwnershipState.RELEASING
    world.go(500)
    assert world.bundle(namespace="again").owner == other


def test_it_ends_although_its_owners_die(world: BundleWorld) -> None:
    """A dead owner has released its bundles."""
    world.idle |= {(node_id, BundleStep.RELEASED) for node_id in ("n1", "n2", "n3")}
    world.end_namespace()
    world.go(300)
    world.die("n1")
    world.go(BOUND_MS + 4_000)
    assert not world.state.bundles.namespaces
