"""Bounds at which bundles cannot be split, also the last one of a namespace of feature level 1: they end no leader."""

import pytest

from controlplane.core.bundles.bundle import HASH_SPACE, bundles_at_level_1
from controlplane.core.bundles.orders import BY_NUMBER, BY_POSITIONS, BundleOrder, BundleOrderKind, OrderOutcome
from controlplane.core.bundles.ownership_state import OwnershipState
from controlplane.core.bundles.ranges import LAST_HASH
from controlplane.core.cluster.policy import MAX_BUNDLES_PER_NAMESPACE
from tests.helpers.bundle_world import BundleWorld

SPLIT, BY_TOPICS = BundleOrderKind.SPLIT, "topic_count_equally_divide"


@pytest.fixture
def world() -> BundleWorld:
    """A node that owns a namespace of feature level 1: its last bundle ends at 2^32."""
    world = BundleWorld()
    world.start("n1")
    world.create(count=2, divide=bundles_at_level_1)
    assert world.bundle(1).upper == HASH_SPACE
    return world


def split(world: BundleWorld, number: int, by: str, *numbers: int) -> tuple[OrderOutcome, str]:
    """What comes of a split of a bundle."""
    world.give(BundleOrder(world.bundle(number).bundle_id, SPLIT, None, by, numbers))
    world.go(500)
    ended = world.ended()[-1]
    return ended.outcome, ended.detail


@pytest.mark.parametrize("positions", [(LAST_HASH,), (0xC0000000, LAST_HASH)])
def test_no_part_begins_at_the_last_hash(world: BundleWorld, positions: tuple[int, ...]) -> None:
    """With Pulsar's bounds the last hash is the upper bound of the last part, which would be empty."""
    assert split(world, 1, BY_POSITIONS, *positions)[0] is OrderOutcome.FAILED
    assert len(world.state.bundles.by_id) == 2


def test_the_last_two_hashes_of_feature_level_1_stay_together(world: BundleWorld) -> None:
    """They are one bundle with Pulsar's bounds, however they are divided."""
    assert split(world, 1, BY_POSITIONS, LAST_HASH - 1)[0] is OrderOutcome.DONE
    assert world.bundle(2).bundle_id == "kv/0xfffffffe_0x100000000"
    assert split(world, 2, BY_NUMBER, 2)[0] is OrderOutcome.FAILED


@pytest.mark.parametrize(
    ("bounds", "why"),
    [
        ((LAST_HASH,), "bounds [4294967295], which do not divide it"),
        ((0xC0000000, LAST_HASH), "bounds [3221225472, 4294967295], which do not divide it"),
        ((7,), "bounds [7], which do not divide it"),
        ((0xC0000000, 0xC0000000), "bounds [3221225472, 3221225472], which do not divide it"),
        ((), "no bounds"),
        (tuple(range(0x90000000, 0x90000000 + 50_000)), "50000 bounds, and one split makes 128 parts at most"),
    ],
)
def test_an_owner_that_finds_unusable_bounds_keeps_the_bundle(
    world: BundleWorld, bounds: tuple[int, ...], why: str
) -> None:
    """The order fails with a short reason: a decision with a long one might not fit into a record."""
    world.bounds = bounds
    assert split(world, 1, BY_TOPICS) == (OrderOutcome.FAILED, f"not split: n1 finds {why}, by {BY_TOPICS}")
    assert (world.bundle(1).state, world.bundle(1).upper) == (OwnershipState.OWNED, HASH_SPACE)


def test_an_owner_finds_as_many_bounds_as_an_operator_may_give(world: BundleWorld) -> None:
    """The last part keeps its bound of feature level 1."""
    world.bounds = tuple(0x90000000 + number for number in range(MAX_BUNDLES_PER_NAMESPACE - 1))
    assert split(world, 1, BY_TOPICS)[0] is OrderOutcome.DONE
    assert len(world.state.bundles.by_id) == 1 + MAX_BUNDLES_PER_NAMESPACE
    assert world.bundle(-1).upper == HASH_SPACE
