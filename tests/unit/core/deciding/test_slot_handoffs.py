"""Handoffs of slot leaderships: each step, each death at a step, each step that does not come about."""

import pytest

from controlplane.core.cluster.policy import ClusterPolicy
from controlplane.core.deciding.consent import release_bound_ms
from controlplane.core.slots.events import SlotHandoffsChanged, SlotHandoffsEnded, SlotsAssigned
from controlplane.core.verification.log_verification import LogVerification
from tests.helpers.slot_world import SlotWorld

BOUND_MS = release_bound_ms(ClusterPolicy().silence_limit_ms)
COPY_LIMIT_MS = 30_000
ONE_COPY = ClusterPolicy(slot_count=8, replica_count=1, copy_limit_ms=COPY_LIMIT_MS)


@pytest.fixture
def world() -> SlotWorld:
    """Two nodes with two copies of each slot, and a third one that gets none yet: the table is paused."""
    world = SlotWorld()
    world.start("n1", "n2")
    world.go(500)
    return world


def verified(world: SlotWorld) -> None:
    """What ``log verify`` says of the whole log: nothing."""
    verification = LogVerification()
    assert [complaint for decision in world.decisions for complaint in verification.check(decision)] == []
    assert verification.check_end() == []


def evidence(world: SlotWorld) -> str:
    """What the decisions say of their causes."""
    return " ".join(cause.evidence for decision in world.decisions for cause in decision.causes)


def leads(world: SlotWorld, node_id: str) -> set[int]:
    """The slots that a node leads, whether it has to release them or not."""
    return {slot.slot_id for slot in world.state.slots.table if slot.leader == node_id}


class TestSteps:
    """Prepare, release and assign."""

    def test_a_follower_in_sync_leads_after_one_release(self, world: SlotWorld) -> None:
        """It has the data, so nothing is copied."""
        led = leads(world, "n1")
        world.leave("n1")
        decisions = world.go(100)
        assert {handoff.next_leader for handoff in world.state.slots.handoffs.values()} == {"n2"}
        assert all(handoff.releases for handoff in world.state.slots.handoffs.values())
        assert world.led("n1") == set()
        assert leads(world, "n1") == led
        decisions += world.go(200)
        assert leads(world, "n1") == set()
        assert not world.state.slots.handoffs
        assert sum(isinstance(event, SlotHandoffsChanged) for each in decisions for event in each.events) == 1
        verified(world)

    def test_the_next_leader_copies_as_an_additional_follower_first(self) -> None:
        """The leader serves on for as long as the copy takes."""
        world = SlotWorld(ONE_COPY)
        world.start("n1")
        world.copying.add("n2")
        world.start("n2")
        world.go(1_000)
        handoffs = world.state.slots.handoffs
        assert len(handoffs) == 4
        rows = [row for row in world.rows() if row.slot_id in handoffs]
        assert {(row.leader, row.followers, row.next_leader) for row in rows} == {("n1", ("n2",), None)}
        assert world.led("n1") == set(range(8))
        world.copying.clear()
        world.go(300)
        assert len(world.led("n2")) == 4
        assert all(row.followers == () for row in world.rows())
        verified(world)

    def test_the_new_leader_has_a_new_token(self, world: SlotWorld) -> None:
        """Each leadership has its own."""
        before = {slot.slot_id: slot.leader_epoch for slot in world.state.slots.table}
        moved = leads(world, "n1")
        world.leave("n1")
        world.go(300)
        assert all(world.state.slots.rows[slot_id].leader_epoch > before[slot_id] for slot_id in moved)

    def test_the_leader_is_waited_for_until_it_has_certainly_stopped(self, world: SlotWorld) -> None:
        """A silent leader that lives keeps its slots until then, and no longer."""
        world.holding.add("n1")
        led = leads(world, "n1")
        world.leave("n1")
        world.go(BOUND_MS - 200)
        assert leads(world, "n1") == led
        world.go(600)
        assert leads(world, "n1") == set()
        assert "n1 has said nothing for" in evidence(world)
        verified(world)

    def test_a_copy_that_does_not_end_is_not_waited_for_without_end(self) -> None:
        """Every step ends in bounded log time."""
        world = SlotWorld(ONE_COPY)
        world.start("n1")
        world.copying.add("n2")
        world.start("n2")
        world.go(COPY_LIMIT_MS - 500)
        assert leads(world, "n2") == set()
        world.go(1_500)
        assert len(leads(world, "n2")) == 4
        assert f"n2 had {COPY_LIMIT_MS} ms to copy it" in evidence(world)
        verified(world)

    def test_a_leader_releases_also_what_moves_without_its_data(self) -> None:
        """It serves until it has read that it has to release, so nothing is taken from it before."""
        world = SlotWorld(ONE_COPY)
        world.start("n1")
        world.copying.add("n2")
        world.holding.add("n1")
        world.start("n2")
        world.go(COPY_LIMIT_MS + 1_000)
        assert all(handoff.releases for handoff in world.state.slots.handoffs.values())
        assert len(world.led("n1")) == 4
        assert leads(world, "n2") == set()
        world.holding.clear()
        world.go(200)
        assert len(leads(world, "n2")) == 4

    def test_a_follower_in_sync_that_has_not_read_the_newest_table_is_waited_for(self, world: SlotWorld) -> None:
        """It might have lost its copies by that one, and one heartbeat tells."""
        world.start("n3")
        world.go(1_000)
        led = leads(world, "n1")
        world.silent |= {"n2", "n3"}
        world.ask("set_node", node="n3", zone="somewhere")
        assert world.observations.now_ms is not None
        world.leave("n1")
        world.go(1_000)
        assert world.led("n1") == led
        world.silent.clear()
        world.go(300)
        assert leads(world, "n1") == set()
        verified(world)

    def test_a_node_that_comes_back_is_ready_when_it_says_so_again(self, world: SlotWorld) -> None:
        """Its last report is of copies that it gave up when it was fenced."""
        world.silent.add("n2")
        world.go(5_000)
        assert leads(world, "n1") == set(range(8))
        world.come_back("n2")
        world.go(700)
        assert world.held("n2")
        world.leave("n1", world.living["n1"])
        world.go(700)
        assert world.led("n1") == set(range(8))
        world.silent.clear()
        world.go(500)
        assert leads(world, "n2") == set(range(8))
        verified(world)

    def test_moves_in_flight_bound_what_is_copied_at_once(self) -> None:
        """The pace counts additional followers, too."""
        world = SlotWorld(ClusterPolicy(slot_count=8, replica_count=1, moves_in_flight=2))
        world.start("n1")
        world.copying.add("n2")
        world.start("n2")
        world.go(1_000)
        assert len(world.state.slots.handoffs) == 2
        world.copying.clear()
        world.go(1_500)
        assert len(world.led("n2")) == 4
        verified(world)

    def test_a_new_process_cannot_say_for_the_former_one_that_it_has_released(self, world: SlotWorld) -> None:
        """The former process may be cut off from the table."""
        world.start("n1")
        world.go(1_000)
        led = leads(world, "n1")
        assert led
        world.leave("n1", world.living["n1"])
        world.go(3_000)
        assert world.led("n1") == led
        world.go(BOUND_MS)
        assert leads(world, "n1") == set()


class TestDeaths:
    """Deaths of owners and next owners, at each step."""

    def test_a_leader_that_dies_while_it_releases_loses_its_slots_at_once(self, world: SlotWorld) -> None:
        """A death waits for no consent."""
        world.holding.add("n1")
        world.leave("n1")
        world.go(300)
        world.die("n1")
        world.go(3_000)
        assert leads(world, "n2") == set(range(8))
        assert not world.state.slots.handoffs
        verified(world)

    def test_a_leader_whose_next_leader_dies_serves_on_under_its_token(self) -> None:
        """Nothing else has served meanwhile."""
        world = SlotWorld(ONE_COPY)
        world.start("n1")
        before = {slot.slot_id: slot.leader_epoch for slot in world.state.slots.table}
        world.holding.add("n1")
        world.start("n2")
        world.go(500)
        assert any(handoff.releases for handoff in world.state.slots.handoffs.values())
        world.die("n2")
        decisions = world.go(3_000)
        assert world.led("n1") == set(range(8))
        assert {slot.slot_id: slot.leader_epoch for slot in world.state.slots.table} == before
        assert any(isinstance(event, SlotHandoffsEnded) for each in decisions for event in each.events)
        verified(world)

    def test_a_next_leader_that_dies_while_it_copies_leaves_no_trace(self) -> None:
        """The table is as it was."""
        world = SlotWorld(ONE_COPY)
        world.start("n1")
        rows = world.rows()
        world.copying.add("n2")
        world.start("n2")
        world.go(500)
        assert world.state.slots.handoffs
        world.die("n2")
        world.go(3_000)
        assert world.rows() == rows
        verified(world)

    def test_a_next_leader_that_restarts_copies_again(self) -> None:
        """A new process has none of the data."""
        world = SlotWorld(ONE_COPY)
        world.start("n1")
        world.holding.add("n1")
        world.start("n2")
        world.go(500)
        world.copying.add("n2")
        world.start("n2")
        world.go(1_000)
        assert world.led("n1") == set(range(8))
        world.copying.clear()
        world.holding.clear()
        world.go(1_000)
        assert len(world.led("n2")) == 4
        verified(world)

    def test_lost_followers_are_replaced_although_the_leadership_waits_for_a_copy(self) -> None:
        """The last copy does not stay alone because the next leader is slow."""
        world = SlotWorld(ClusterPolicy(slot_count=8, replica_count=3, protected_ratio=1.0))
        world.start("n1", "n2", "n3")
        world.go(1_500)
        world.die("n2")
        world.die("n3")
        world.go(5_000)
        assert leads(world, "n1") == set(range(8))
        world.copying.add("n4")
        world.join("n4", hands_off=True)
        world.join("n5", hands_off=True)
        world.living |= {"n4": 1, "n5": 1}
        world.has |= {"n4": set(), "n5": set()}
        world.go(1_500)
        waiting = {slot_id for slot_id, handoff in world.state.slots.handoffs.items() if handoff.next_leader == "n4"}
        assert waiting
        assert all({"n1", "n4", "n5"} == {*row.replicas} for row in world.rows())
        assert all(world.state.slots.rows[slot_id].followers == ("n5",) for slot_id in waiting)
        world.copying.clear()
        world.go(1_000)
        assert {len(leads(world, name)) for name in ("n1", "n4", "n5")} == {2, 3}
        verified(world)

    def test_a_row_that_waits_for_its_leadership_gets_as_many_replicas_as_are_planned(self) -> None:
        """A living follower that is to be relieved keeps its place until the planned row is carried out."""
        world = SlotWorld(ClusterPolicy(slot_count=8, replica_count=3))
        world.start("n1", "n2", "n3")
        world.go(1_500)
        world.ask("pause_reconciliation")
        world.copying |= {"n4", "n5", "n6"}
        world.start("n4", "n5", "n6")
        world.ask("drain_node", node="n1")
        world.ask("drain_node", node="n3")
        led = leads(world, "n1")
        world.left("n2", world.living["n2"])
        world.die("n2")
        world.ask("resume_reconciliation")
        assert led <= world.state.slots.handoffs.keys()
        for slot_id in led:
            row, planned = world.state.slots.rows[slot_id], world.state.slots.planned[slot_id]
            assert {*planned.replicas} == {"n4", "n5", "n6"}
            assert (row.leader, len(row.followers)) == ("n1", 2)
            assert "n3" in row.followers
        verified(world)

    @pytest.mark.parametrize("paused", [False, True])
    @pytest.mark.parametrize("slot_policy", ["minimal", "rendezvous"])
    @pytest.mark.parametrize(("heir", "other"), [("n2", "n3"), ("n3", "n2")])
    def test_a_follower_that_came_back_without_data_inherits_nothing_from_one_that_has_them(
        self, heir: str, other: str, slot_policy: str, *, paused: bool
    ) -> None:
        """Its last report is of copies that it gave up when it was fenced; the other's is of copies that it has."""
        world = SlotWorld(ClusterPolicy(slot_count=8, replica_count=3, slot_policy=slot_policy, protected_ratio=1.0))
        world.start("n1", "n2", "n3")
        world.go(1_500)
        world.silent.add(other)
        world.go(5_000)
        world.come_back(other)
        world.go(400)
        led = leads(world, "n1")
        assert led & world.held(other)
        if paused:
            world.ask("pause_reconciliation")
        world.left("n1", world.living["n1"])
        world.die("n1")
        world.go(100)
        assert led <= leads(world, heir)
        verified(world)


class TestPlans:
    """Plans that change while a handoff is under way."""

    def test_a_pause_lets_leaders_serve_on(self, world: SlotWorld) -> None:
        """A release that is under way is taken back."""
        world.holding.add("n1")
        led = world.led("n1")
        world.leave("n1")
        world.go(300)
        assert not world.led("n1")
        world.ask("pause_reconciliation")
        assert world.led("n1") == led
        world.holding.clear()
        world.ask("resume_reconciliation")
        world.go(500)
        assert not leads(world, "n1")
        verified(world)

    def test_an_undrain_lets_the_leader_serve_on(self, world: SlotWorld) -> None:
        """The plan that needed the move is gone."""
        world.holding.add("n1")
        led = world.led("n1")
        world.ask("drain_node", node="n1")
        world.go(300)
        assert not world.led("n1")
        world.ask("undrain_node", node="n1")
        world.go(300)
        assert world.led("n1") == led
        verified(world)

    def test_a_handoff_goes_on_under_a_plan_that_leads_to_the_same_node(self, world: SlotWorld) -> None:
        """A copy of an hour is not begun again because a node joins."""
        world.holding.add("n1")
        world.leave("n1")
        world.go(300)
        before = dict(world.state.slots.handoffs)
        world.start("s1", hands_off=False)
        world.ask("refresh_table")
        after = world.state.slots.handoffs
        assert {each: after[each] for each in before if each in after and before[each] == after[each]} != {}
        verified(world)

    def test_a_split_of_slots_ends_in_a_whole_table(self, world: SlotWorld) -> None:
        """Parts begin with the rows of the state."""
        world.holding.add("n1")
        world.leave("n1")
        world.go(300)
        world.ask("change_policy", slot_count="16")
        world.holding.clear()
        world.go(1_000)
        assert world.led("n2") == set(range(16))
        verified(world)

    def test_nodes_of_before_move_by_one_row(self) -> None:
        """They would never say that they have released a slot."""
        world = SlotWorld(ONE_COPY)
        world.start("n1", hands_off=False)
        world.start("n2")
        decisions = world.go(300)
        assert len(leads(world, "n2")) == 4
        assert not any(isinstance(event, SlotHandoffsChanged) for each in decisions for event in each.events)

    def test_a_policy_that_paces_itself_moves_by_one_row(self) -> None:
        """SOFARegistry's rules stay exactly what they are."""
        world = SlotWorld(ClusterPolicy(slot_count=8, slot_policy="sofa"))
        world.start("n1", "n2")
        world.go(5_000)
        world.leave("n1")
        world.go(5_000)
        assert not any(isinstance(event, SlotHandoffsChanged) for d in world.decisions for event in d.events)
        assert any(isinstance(event, SlotsAssigned) for d in world.decisions for event in d.events)
