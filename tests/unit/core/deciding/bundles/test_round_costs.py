"""What one decision reads for bundles: what concerns nodes is read once, and not again for each bundle."""

from collections import Counter
from collections.abc import Callable
from functools import wraps

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controlplane.core.bundles.bundle import Bundle
from controlplane.core.bundles.image import BundlesImage
from controlplane.core.bundles.orders import BundleOrder, BundleOrderKind
from controlplane.core.bundles.ownership_state import OwnershipState
from controlplane.core.bundles.ranges import HashRange
from controlplane.core.bundles.reports import BundleStep
from controlplane.core.cluster.policy import ClusterPolicy
from controlplane.core.deciding.bundles.hand_off import hand_off_bundles, repair_bundles
from controlplane.core.deciding.bundles.placement import FewestBundles
from controlplane.core.log.decision import CauseKind
from controlplane.core.log.draft import Draft
from controlplane.core.membership.events import NodeDraining
from controlplane.core.membership.image import MembershipImage
from controlplane.core.membership.log_time import PartitionView
from controlplane.core.values.entries import Entries
from controlplane.core.values.identifiers import Epoch
from tests.helpers.bundle_world import BundleWorld


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often was read which nodes may own, and how much time has passed since an epoch."""
    counts: Counter[str] = Counter()

    def counted(name: str, read: Callable[..., object]) -> Callable[..., object]:
        @wraps(read)
        def reading(*arguments: object) -> object:
            counts[name] += 1
            return read(*arguments)

        return reading

    owner_ids = MembershipImage.owner_ids.fget  # type: ignore[attr-defined]  # mypy sees the value of a property
    monkeypatch.setattr(MembershipImage, "owner_ids", property(counted("owner_ids", owner_ids)))
    monkeypatch.setattr(PartitionView, "since_epoch_ms", counted("since_epoch_ms", PartitionView.since_epoch_ms))
    return counts


def world_of(count: int) -> BundleWorld:
    """Three nodes with so many bundles, and no limit of moves."""
    world = BundleWorld(ClusterPolicy(slot_count=4, bundle_moves_in_flight=0))
    world.start("n1", "n2", "n3")
    world.create(count=count)
    return world


def draft_of(world: BundleWorld) -> Draft:
    """The next decision of a world."""
    draft = Draft(world.state)
    draft.because(CauseKind.INTENT, "test", "test")
    return draft


def test_a_repair_reads_once_which_nodes_may_own(reads: Counter[str]) -> None:
    """It would look at every node for every bundle."""
    found = []
    for count in (4, 64):
        draft = draft_of(world_of(count))
        draft.add(NodeDraining("n1", 1, 0, leaving=False))
        reads.clear()
        repair_bundles(draft, world_of(1).observations, frozenset())
        assert len(draft.state.bundles.orders) > count // 4
        found.append(reads["owner_ids"])
    assert found[0] == found[1]


def test_a_round_reads_once_for_a_node_and_an_epoch_how_much_time_has_passed(reads: Counter[str]) -> None:
    """It would look at every remembered tick for every bundle in flight."""
    for idle, state in (
        (BundleStep.RELEASED, OwnershipState.RELEASING),
        (BundleStep.OPENED, OwnershipState.ASSIGNING),
        (BundleStep.DIVIDED, OwnershipState.SPLITTING),
    ):
        found = []
        for count in (6, 60):
            world = world_of(count)
            world.idle |= {(node_id, idle) for node_id in world.living}
            splits = idle is BundleStep.DIVIDED
            kind, how = (BundleOrderKind.SPLIT, ("number", (2,))) if splits else (BundleOrderKind.TRANSFER, ("", ()))
            world.give(
                *(
                    BundleOrder(bundle_id, kind, None if splits else ("n2" if each.owner == "n1" else "n1"), *how)
                    for bundle_id, each in world.state.bundles.by_id.items()
                )
            )
            world.go(300)
            assert set(world.state.bundles.in_flight.values()) == {state}
            assert len(world.state.bundles.in_flight) == count
            reads.clear()
            hand_off_bundles(draft_of(world), world.observations)
            found.append(reads["since_epoch_ms"])
        assert 0 < found[0] == found[1]


NODES = ("n1", "n2", "n3", "n4")


@settings(max_examples=100, deadline=None)
@given(
    owners=st.lists(st.sampled_from([*NODES, None]), max_size=8),
    owner_ids=st.frozensets(st.sampled_from(NODES)),
    others=st.lists(st.sampled_from([*NODES, None]), max_size=8),
)
def test_each_choice_is_the_node_with_the_fewest_bundles(
    owners: list[str | None], owner_ids: frozenset[str], others: list[str | None]
) -> None:
    """Ties go to the first name, and each choice counts for the next one."""
    bounds = [HashRange(number, number + 1) for number in range(len(owners))]
    rows = [Bundle("kv", *each, owner, state_epoch=Epoch(1)) for each, owner in zip(bounds, owners, strict=True)]
    placement = FewestBundles(BundlesImage(by_id=Entries((row.bundle_id, row) for row in rows)), owner_ids)
    counts = Counter(owner for owner in owners if owner is not None)
    for other in others:
        candidates = sorted(owner_ids - {other}) or sorted(owner_ids)
        chosen = min(candidates, key=lambda name: counts[name], default=None)
        assert placement.choose(rather_not=other) == chosen
        counts.update([chosen] if chosen is not None else [])
