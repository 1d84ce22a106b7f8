"""What a term's first decision takes up: nothing, whatever its leader has read."""

from controlplane.config import INTENTS
from controlplane.core.deciding.decide import Opening, open_term
from controlplane.core.intents.intent import Intent, IntentKind
from controlplane.core.values.identifiers import Term, TopicPartition
from tests.helpers.world import World

_INTENTS = TopicPartition(INTENTS, 0)


def test_who_passed_over_an_input_without_effect_opens_like_one_that_did_not() -> None:
    """Otherwise the audit, which folds the same inputs again, would find another decision than the recorded one."""
    world = World()
    world.append(INTENTS, 0, Intent("i", IntentKind.REFRESH_TABLE.value, "somebody", {}))
    world.tick(100)
    world.observe()
    world.decide()
    world.append(
        INTENTS, 0, Intent("i", IntentKind.REFRESH_TABLE.value, "somebody", {})
    )  # answered before: says nothing
    world.tick(100)
    world.observe()
    fresh = world.observations
    world.decide()
    opening = Opening(observed_from=world.observed_from)

    taken_up, not_taken_up = (
        open_term(world.state, observations, Term(2), "c2", "test", opening).decision
        for observations in (world.observations, fresh)
    )

    assert world.observations.pending == () != fresh.pending
    assert taken_up == not_taken_up
    assert taken_up.positions["intents[0]"] == 1
