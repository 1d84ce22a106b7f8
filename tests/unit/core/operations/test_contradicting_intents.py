"""Several intents in one decision: what contradicts, what wins, and what each is told."""

import pytest

from controlplane.core.intents.events import IntentOutcome
from controlplane.core.membership.node import NodeStatus
from tests.helpers.world import World

DONE, REFUSED, SUPERSEDED = IntentOutcome.DONE, IntentOutcome.REFUSED, IntentOutcome.SUPERSEDED


def asked_together(*intents: tuple[str, dict[str, str]]) -> tuple[World, list[IntentOutcome]]:
    """A cluster of three nodes whose leader finds all these intents at once; the outcomes in their order."""
    world = World()
    world.admit("n1", "n2", "n3")
    for number, (kind, arguments) in enumerate(intents, start=1):
        world.intent(f"i{number}", kind, **arguments)
    world.run(100)
    answers = world.answers()
    return world, [answers[f"i{number}"].outcome for number in range(1, len(intents) + 1)]


CASES: dict[str, tuple[list[tuple[str, dict[str, str]]], list[IntentOutcome]]] = {
    "drain and undrain": (
        [("drain_node", {"node": "n1"}), ("undrain_node", {"node": "n1"})],
        [SUPERSEDED, DONE],
    ),
    "of two nodes": ([("drain_node", {"node": "n1"}), ("undrain_node", {"node": "n2"})], [DONE, DONE]),
    "the same twice": ([("drain_node", {"node": "n1"}), ("drain_node", {"node": "n1"})], [DONE, DONE]),
    "there and back and there again": (
        [("drain_node", {"node": "n1"}), ("undrain_node", {"node": "n1"}), ("drain_node", {"node": "n1"})],
        [DONE, SUPERSEDED, DONE],
    ),
    "exclude and include": (
        [("exclude_node", {"node": "n1"}), ("include_node", {"node": "n1"})],
        [SUPERSEDED, DONE],
    ),
    "weight and reset": (
        [("set_node", {"node": "n1", "weight": "3"}), ("reset_node", {"node": "n1"})],
        [SUPERSEDED, DONE],
    ),
    "one weight and another": (
        [("set_node", {"node": "n1", "weight": "3"}), ("set_node", {"node": "n1", "weight": "4", "zone": "a"})],
        [SUPERSEDED, DONE],
    ),
    "weight and zone": (
        [("set_node", {"node": "n1", "weight": "3"}), ("set_node", {"node": "n1", "zone": "a"})],
        [DONE, DONE],
    ),
    "pin and unpin": (
        [("pin_slots", {"slots": "3", "node": "n1"}), ("unpin_slots", {"slots": "2-4", "node": "n1"})],
        [SUPERSEDED, DONE],
    ),
    "partly unpinned": (
        [("pin_slots", {"slots": "3-4", "node": "n1"}), ("unpin_slots", {"slots": "4", "node": "n1"})],
        [DONE, DONE],
    ),
    "one field of the policy twice": (
        [("change_policy", {"replica_count": "1"}), ("change_policy", {"replica_count": "3"})],
        [SUPERSEDED, DONE],
    ),
    "a later one that is refused": (
        [("change_policy", {"replica_count": "3"}), ("change_policy", {"replica_count": "9"})],
        [DONE, REFUSED],
    ),
    "pause and resume": ([("pause_reconciliation", {}), ("resume_reconciliation", {})], [SUPERSEDED, DONE]),
}


@pytest.mark.parametrize("case", CASES)
def test_earlier_one_of_two_that_contradict_has_no_effect(case: str) -> None:
    """It is superseded, unless the later one cannot be done, or leaves some of it standing."""
    intents, expected = CASES[case]
    _, outcomes = asked_together(*intents)
    assert outcomes == expected


def test_superseded_intent_names_the_later_one() -> None:
    """Whoever asked can look up who decided otherwise."""
    world, _ = asked_together(("drain_node", {"node": "n1"}), ("undrain_node", {"node": "n1"}))
    assert world.answers()["i1"].detail == "the later intent i2 asks for something else"
    assert world.state.membership.nodes["n1"].status is NodeStatus.ACTIVE
    assert world.decisions[-1].epoch == world.decisions[-2].epoch


def test_across_decisions_the_later_one_wins() -> None:
    """What was done is done, and is undone by the next word."""
    world = World()
    world.admit("n1", "n2")
    assert world.ask("drain_node", node="n1").outcome is DONE
    assert world.ask("undrain_node", node="n1").outcome is DONE
    assert world.state.membership.nodes["n1"].status is NodeStatus.ACTIVE


def test_partly_contradicted_intent_has_its_effect_first() -> None:
    """What nobody speaks of again stays."""
    world, _ = asked_together(
        ("change_policy", {"replica_count": "1", "tolerance_percent": "7"}), ("change_policy", {"replica_count": "3"})
    )
    assert (world.state.cluster.policy.replica_count, world.state.cluster.policy.tolerance_percent) == (3, 7)
