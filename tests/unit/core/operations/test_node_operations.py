"""What operators ask for nodes: drains, exclusions, other weights and zones."""

import pytest

from controlplane.core.intents.events import IntentOutcome
from controlplane.core.log.row_changes import rows_of
from controlplane.core.membership.node import NodeStatus
from controlplane.core.membership.rows import NodeRow
from controlplane.core.routing.rows import node_key
from tests.helpers.asked_policy import AskedPolicy, asked_policies
from tests.helpers.world import World

DONE, REFUSED = IntentOutcome.DONE, IntentOutcome.REFUSED


def three_nodes() -> World:
    """A cluster of three nodes that hold all slots between them."""
    world = World()
    world.admit("n1", "n2", "n3")
    return world


def row(world: World, node_id: str) -> NodeRow:
    """A node as routers see it."""
    found = rows_of(world.state)[node_key(node_id)]
    assert isinstance(found, NodeRow)
    return found


def test_drained_node_lives_and_holds_nothing() -> None:
    """A drain relieves the node in the decision that answers it; it stays a member."""
    world = three_nodes()
    answer = world.ask("drain_node", node="n1", reason="new disk")
    assert answer.outcome is DONE
    assert "11 slots" in answer.detail
    assert "reason given: new disk" in answer.detail
    assert world.state.membership.nodes["n1"].status is NodeStatus.DRAINING
    assert world.held("n1") == set()
    assert world.decisions[-1].certificate is not None


def test_undrained_node_gets_its_share_again() -> None:
    """A drain is taken back with one word."""
    world = three_nodes()
    world.ask("drain_node", node="n1")
    assert world.ask("undrain_node", node="n1").outcome is DONE
    assert world.state.membership.nodes["n1"].status is NodeStatus.ACTIVE
    assert len(world.held("n1")) in (10, 11)


def test_asking_twice_is_done_once() -> None:
    """An operator who repeats himself is told that it is so; nothing is written twice."""
    world = three_nodes()
    world.ask("drain_node", node="n1")
    epoch = world.state.epoch
    assert "drains already" in world.ask("drain_node", node="n1").detail
    world.ask("undrain_node", node="n1")
    assert "does not drain" in world.ask("undrain_node", node="n1").detail
    assert world.state.epoch == epoch + 1


def test_node_that_leaves_by_itself_is_not_undrained() -> None:
    """Its process is about to end: slots given back to it would move twice."""
    world = three_nodes()
    world.leave("n1")
    world.run(100)
    answer = world.ask("undrain_node", node="n1")
    assert (answer.outcome, world.state.membership.nodes["n1"].status) == (REFUSED, NodeStatus.DRAINING)
    assert "asked to leave itself" in answer.detail


def test_drained_node_that_then_leaves_is_not_undrained() -> None:
    """The node's own word counts also if the operator was first."""
    world = three_nodes()
    world.ask("drain_node", node="n1")
    world.leave("n1")
    world.run(100)
    assert world.ask("undrain_node", node="n1").outcome is REFUSED


def test_drain_ends_with_the_process() -> None:
    """The next process of that name starts active: it is not the one that was drained."""
    world = three_nodes()
    world.ask("drain_node", node="n1")
    world.join("n1", incarnation=2)
    world.run(400)
    assert world.state.membership.nodes["n1"].status is NodeStatus.ACTIVE
    assert world.held("n1")


def test_last_node_keeps_what_it_holds() -> None:
    """Draining everybody leaves no slot to nobody, and the answer says so."""
    world = World()
    world.admit("n1")
    answer = world.ask("drain_node", node="n1")
    assert (answer.outcome, len(world.held("n1"))) == (DONE, 16)
    assert "keeps that until one joins" in answer.detail
    world.admit("n2")
    assert world.held("n1") == set()


@pytest.mark.parametrize("kind", ["drain_node", "undrain_node"])
def test_unknown_node_is_refused_with_the_known_ones(kind: str) -> None:
    """A typing error is told from the names that would have been right."""
    answer = three_nodes().ask(kind, node="n9")
    assert (answer.outcome, answer.detail) == (REFUSED, "node 'n9' is unknown; known are n1, n2, n3")


def test_dead_node_is_not_drained() -> None:
    """It holds nothing already, and would start active."""
    world = three_nodes()
    world.run(4_000, ("n2", "n3"))
    assert world.ask("drain_node", node="n1").outcome is REFUSED


def test_excluded_node_gets_nothing_over_its_restarts() -> None:
    """The exclusion is about the name: a new process of it gets nothing either, until the name is included again."""
    world = three_nodes()
    assert world.ask("exclude_node", node="n1").outcome is DONE
    assert (world.held("n1"), world.state.membership.nodes["n1"].status) == (set(), NodeStatus.ACTIVE)
    assert row(world, "n1").weight == 0
    world.join("n1", incarnation=2)
    world.run(400)
    assert world.held("n1") == set()
    world.ask("include_node", node="n1")
    assert world.held("n1")
    assert (row(world, "n1").weight, dict(world.state.membership.orders)) == (1, {})


def test_node_is_excluded_before_it_joins() -> None:
    """The machine that must not serve may not be there yet."""
    world = three_nodes()
    assert "no node of that name has joined yet" in world.ask("exclude_node", node="n4").detail
    world.admit("n4")
    assert world.held("n4") == set()


def test_excluded_node_owns_no_bundle() -> None:
    """Bundles go the way of slots."""
    world = three_nodes()
    world.ask("create_namespace", namespace="kv")
    world.ask("exclude_node", node="n1")
    assert {bundle.owner for bundle in world.state.bundles.by_id.values()} == {"n2", "n3"}


def test_excluding_everybody_leaves_no_slot_to_nobody() -> None:
    """The last one keeps what it holds, as the last draining one does; one that drains is taken before."""
    world = World()
    world.admit("n1", "n2")
    world.ask("drain_node", node="n1")
    assert "keeps that until one joins" in world.ask("exclude_node", node="n2").detail
    assert (len(world.held("n1")), world.held("n2")) == (16, set())
    world.ask("exclude_node", node="n1")
    assert (len(world.held("n1")), len(world.held("n2"))) == (16, 16)


def test_including_what_is_not_excluded() -> None:
    """Of a known node it is so already; an unknown name is likely a wrong one."""
    world = three_nodes()
    world.ask("exclude_node", node="gone")
    assert world.ask("include_node", node="n1").outcome is DONE
    answer = world.ask("include_node", node="gnoe")
    assert (answer.outcome, answer.detail) == (REFUSED, "node 'gnoe' is not excluded; excluded are gone")


def test_weight_and_zone_of_an_operator_count_until_reset() -> None:
    """They replace what the node says, in the plan and in its published row, over its restarts."""
    policy = AskedPolicy()
    world = World(slot_policies=asked_policies(policy))
    world.admit("n1", "n2", "n3")
    answer = world.ask("set_node", node="n1", weight="4", zone="z9")
    assert (answer.outcome, answer.detail) == (DONE, "node 'n1' counts with weight 4 and zone 'z9'")
    world.join("n1", incarnation=2, weight=2, zone="own")
    world.run(400)
    node = policy.last.nodes[0]
    assert (node.node_id, node.weight, node.zone) == ("n1", 4, "z9")
    assert (row(world, "n1").weight, row(world, "n1").zone) == (4, "z9")
    assert len(world.held("n1")) > len(world.held("n2"))
    world.ask("reset_node", node="n1")
    node = policy.last.nodes[0]
    assert (node.weight, node.zone, dict(world.state.membership.orders)) == (2, "own", {})


def test_setting_one_thing_keeps_the_other() -> None:
    """Weight, zone and exclusion are said one by one."""
    world = three_nodes()
    world.ask("set_node", node="n1", weight="4")
    world.ask("exclude_node", node="n1")
    world.ask("set_node", node="n1", zone="z")
    order = world.state.membership.order("n1")
    assert (order.weight, order.zone, order.excluded) == (4, "z", True)
    world.ask("reset_node", node="n1")
    assert world.state.membership.order("n1").excluded


@pytest.mark.parametrize(
    ("kind", "arguments", "detail"),
    [
        ("set_node", {"node": "n1"}, "say what to set"),
        ("set_node", {"node": "n1", "weight": "0"}, "weight is '0', expected a whole number, 1 to 1,000,000"),
        ("set_node", {"node": "n1", "weight": "heavy"}, "weight is 'heavy', expected"),
        ("set_node", {"weight": "3"}, "set_node needs node"),
        ("set_node", {"node": "n1", "wait": "3"}, "set_node does not know wait"),
        ("reset_node", {"node": "n9"}, "nothing is set for node 'n9'; something is for none"),
    ],
)
def test_what_makes_no_sense_is_refused(kind: str, arguments: dict[str, str], detail: str) -> None:
    """With the reason, and without any effect."""
    world = three_nodes()
    before = world.state
    answer = world.ask(kind, **arguments)
    assert answer.outcome is REFUSED
    assert detail in answer.detail
    assert (world.state.membership.orders, world.state.slots.table) == (before.membership.orders, before.slots.table)
