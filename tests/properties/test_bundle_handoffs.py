"""Random histories of orders, deaths, restarts, drains and idle nodes: bundles tile, and every order ends.

After every decision the invariants of states and steps are checked (``World.commit``): the ranges of each namespace
cover the hash space exactly once, each row follows from the one before it, and owners live.
"""

from collections.abc import Callable

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, precondition, rule

from controlplane.core.bundles.bundle import Bundle, bundles_at_level_1, equal_bundles
from controlplane.core.bundles.image import BundlesImage
from controlplane.core.bundles.orders import BY_NUMBER, BY_POSITIONS, BundleOrder, BundleOrderKind
from controlplane.core.bundles.ownership_state import OwnershipState
from controlplane.core.bundles.ranges import LAST_HASH
from controlplane.core.bundles.reports import BundleStep
from controlplane.core.cluster.policy import ClusterPolicy
from tests.helpers.bundle_world import BundleWorld
from tests.properties.handoff_machine import LONG_ENOUGH_MS, NODES, HandoffMachine

NUMBERS = {BY_NUMBER: (2,), BY_POSITIONS: (LAST_HASH,), "topic_count_equally_divide": ()}
"""The numbers of a split, by its way; intents would refuse the last position."""


class Handoffs(HandoffMachine[BundleWorld]):
    """Operators, nodes and faults, each at any time."""

    @initialize(
        limit=st.sampled_from([0, 1, 2, 100]),
        hands_off=st.booleans(),
        divide=st.sampled_from([equal_bundles, bundles_at_level_1]),
    )
    def begin(self, limit: int, hands_off: bool, divide: Callable[[str, int], tuple[Bundle, ...]]) -> None:
        """Two nodes own a namespace. At feature level 1 its last bundle ended at 2^32."""
        self.world = BundleWorld(ClusterPolicy(slot_count=1, bundle_moves_in_flight=limit, protected_ratio=1.0))
        self.world.start("n1", hands_off=hands_off)
        self.world.start("n2")
        self.world.create(count=3, divide=divide)
        self.created = 1

    @rule(
        pick=st.integers(0, 9),
        kind=st.sampled_from([BundleOrderKind.TRANSFER, BundleOrderKind.UNLOAD, BundleOrderKind.SPLIT]),
        node=st.sampled_from(NODES),
        split_by=st.sampled_from(sorted(NUMBERS)),
    )
    def order_bundle(self, pick: int, kind: BundleOrderKind, node: str, split_by: str) -> None:
        """An operator orders something for a bundle, unless an order stands."""
        bundles = sorted(self.world.state.bundles.by_id)
        bundle_id = bundles[pick % len(bundles)] if bundles else ""
        if not bundles or bundle_id in self.world.state.bundles.orders:
            return
        is_split = kind is BundleOrderKind.SPLIT
        destination = node if kind is BundleOrderKind.TRANSFER else None
        numbers = NUMBERS[split_by] if is_split else ()
        self.world.give(BundleOrder(bundle_id, kind, destination, split_by if is_split else "", numbers))

    @rule(pick=st.integers(0, 3))
    def end_namespace(self, pick: int) -> None:
        """An operator deletes a namespace: standing orders of its bundles give way."""
        names = sorted(each.name for each in self.world.state.bundles.namespaces.values() if not each.is_ending)
        if names:
            self.world.end_namespace(names[pick % len(names)])

    @precondition(lambda self: self.created < 3)
    @rule()
    def create(self) -> None:
        """An operator creates a namespace."""
        self.created += 1
        self.world.create(f"ns{self.created}", 2)

    @rule(node=st.sampled_from(NODES), step=st.sampled_from(list(BundleStep)))
    def idle(self, node: str, step: BundleStep) -> None:
        """A node does not do a step any more, or does it again."""
        self.world.idle ^= {(node, step)}

    @rule(bounds=st.sampled_from([(), (1 << 20,), (1 << 30, 1 << 31), (LAST_HASH - 1,), (LAST_HASH,)]))
    def find_bounds(self, bounds: tuple[int, ...]) -> None:
        """Owners find these bounds, which need not be inside."""
        self.world.bounds = bounds

    @invariant()
    def served_by_one(self) -> None:
        """A bundle that is served has an owner that lives; one without an owner is free or on its way."""
        if not hasattr(self, "world"):
            return
        for bundle in self.world.state.bundles.by_id.values():
            if bundle.ownership_state is OwnershipState.OWNED:
                assert self.world.state.membership.nodes[bundle.owner or ""].lives

    @invariant()
    def bundles_are_counted(self) -> None:
        """What a choice of a node goes by is what the rows say."""
        if not hasattr(self, "world"):
            return
        image = self.world.state.bundles
        assert image.bundle_counts == BundlesImage(by_id=image.by_id).bundle_counts

    def teardown(self) -> None:
        """When nodes do what they have to, every order ends and every bundle is owned by a node that may own it."""
        if not hasattr(self, "world"):
            return
        world = self.world
        world.idle.clear()
        if not world.living:
            world.start("n9")
        world.go(LONG_ENOUGH_MS * 2)
        image = world.state.bundles
        assert not image.in_flight
        assert not image.orders
        assert {each.ownership_state for each in image.by_id.values()} <= {OwnershipState.OWNED}
        assert {each.owner for each in image.by_id.values()} <= world.state.membership.owner_ids
        assert not any(each.is_ending for each in image.namespaces.values())


Handoffs.TestCase.settings = settings(max_examples=60, stateful_step_count=25, deadline=None)
TestHandoffs = Handoffs.TestCase
