"""How many bundles each node owns or is to own: kept over changes, as if all bundles were counted again."""

from collections import Counter
from dataclasses import replace

from controlplane.core.bundles.apply import apply_bundle_event
from controlplane.core.bundles.bundle import Namespace, equal_bundles
from controlplane.core.bundles.events import NamespaceCreated, NamespaceDeleted
from controlplane.core.bundles.image import BundlesImage
from controlplane.core.bundles.orders import BY_NUMBER, BundleOrder, BundleOrderKind
from controlplane.core.bundles.reports import BundleStep
from controlplane.core.values.entries import Entries
from tests.helpers.bundle_world import BundleWorld


def counts_are_kept(image: BundlesImage) -> bool:
    """Whether the counts are known without counting, and those of all bundles."""
    return "bundle_counts" in vars(image) and image.bundle_counts == BundlesImage(by_id=image.by_id).bundle_counts


def test_counts_are_kept_over_every_kind_of_change() -> None:
    """Each change has its own part in them: a move by its steps, a split, a death, a namespace that comes or ends."""
    world = BundleWorld()
    world.start("n1", "n2")
    world.create(count=4)
    assert world.state.bundles.bundle_counts == Counter(n1=2, n2=2)

    owned = next(each for each in world.state.bundles.by_id.values() if each.owner == "n1")
    world.idle.add(("n1", BundleStep.RELEASED))
    world.give(BundleOrder(owned.bundle_id, BundleOrderKind.TRANSFER, "n2"))
    world.go(200)
    assert counts_are_kept(world.state.bundles)
    assert world.state.bundles.bundle_counts == Counter(n1=1, n2=3)
    world.idle.clear()
    world.go(500)
    assert counts_are_kept(world.state.bundles)
    assert world.state.bundles.bundle_counts == Counter(n1=1, n2=3)

    world.give(BundleOrder(owned.bundle_id, BundleOrderKind.SPLIT, None, BY_NUMBER, (3,)))
    world.go(500)
    assert counts_are_kept(world.state.bundles)
    assert world.state.bundles.bundle_counts == Counter(n1=1, n2=5)

    world.create("ns2", 4)
    assert counts_are_kept(world.state.bundles)
    assert world.state.bundles.bundle_counts == Counter(n1=5, n2=5)

    world.end_namespace("kv")
    world.go(1_000)
    assert counts_are_kept(world.state.bundles)
    assert world.state.bundles.bundle_counts == Counter(n1=4)

    world.die("n1")
    world.go(world.state.cluster.policy.silence_limit_ms + 1_000)
    assert counts_are_kept(world.state.bundles)
    assert world.state.bundles.bundle_counts == Counter(n2=4)


def test_bundles_that_have_owners_count_when_their_namespace_comes_and_when_it_ends() -> None:
    """A log may hold such events."""
    bundles = tuple(replace(each, owner="n1") for each in equal_bundles("kv", 3))
    image = BundlesImage()
    assert not image.bundle_counts
    created = apply_bundle_event(image, NamespaceCreated(Namespace("kv", 3), bundles))
    assert counts_are_kept(created)
    assert created.bundle_counts == Counter(n1=3)
    deleted = apply_bundle_event(created, NamespaceDeleted("kv", tuple(each.bundle_id for each in bundles)))
    assert counts_are_kept(deleted)
    assert not deleted.bundle_counts


def test_counts_that_nobody_needed_are_not_kept() -> None:
    """A reader of the log applies changes, and never chooses a node."""
    before, after = BundlesImage(), BundlesImage(orders=Entries())
    after.take_counts_from(before, ())
    assert "bundle_counts" not in vars(after)
