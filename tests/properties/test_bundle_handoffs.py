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

ASSIGNING = OwnershipState.ASSIGNING
NODE = st.sampled_from(NODES)
NUMBERS = {BY_NUMBER: (2,), BY_POSITIONS: (LAST_HASH,), "topic_count_equally_divide": ()}
"""The numbers of a split, by its way; intents would refuse the last position."""


class Handoffs(HandoffMachine[BundleWorld]):
    """Operators, nodes and faults, each at any time."""

    @initialize(
        limit=st.sampled_from([0, 1, 2, 100]),
        hands_off=st.booleans(),
        divide=st.sampled_from([equal_bundles, bundles_at_level_1]),
        idle=st.sets(st.sampled_from(list(BundleStep))),
    )
    def begin(
        self, limit: int, hands_off: bool, divide: Callable[[str, int], tuple[Bundle, ...]], idle: set[BundleStep]
    ) -> None:
        """Two nodes own two namespaces, and no node does some steps. At level 1 the last bundle ended at 2^32."""
        self.world = BundleWorld(ClusterPolicy(slot_count=1, bundle_moves_in_flight=limit, protected_ratio=1.0))
        self.world.start("n1", hands_off=hands_off)
        self.world.start("n2")
        self.world.create(count=2, divide=divide)
        self.world.create("ns0", 2)
        self.created = 1
        self.world.idle |= {(node, step) for node in NODES for step in idle}

    @rule(pick=st.integers(0, 9), kind=st.sampled_from([BundleOrderKind.TRANSFER, BundleOrderKind.UNLOAD]), node=NODE)
    def move_bundle(self, pick: int, kind: BundleOrderKind, node: str) -> None:
        """An operator orders a bundle to move, for which no order stands, and whose namespace does not end."""
        self._order(pick, kind, node if kind is BundleOrderKind.TRANSFER else None, "", ())

    @rule(pick=st.integers(0, 9), split_by=st.sampled_from(sorted(NUMBERS)))
    def split_bundle(self, pick: int, split_by: str) -> None:
        """An operator orders a bundle to be split, likewise."""
        self._order(pick, BundleOrderKind.SPLIT, None, split_by, NUMBERS[split_by])

    def _order(
        self, pick: int, kind: BundleOrderKind, node: str | None, split_by: str, numbers: tuple[int, ...]
    ) -> None:
        image = self.world.state.bundles
        bundles = sorted(
            bundle_id
            for bundle_id, bundle in image.by_id.items()
            if bundle_id not in image.orders and not image.namespaces[bundle.namespace].is_ending
        )
        if bundles:
            self.world.give(BundleOrder(bundles[pick % len(bundles)], kind, node, split_by, numbers))
            self.world.go(200)

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

    @rule(node=NODE, step=st.sampled_from(list(BundleStep)))
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
    def goes_to_owners(self) -> None:
        """A bundle is assigned to a node that is to own bundles: what that opens it need not give away at once."""
        if hasattr(self, "world"):
            state = self.world.state
            assigned = {each.next_owner for each in state.bundles.by_id.values() if each.state is ASSIGNING}
            assert assigned <= state.membership.owner_ids

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
