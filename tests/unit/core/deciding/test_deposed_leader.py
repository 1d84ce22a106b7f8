"""A leader that was deposed, and decides once more before it knows: nothing that it looked at then is lost."""

from controlplane.core.deciding.decide import Opening, decide, follow_up, open_term
from controlplane.core.deciding.observations import Observations, observe
from controlplane.core.log.state import State
from controlplane.core.membership.events import NodeAdmitted
from controlplane.core.values.identifiers import Term
from tests.helpers.world import World
from tests.unit.core.membership.test_brokers_clocks import NODES, fenced, world_with_clocks


def admitted_next(world: World, state: State, observations: Observations) -> list[str]:
    """The nodes that are admitted by the first decision of a third term, whose leader observed this."""
    followed, _ = follow_up(state, observations)
    opening = Opening(observed_from=world.observed_from)
    opened = open_term(state, followed, Term(3), "c1", "test", opening)
    followed, _ = follow_up(opened.state, followed)
    sealed = decide(opened.state, followed).sealed
    events = sealed.decision.events if sealed is not None else ()
    return [event.node.node_id for event in events if isinstance(event, NodeAdmitted)]


def test_a_join_that_a_deposed_leader_took_for_no_news_is_taken_up_in_its_next_term() -> None:
    """Its successor had fenced the node, and died before it took up that the node is back."""
    world = world_with_clocks({})
    deposed = world.state
    world.open_term(Term(2), controller_id="c2")
    world.run(4_000, NODES[1:])
    assert fenced(world) == [NODES[0]]
    world.heartbeat(NODES[0])
    world.tick()
    world.decide()
    world.join(NODES[0])
    for _ in range(2):
        world.tick()
    read = observe(Observations(positions=world.observed_from), world.inputs)
    result = decide(deposed, read)
    assert result.sealed is None
    assert result.observations.pending == ()
    standby, former = (admitted_next(world, world.state, each) for each in (read, result.observations))
    assert former == standby == [NODES[0]]


def test_inputs_without_effect_are_forgotten_with_the_next_decision_of_their_leader() -> None:
    """Its positions have passed them."""
    world = world_with_clocks({})
    world.join(NODES[0])
    world.run(500, NODES)
    kept = world.observations.without_effect
    assert kept is not None
    assert [record.coordinates.topic for record in kept.records] == ["membership"]
    world.ask("refresh_table")
    world.run(500, NODES)
    assert world.observations.without_effect is None
