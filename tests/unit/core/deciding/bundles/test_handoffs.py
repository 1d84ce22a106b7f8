"""Handoffs of bundles: each step, each death at a step, each step that does not come about, and how orders end."""

import pytest

from controlplane.core.bundles.events import BundlesAssigned, BundleSplit
from controlplane.core.bundles.orders import (
    BY_NUMBER,
    BY_POSITIONS,
    BundleOrder,
    BundleOrderKind,
    OrderOutcome,
)
from controlplane.core.bundles.ownership_state import OwnershipState
from controlplane.core.bundles.reports import BundleStep, BundleStepReport
from controlplane.core.cluster.policy import ClusterPolicy
from controlplane.core.deciding.consent import release_bound_ms
from controlplane.core.log.decision import Decision
from tests.helpers.bundle_world import BundleWorld
from tests.helpers.fencing_bounds import Bounds

TRANSFER, UNLOAD, SPLIT = BundleOrderKind.TRANSFER, BundleOrderKind.UNLOAD, BundleOrderKind.SPLIT
FREE, OWNED, ASSIGNING = OwnershipState.FREE, OwnershipState.OWNED, OwnershipState.ASSIGNING
RELEASING, SPLITTING = OwnershipState.RELEASING, OwnershipState.SPLITTING
HANDOFF_LIMIT_MS = ClusterPolicy().handoff_limit_ms
BOUND_MS = release_bound_ms(ClusterPolicy().silence_limit_ms)


@pytest.fixture
def world() -> BundleWorld:
    """Three nodes; the first owns the first bundle."""
    world = BundleWorld()
    world.start("n1", "n2", "n3")
    world.create()
    assert world.bundle().owner == "n1"
    return world


def states(decisions: list[Decision], bundle_id: str) -> list[OwnershipState | None]:
    """The states through which a bundle goes in these decisions."""
    events = [event for decision in decisions for event in decision.events if isinstance(event, BundlesAssigned)]
    return [each.state for event in events for each in event.bundles if each.bundle_id == bundle_id]


def outcome(world: BundleWorld) -> OrderOutcome:
    """What came of the only order."""
    (ended,) = world.ended()
    return ended.outcome


def test_the_owner_is_waited_for_until_it_says_that_it_has_released(world: BundleWorld) -> None:
    """A silent owner that lives keeps its bundle until it has certainly stopped, and no longer."""
    world.idle.add(("n1", BundleStep.RELEASED))
    world.give(BundleOrder(world.bundle().bundle_id, TRANSFER, "n3"))
    world.go(BOUND_MS - 200)
    assert world.bundle().state is RELEASING
    world.go(-(-Bounds().unsaid_release_ms // 100) * 100 - BOUND_MS)
    assert world.bundle().next_owner == "n3" or world.bundle().owner == "n3"
    assert world.bundle().state is not RELEASING
    world.go(200)
    assert world.bundle().owner == "n3"
    assert "n1 has said nothing for" in "".join(cause.evidence for d in world.decisions for cause in d.causes)


class TestMoves:
    """Orders that move bundles, and what keeps a step from coming about."""

    def test_a_transfer_releases_assigns_and_opens(self, world: BundleWorld) -> None:
        """The states of Pulsar's transfer, and a new token."""
        bundle_id = world.bundle().bundle_id
        world.give(BundleOrder(bundle_id, TRANSFER, "n3"))
        decisions = world.go(500)
        assert states(decisions, bundle_id) == [RELEASING, ASSIGNING, OWNED]
        assert (world.bundle().owner, world.bundle().former_owner) == ("n3", "n1")
        assert world.bundle().owner_epoch == world.bundle().state_epoch == world.state.epoch
        assert outcome(world) is OrderOutcome.DONE

    def test_an_unload_chooses_another_node_when_it_is_released(self, world: BundleWorld) -> None:
        """Without a destination the bundle is free in between."""
        bundle_id = world.bundle().bundle_id
        world.give(BundleOrder(bundle_id, UNLOAD))
        decisions = world.go(500)
        assert states(decisions, bundle_id) == [RELEASING, FREE, ASSIGNING, OWNED]
        assert world.bundle().owner != "n1"
        assert outcome(world) is OrderOutcome.DONE

    def test_an_unload_comes_back_where_there_is_no_other_node(self) -> None:
        """An order that can go nowhere else is carried out all the same."""
        world = BundleWorld()
        world.start("n1")
        world.create()
        world.give(BundleOrder(world.bundle().bundle_id, UNLOAD))
        world.go(500)
        assert world.bundle().owner == "n1"
        assert outcome(world) is OrderOutcome.DONE

    def test_a_report_for_an_earlier_row_counts_for_nothing(self, world: BundleWorld) -> None:
        """A late heartbeat consents to nothing."""
        bundle_id = world.bundle().bundle_id
        world.idle.add(("n1", BundleStep.RELEASED))
        world.give(BundleOrder(bundle_id, TRANSFER, "n3"))
        world.go(200)
        world.stuck["n1"] = (BundleStepReport(bundle_id, world.bundle().version - 1, BundleStep.RELEASED),)
        world.go(1_000)
        assert world.bundle().state is RELEASING
        world.stuck["n1"] = (BundleStepReport(bundle_id, world.bundle().version, BundleStep.RELEASED),)
        world.go(500)
        assert world.bundle().owner == "n3"

    def test_a_next_owner_that_does_not_open_is_passed_by(self, world: BundleWorld) -> None:
        """A bundle does not stay without an owner for longer than the limit."""
        world.idle.add(("n3", BundleStep.OPENED))
        world.give(BundleOrder(world.bundle().bundle_id, TRANSFER, "n3"))
        world.go(HANDOFF_LIMIT_MS)
        assert (world.bundle().state, world.bundle().next_owner) == (ASSIGNING, "n3")
        world.go(1_000)
        assert world.bundle().owner in ("n1", "n2")
        assert outcome(world) is OrderOutcome.FAILED

    def test_a_drain_relieves_its_node_by_handoff(self, world: BundleWorld) -> None:
        """A drain is a planned move."""
        world.leave("n1")
        decisions = world.go(1_000)
        bundle_id = world.bundle().bundle_id
        assert states(decisions, bundle_id) == [RELEASING, ASSIGNING, OWNED]
        assert all(world.bundle(number).owner != "n1" for number in range(4))

    def test_an_exclusion_that_ends_meanwhile_ends_what_is_not_begun(self) -> None:
        """What has begun goes on; the rest stays."""
        world = BundleWorld(ClusterPolicy(slot_count=4, bundle_moves_in_flight=1))
        world.start("n1", "n2")
        world.create()
        world.idle.add(("n1", BundleStep.RELEASED))
        world.ask("exclude_node", node="n1")
        world.ask("include_node", node="n1")
        world.idle.clear()
        world.go(1_000)
        assert [each.detail for each in world.ended()] == ["n2 owns it", "n1 may own bundles again"]

    def test_no_more_than_the_policy_says_are_under_way(self) -> None:
        """The pace holds whatever was ordered at once."""
        world = BundleWorld(ClusterPolicy(slot_count=4, bundle_moves_in_flight=3))
        world.start("n1", "n2")
        world.create(count=16)
        world.idle.add(("n1", BundleStep.RELEASED))
        owned = [each.bundle_id for each in world.state.bundles.by_id.values() if each.owner == "n1"]
        world.give(*(BundleOrder(bundle_id, TRANSFER, "n2") for bundle_id in owned))
        world.go(500)
        assert len(world.state.bundles.in_flight) == 3
        world.idle.clear()
        world.go(2_000)
        assert all(each.owner == "n2" for each in world.state.bundles.by_id.values())

    def test_a_transfer_to_the_owner_is_done_at_once(self, world: BundleWorld) -> None:
        """Nothing changes in the table."""
        before = world.bundle()
        world.give(BundleOrder(before.bundle_id, TRANSFER, "n1"))
        world.go(200)
        assert world.bundle() == before
        assert outcome(world) is OrderOutcome.DONE


class TestNodesWithoutHandoffs:
    """Agents of an earlier release among those that hand off."""

    def test_an_owner_of_before_loses_its_bundle_by_one_row(self) -> None:
        """It would never say that it has released it."""
        world = BundleWorld()
        world.start("n1", hands_off=False)
        world.start("n2")
        world.create()
        bundle_id = world.bundle().bundle_id
        world.give(BundleOrder(bundle_id, TRANSFER, "n2"))
        assert states(world.go(300), bundle_id) == [OWNED]
        assert (world.bundle().owner, world.bundle().is_forced) == ("n2", True)

    def test_a_next_owner_of_before_owns_as_soon_as_it_is_released(self) -> None:
        """It would never say that it has opened it."""
        world = BundleWorld()
        world.start("n1")
        world.start("n2", hands_off=False)
        world.create()
        bundle_id = world.bundle().bundle_id
        world.give(BundleOrder(bundle_id, TRANSFER, "n2"))
        assert states(world.go(300), bundle_id) == [RELEASING, ASSIGNING, OWNED]

    def test_an_owner_of_before_is_split_at_once_at_given_positions(self) -> None:
        """Nothing has to be asked."""
        world = BundleWorld()
        world.start("n1", hands_off=False)
        world.create()
        world.give(BundleOrder(world.bundle().bundle_id, SPLIT, None, BY_NUMBER, (2,)))
        world.go(200)
        assert len(world.state.bundles.by_id) == 5
        assert outcome(world) is OrderOutcome.DONE

    def test_an_owner_of_before_cannot_be_asked_for_bounds(self) -> None:
        """The order fails with a reason, and stands no longer."""
        world = BundleWorld()
        world.start("n1", hands_off=False)
        world.create()
        world.give(BundleOrder(world.bundle().bundle_id, SPLIT, None, "topic_count_equally_divide"))
        world.go(200)
        assert outcome(world) is OrderOutcome.FAILED


class TestDeaths:
    """Deaths of owners and next owners, at each step."""

    @pytest.mark.parametrize("kind", [TRANSFER, UNLOAD])
    def test_an_owner_that_dies_while_it_releases_loses_the_bundle_at_once(
        self, world: BundleWorld, kind: BundleOrderKind
    ) -> None:
        """A death waits for no consent."""
        world.idle.add(("n1", BundleStep.RELEASED))
        world.give(BundleOrder(world.bundle().bundle_id, kind, "n3" if kind is TRANSFER else None))
        world.go(300)
        assert world.bundle().state is RELEASING
        world.die("n1")
        world.go(3_000)
        assert world.bundle().owner in ({"n3"} if kind is TRANSFER else {"n2", "n3"})
        assert world.bundle().is_forced
        assert outcome(world) is OrderOutcome.DONE

    def test_an_owner_that_dies_before_an_order_has_begun_loses_the_bundle_to_where_it_was_ordered(self) -> None:
        """It does not go to n2, which has the fewest bundles."""
        world = BundleWorld(ClusterPolicy(slot_count=4, bundle_moves_in_flight=1))
        world.start("n1", "n2", "n3")
        world.create(count=6)
        world.idle.add(("n1", BundleStep.RELEASED))
        ordered = [world.bundle(number) for number in (0, 3)]
        world.give(*(BundleOrder(each.bundle_id, TRANSFER, "n3") for each in ordered))
        world.go(200)
        assert [world.bundle(number).state for number in (0, 3)] == [RELEASING, OWNED]
        world.die("n1")
        world.go(4_000)
        assert [world.bundle(number).owner for number in (0, 3)] == ["n3", "n3"]
        assert [each.outcome for each in world.ended()] == [OrderOutcome.DONE, OrderOutcome.DONE]

    def test_a_next_owner_that_dies_before_the_release_is_passed_by(self, world: BundleWorld) -> None:
        """The bundle goes to another node, and the order says so."""
        world.idle.add(("n1", BundleStep.RELEASED))
        world.give(BundleOrder(world.bundle().bundle_id, TRANSFER, "n3"))
        world.die("n3")
        world.go(4_000)
        world.idle.clear()
        world.go(500)
        assert world.bundle().owner == "n2"
        assert outcome(world) is OrderOutcome.FAILED

    def test_a_next_owner_that_dies_while_it_opens_loses_the_bundle_at_once(self, world: BundleWorld) -> None:
        """Nothing serves the bundle, so nothing is waited for."""
        world.idle.add(("n3", BundleStep.OPENED))
        world.give(BundleOrder(world.bundle().bundle_id, TRANSFER, "n3"))
        world.go(300)
        assert world.bundle().state is ASSIGNING
        world.die("n3")
        world.go(3_000)
        assert world.bundle().owner in ("n1", "n2")
        assert outcome(world) is OrderOutcome.FAILED

    def test_a_split_is_begun_again_by_the_next_owner(self, world: BundleWorld) -> None:
        """The order stands until it has come about."""
        world.idle.add(("n1", BundleStep.DIVIDED))
        world.give(BundleOrder(world.bundle().bundle_id, SPLIT, None, BY_NUMBER, (2,)))
        world.go(300)
        assert world.bundle().state is SPLITTING
        world.die("n1")
        world.go(3_500)
        assert len(world.state.bundles.by_id) == 5
        assert world.bundle().owner == world.bundle(1).owner != "n1"

    def test_the_last_node_leaves_its_bundles_free_until_another_comes(self, world: BundleWorld) -> None:
        """No bundle is lost with the last node."""
        world.ask("change_policy", protected_ratio="1.0")
        for node_id in ("n1", "n2", "n3"):
            world.die(node_id)
        world.go(6_000)
        assert {each.state for each in world.state.bundles.by_id.values()} == {FREE}
        world.start("n4")
        assert {each.owner for each in world.state.bundles.by_id.values()} == {"n4"}

    def test_a_new_process_owns_under_a_new_token(self, world: BundleWorld) -> None:
        """Its former process may still serve under the former one."""
        before = world.bundle()
        world.start("n1")
        assert world.bundle().owner == "n1"
        assert world.bundle().owner_epoch > before.owner_epoch

    def test_a_new_process_cannot_say_for_the_former_one_that_it_has_released(self, world: BundleWorld) -> None:
        """The former process may be cut off from the table."""
        world.start("n1")
        world.give(BundleOrder(world.bundle().bundle_id, TRANSFER, "n3"))
        world.go(BOUND_MS - 1_000)
        assert (world.bundle().state, world.bundle().owner) == (OWNED, "n1")
        world.go(1_500)
        assert world.bundle().owner == "n3"

    def test_two_processes_of_an_unknown_node_may_join_in_one_decision(self, world: BundleWorld) -> None:
        """The second one takes the place of the first, which may serve as soon as it reads that it was admitted."""
        for incarnation in (1, 2):
            world.join("n4", incarnation, hands_off=True)
        world.go(1_000)
        node = world.state.membership.nodes["n4"]
        assert (node.incarnation, node.replaced_epoch) == (2, world.state.epoch)

    def test_a_release_is_taken_back_when_a_new_process_takes_the_place_of_the_owner(self, world: BundleWorld) -> None:
        """The new process serves, instead of nothing for as long as the former one may."""
        world.idle.add(("n1", BundleStep.RELEASED))
        world.give(BundleOrder(world.bundle().bundle_id, TRANSFER, "n3"))
        world.go(300)
        assert world.bundle().state is RELEASING
        world.start("n1")
        assert (world.bundle().state, world.bundle().owner) == (OWNED, "n1")
        world.idle.clear()
        world.go(BOUND_MS + 1_000)
        assert world.bundle().owner == "n3"
        assert outcome(world) is OrderOutcome.DONE


class TestSplits:
    """Splits by number, at positions and by algorithms."""

    @pytest.mark.parametrize(
        ("split_by", "numbers", "bounds"),
        [
            (BY_NUMBER, (4,), (0x10000000, 0x20000000, 0x30000000)),
            (BY_POSITIONS, (0x30000000, 0x10000000), (0x10000000, 0x30000000)),
        ],
    )
    def test_the_parts_take_the_place_of_the_bundle_under_its_token(
        self, world: BundleWorld, split_by: str, numbers: tuple[int, ...], bounds: tuple[int, ...]
    ) -> None:
        """Owner and token stay, so that nothing is interrupted."""
        before = world.bundle()
        world.give(BundleOrder(before.bundle_id, SPLIT, None, split_by, numbers))
        decisions = world.go(500)
        assert states(decisions, before.bundle_id) == [SPLITTING]
        parts = [world.bundle(number) for number in range(len(bounds) + 1)]
        assert tuple(each.lower for each in parts[1:]) == bounds
        assert {(each.owner, each.owner_epoch, each.parent) for each in parts} == {
            ("n1", before.owner_epoch, before.hash_range.name)
        }
        assert outcome(world) is OrderOutcome.DONE

    def test_the_owner_is_asked_for_the_bounds(self, world: BundleWorld) -> None:
        """Topics never leave the node."""
        world.bounds = (0x1234,)
        world.give(BundleOrder(world.bundle().bundle_id, SPLIT, None, "topic_count_equally_divide"))
        world.go(500)
        assert (world.bundle().upper, world.bundle(1).lower) == (0x1234, 0x1234)

    @pytest.mark.parametrize("bounds", [(), (0x50000000,), (0x40000000,)])
    def test_a_split_without_bounds_inside_is_given_up(self, world: BundleWorld, bounds: tuple[int, ...]) -> None:
        """The bundle stays whole, with its owner and token."""
        before = world.bundle()
        world.bounds = bounds
        world.give(BundleOrder(before.bundle_id, SPLIT, None, "topic_count_equally_divide"))
        world.go(500)
        after = world.bundle()
        assert (after.state, after.owner, after.owner_epoch) == (OWNED, "n1", before.owner_epoch)
        assert outcome(world) is OrderOutcome.FAILED

    def test_a_split_that_is_not_answered_is_given_up(self, world: BundleWorld) -> None:
        """No bundle is stuck in a split."""
        world.idle.add(("n1", BundleStep.DIVIDED))
        world.give(BundleOrder(world.bundle().bundle_id, SPLIT, None, BY_NUMBER, (2,)))
        world.go(HANDOFF_LIMIT_MS)
        assert world.bundle().state is SPLITTING
        world.go(500)
        assert world.bundle().state is OWNED
        assert outcome(world) is OrderOutcome.FAILED

    def test_a_range_that_is_too_narrow_is_not_split(self) -> None:
        """A range with one hash has no bound inside."""
        world = BundleWorld()
        world.start("n1")
        world.create(count=1)
        world.give(BundleOrder(world.bundle().bundle_id, SPLIT, None, BY_POSITIONS, (1,)))
        world.go(300)
        world.give(BundleOrder(world.bundle().bundle_id, SPLIT, None, BY_NUMBER, (2,)))
        world.go(300)
        assert [each.outcome for each in world.ended()] == [OrderOutcome.DONE, OrderOutcome.FAILED]

    def test_parts_of_a_node_that_drains_leave_it(self, world: BundleWorld) -> None:
        """The drain concerns the parts as it did the whole."""
        world.idle.add(("n1", BundleStep.DIVIDED))
        world.give(BundleOrder(world.bundle().bundle_id, SPLIT, None, BY_NUMBER, (2,)))
        world.go(200)
        world.leave("n1")
        world.go(300)
        world.idle.clear()
        decisions = world.go(1_000)
        assert any(isinstance(event, BundleSplit) for decision in decisions for event in decision.events)
        assert all(each.owner != "n1" for each in world.state.bundles.by_id.values())
