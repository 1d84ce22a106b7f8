"""What counts against the number of nodes that may be fenced for silence within a window."""

from controlplane.core.cluster.policy import SEVERAL_BROKERS_LEVEL, ClusterPolicy
from controlplane.core.log.snapshots.body import pieces_of
from controlplane.core.membership.events import FencingCause, NodeFenced
from tests.helpers.world import World

NODES = ("n1", "n2", "n3")
WINDOW_MS = ClusterPolicy().protection_window_ms


def fenced(world: World) -> list[str]:
    """The nodes that were fenced for silence, in order."""
    events = [event for decision in world.decisions for event in decision.events]
    silence = FencingCause.SILENCE
    return [event.node_id for event in events if isinstance(event, NodeFenced) and event.cause is silence]


def world_with_one_back(level: int = SEVERAL_BROKERS_LEVEL) -> World:
    """Three nodes, of which the first was fenced, lives, and has joined again."""
    world = World(ClusterPolicy(slot_count=8), first_feature_level=level)
    world.admit(*NODES)
    world.run(4_000, NODES[1:])
    world.join("n1")
    world.run(1_000, NODES)
    assert fenced(world) == ["n1"]
    assert world.state.membership.nodes["n1"].lives
    return world


def test_a_node_that_was_fenced_and_is_back_counts_until_its_window_ends() -> None:
    """A fault that silences living nodes in turn would otherwise fence the whole fleet, node by node."""
    world = world_with_one_back()
    world.run(5_000, ("n1", "n3"))
    assert fenced(world) == ["n1"]
    assert world.state.membership.evictions_frozen
    world.run(WINDOW_MS, ("n1", "n3"))
    assert fenced(world) == ["n1", "n2"]


def test_below_the_level_a_node_that_is_back_does_not_count() -> None:
    """The decisions of an older log stay what they were, so that it can be audited."""
    world = world_with_one_back(SEVERAL_BROKERS_LEVEL - 1)
    world.run(5_000, ("n1", "n3"))
    assert fenced(world) == ["n1", "n2"]
    assert not world.state.membership.fenced_lately
    assert b"fenced_lately" not in b"".join(pieces_of(world.state))


def test_a_node_that_dies_while_another_one_is_heard_late_is_fenced_when_that_one_is_heard() -> None:
    """Freezing by one late heartbeat costs no more than the time until it arrives."""
    world = world_with_one_back()
    world.run(WINDOW_MS, NODES)
    world.run(4_000, ("n3",))
    assert fenced(world) == ["n1"]
    assert world.state.membership.evictions_frozen
    world.run(1_000, ("n2", "n3"))
    assert fenced(world) == ["n1", "n1"]
    assert not world.state.membership.evictions_frozen


def test_an_override_fences_beyond_what_a_window_allows_and_counts() -> None:
    """An operator knows that the nodes are dead. A node that falls silent afterwards waits for the window's end."""
    world = world_with_one_back()
    world.run(4_000, ("n1", "n3"))
    assert world.state.membership.evictions_frozen
    assert world.ask("override_self_preservation").detail == "1 silent node fenced: n2"
    world.run(4_000, ("n3",))
    assert fenced(world) == ["n1", "n2"]
    world.run(WINDOW_MS, ("n3",))
    assert fenced(world) == ["n1", "n2", "n1"]


def test_the_record_of_fencings_is_bounded_by_the_window() -> None:
    """Nodes die and come back for ever; what lies before the window is forgotten with the next fencing."""
    world = World(ClusterPolicy(slot_count=8, protection_window_ms=3_000))
    world.admit(*NODES)
    for incarnation in range(2, 7):
        world.run(5_000, NODES[1:])
        world.join("n1", incarnation=incarnation)
        world.run(1_000, NODES)
    assert fenced(world) == ["n1"] * 5
    assert list(world.state.membership.fenced_lately) == [("n1", 5)]
