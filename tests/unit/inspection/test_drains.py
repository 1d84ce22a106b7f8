"""The end of a node's drain where bundles are on their way."""

import pytest

from controlplane.core.bundles.orders import BundleOrder, BundleOrderKind
from controlplane.core.bundles.ownership_state import OwnershipState
from controlplane.core.bundles.reports import BundleStep
from controlplane.inspection.drains import DrainProgress
from controlplane.inspection.readers import LoggedDecision
from tests.helpers.bundle_world import BundleWorld


def progress_of(world: BundleWorld, node_id: str) -> DrainProgress:
    """The drain of a node by all decisions so far."""
    drain = DrainProgress(node_id)
    for offset, decision in enumerate(world.decisions):
        drain.take(LoggedDecision(decision, offset, 0))
    assert drain.state == world.state
    return drain


@pytest.mark.parametrize(
    ("idle", "state"),
    [(BundleStep.RELEASED, OwnershipState.RELEASING), (BundleStep.OPENED, OwnershipState.ASSIGNING)],
)
def test_a_bundle_on_its_way_to_a_node_is_held(idle: BundleStep, state: OwnershipState) -> None:
    """The node may own it with the next decision, so that its process is not to be ended."""
    world = BundleWorld()
    world.start("n1")
    world.create(count=1)
    world.start("n2")
    world.idle |= {("n1", idle), ("n2", idle)}
    world.give(BundleOrder(world.bundle().bundle_id, BundleOrderKind.TRANSFER, "n2"))
    world.go(300)
    assert (world.bundle().state, world.bundle().next_owner) == (state, "n2")
    drain = progress_of(world, "n2")
    slots = drain.held_text().partition(" and ")[0]
    assert drain.held_text() == f"{slots} and 1 bundle (1 on its way to it)"
    assert not drain.only_kept(tuple(range(4)))
    world.idle.clear()
    world.ask("drain_node", node="n2")
    world.go(1_000)
    assert world.bundle().owner == "n1"
    end = progress_of(world, "n2").end()
    assert end is not None
    assert end.relieved
