"""Which node a bundle goes to when the one that was to have it, or the one that had it, is not there any more."""

import pytest

from controlplane.core.bundles.events import BundlesAssigned
from controlplane.core.bundles.orders import BundleOrder, BundleOrderKind, OrderOutcome
from controlplane.core.bundles.ownership_state import OwnershipState
from controlplane.core.bundles.reports import BundleStep
from controlplane.core.cluster.policy import ClusterPolicy
from tests.helpers.bundle_world import BundleWorld

TRANSFER = BundleOrderKind.TRANSFER
OWNED, ASSIGNING = OwnershipState.OWNED, OwnershipState.ASSIGNING


def world_of(*node_ids: str, moves_in_flight: int = 100) -> BundleWorld:
    """Nodes with four bundles; the first one owns the first bundle."""
    world = BundleWorld(ClusterPolicy(slot_count=4, bundle_moves_in_flight=moves_in_flight, protected_ratio=1.0))
    world.start(*node_ids)
    world.create()
    assert world.bundle().owner == node_ids[0]
    return world


def owners(world: BundleWorld, bundle_id: str) -> list[str | None]:
    """The owners that a bundle has had, one for each row in which it is owned."""
    events = [event for decision in world.decisions for event in decision.events]
    rows = [row for event in events if isinstance(event, BundlesAssigned) for row in event.bundles]
    return [row.owner for row in rows if row.bundle_id == bundle_id and row.state is OWNED]


@pytest.mark.parametrize("order", ["drain_node", "exclude_node"])
def test_a_next_owner_that_is_to_own_nothing_any_more_is_passed_by(order: str) -> None:
    """In the decision that says so: it would only have to give the bundle away again."""
    world = world_of("n1", "n2", "n3")
    bundle_id = world.bundle().bundle_id
    world.idle.add(("n3", BundleStep.OPENED))
    world.give(BundleOrder(bundle_id, TRANSFER, "n3"))
    world.go(300)
    assert (world.bundle().state, world.bundle().next_owner) == (ASSIGNING, "n3")
    world.ask(order, node="n3")
    assert (world.bundle().state, world.bundle().next_owner) == (ASSIGNING, "n1")
    assert f"{bundle_id} goes to n1: n3 is to own no bundles any more" in world.decisions[-1].causes[-1].evidence
    world.idle.clear()
    world.go(500)
    assert owners(world, bundle_id) == ["n1", "n1"]
    assert [each.outcome for each in world.ended() if each.bundle_id == bundle_id] == [OrderOutcome.FAILED]


def test_a_next_owner_that_has_opened_a_bundle_serves_it_and_gives_it_away() -> None:
    """Nothing else can serve it sooner."""
    world = world_of("n1", "n2", "n3")
    bundle_id = world.bundle().bundle_id
    world.give(BundleOrder(bundle_id, TRANSFER, "n3"))
    while world.bundle().state is not ASSIGNING:
        world.go(100)
    world.beat("n3")
    world.ask("drain_node", node="n3")
    assert (world.bundle().state, world.bundle().owner) == (OwnershipState.RELEASING, "n3")
    world.go(500)
    assert owners(world, bundle_id)[:2] == ["n1", "n3"]
    assert world.bundle().owner != "n3"


def test_a_next_owner_that_drains_with_all_others_opens_the_bundle() -> None:
    """Bundles stay with such nodes rather than having no owner."""
    world = world_of("n1", "n2")
    bundle_id = world.bundle().bundle_id
    world.idle.add(("n2", BundleStep.OPENED))
    world.give(BundleOrder(bundle_id, TRANSFER, "n2"))
    world.go(300)
    world.ask("drain_node", node="n1")
    world.ask("drain_node", node="n2")
    assert (world.bundle().state, world.bundle().next_owner) == (ASSIGNING, "n2")
    world.idle.clear()
    world.go(300)
    assert world.bundle().owner == "n2"


def test_a_bundle_of_a_dead_owner_goes_to_the_node_to_which_it_is_ordered() -> None:
    """Also if its release has not begun, because no more moves may be under way."""
    world = world_of("n1", "n2", "n3", moves_in_flight=1)
    world.idle.add(("n1", BundleStep.RELEASED))
    ids = [each.bundle_id for each in world.state.bundles.by_id.values() if each.owner == "n1"]
    world.give(*(BundleOrder(each, TRANSFER, "n3") for each in ids))
    world.go(300)
    assert sorted(str(world.state.bundles.by_id[each].state) for each in ids) == [
        "OwnershipState.OWNED",
        "OwnershipState.RELEASING",
    ]
    world.die("n1")
    world.go(3_000)
    assert {world.state.bundles.by_id[each].owner for each in ids} == {"n3"}
    assert {each.outcome for each in world.ended()} == {OrderOutcome.DONE}


def test_a_bundle_of_a_dead_owner_goes_elsewhere_if_that_node_may_own_nothing() -> None:
    """The order says so."""
    world = world_of("n1", "n2", "n3", moves_in_flight=1)
    world.idle.add(("n1", BundleStep.RELEASED))
    ids = [each.bundle_id for each in world.state.bundles.by_id.values() if each.owner == "n1"]
    world.give(*(BundleOrder(each, TRANSFER, "n3") for each in ids))
    world.go(300)
    world.die("n1")
    world.ask("exclude_node", node="n3")
    world.go(3_000)
    assert {world.state.bundles.by_id[each].owner for each in ids} == {"n2"}
    failed = [each for each in world.ended() if each.bundle_id in ids]
    assert {each.detail for each in failed} == {"n3 did not take it: n2 owns it"}
