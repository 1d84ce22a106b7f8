"""Who may ask for what: the policy's rights, and the answer that everybody else gets."""

import re
from dataclasses import replace

import pytest

from controlplane.core.cluster.policy import ClusterPolicy
from controlplane.core.intents.events import IntentAnswered, IntentOutcome
from controlplane.core.intents.intent import IntentKind
from controlplane.core.intents.rights import check_rights, may_ask
from controlplane.errors import ConfigurationError
from tests.helpers.logs import complaints_of, resealed
from tests.helpers.states import with_image
from tests.helpers.world import World

DONE, REFUSED = IntentOutcome.DONE, IntentOutcome.REFUSED
RIGHTS = {"ada": "*", "ops-*": "drain_node, undrain_node", "ops-night": "pause_reconciliation"}


def ruled_world(**rights: str) -> World:
    """Three nodes, and these rights."""
    world = World(ClusterPolicy(slot_count=16, intent_rights=rights or RIGHTS))
    world.admit("n1", "n2", "n3")
    return world


def ask(world: World, principal: str, kind: str, **arguments: str) -> IntentAnswered:
    """What this principal is answered."""
    world.principal = principal
    return world.ask(kind, **arguments)


@pytest.mark.parametrize(
    ("principal", "kind", "allowed"),
    [
        ("ada", "change_policy", True),
        ("ops-day", "drain_node", True),
        ("ops-day", "pause_reconciliation", False),
        ("ops-night", "pause_reconciliation", True),
        ("ops-night", "undrain_node", True),
        ("OPS-day", "drain_node", False),
        ("ad", "drain_node", False),
        ("", "drain_node", False),
    ],
)
def test_every_pattern_that_fits_allows(principal: str, kind: str, *, allowed: bool) -> None:
    """Patterns add up; letters count as they are written; nobody is somebody else by a part of his name."""
    assert may_ask(ClusterPolicy(intent_rights=RIGHTS), principal, kind) is allowed


@pytest.mark.parametrize("kind", IntentKind)
def test_without_rights_everybody_may_ask_for_everything(kind: IntentKind) -> None:
    """A cluster of which nobody has said anything goes on as before, also for producers that name nobody."""
    assert may_ask(ClusterPolicy(), "anybody", kind.value)
    assert may_ask(ClusterPolicy(), "", kind.value)


def test_an_intent_without_the_right_has_no_effect_and_an_answer() -> None:
    """The answer names the principal, what it asked for, and who may: in the log, for everybody to see."""
    world = ruled_world()
    before = world.state
    answer = ask(world, "bob", "drain_node", node="n1")
    assert (answer.outcome, answer.principal) == (REFUSED, "bob")
    assert answer.detail == (
        "principal 'bob' may not ask for drain_node: by the policy's intent_rights 'ada', 'ops-*' may"
    )
    assert world.state.membership.nodes == before.membership.nodes
    assert ask(world, "ops-1", "drain_node", node="n1").outcome is DONE
    assert "an intent without a principal may not" in ask(world, "", "refresh_table").detail


def test_rights_are_changed_by_an_intent_and_count_from_the_next_one_on() -> None:
    """Also within one decision: the log's order is the order of what was asked."""
    world = ruled_world()
    world.principal = "ada"
    world.intent("give", "change_policy", **{"intent_rights.bob": "refresh_table", "intent_rights.ops-*": ""})
    world.principal = "bob"
    world.intent("use", "refresh_table")
    world.principal = "ops-1"
    world.intent("late", "drain_node", node="n1")
    world.tick()
    world.decide()
    assert {name: answer.outcome for name, answer in world.answers().items()} == {
        "give": DONE,
        "use": DONE,
        "late": REFUSED,
    }
    assert world.answers()["give"].detail.startswith("intent_rights {ada=*, ops-*=drain_node, undrain_node")
    assert world.state.cluster.policy.intent_rights == {
        "ada": "*",
        "ops-night": "pause_reconciliation",
        "bob": "refresh_table",
    }
    assert complaints_of(world.decisions) == []


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"intent_rights.ada": ""}, "nobody could change the policy any more"),
        (
            {"intent_rights.bob": "fly"},
            "intent_rights.bob: 'fly' is no kind of intent; known are \\*, create_namespace",
        ),
        ({"intent_rights.bob": " "}, "write intent_rights.PATTERN=KIND"),
        ({"intent_rights": "ada"}, "the policy has no field 'intent_rights'; it has .*intent_rights.PATTERN"),
    ],
)
def test_rights_that_help_nobody_are_refused(settings: dict[str, str], sentence: str) -> None:
    """A cluster that nobody can operate any more could only be thrown away."""
    world = ruled_world(ada="change_policy", bob="drain_node")
    answer = ask(world, "ada", "change_policy", **settings)
    assert answer.outcome is REFUSED
    assert re.search(sentence, answer.detail)


def test_rights_wait_for_the_feature_level_at_which_everybody_looks_at_them() -> None:
    """A standby of the old code would take over and carry out what nobody may ask for."""
    world = World(ClusterPolicy(slot_count=16))
    world.state = with_image(world.state, "cluster", feature_level=1)
    refused = world.ask("change_policy", **{"intent_rights.ada": "*"})
    assert refused.outcome is REFUSED
    assert refused.detail.startswith("intent_rights need feature level 2, the log has 1: raise it first")
    assert world.ask("change_policy", tolerance_percent="3").outcome is DONE


def test_a_first_policy_that_nobody_could_change_is_refused() -> None:
    """The same for a cluster that is only being created."""
    with pytest.raises(ConfigurationError, match="nobody could change the policy"):
        check_rights(ClusterPolicy(intent_rights={"bob": "drain_node"}))
    check_rights(ClusterPolicy(intent_rights={"bob": "drain_node,change_policy"}))


def test_an_override_needs_its_right_before_anybody_is_fenced() -> None:
    """Silence is looked at before the intents: a refused override must not have fenced anybody."""
    world = ruled_world(ada="*", bob="drain_node")
    world.run(6_000)
    assert world.state.membership.evictions_frozen
    living = {name for name, node in world.state.membership.nodes.items() if node.lives}
    refused = ask(world, "bob", "override_self_preservation")
    assert refused.outcome is REFUSED
    assert {name for name, node in world.state.membership.nodes.items() if node.lives} == living != set()
    assert ask(world, "ada", "override_self_preservation").outcome is DONE
    assert not any(node.lives for node in world.state.membership.nodes.values())


def test_an_override_counts_by_the_rights_before_its_decision() -> None:
    """It works before the other intents of its decision, so it is answered by the rights that it worked by."""
    world = ruled_world(ada="*", bob="override_self_preservation")
    world.run(6_000)
    world.principal = "ada"
    world.intent("take", "change_policy", **{"intent_rights.bob": ""})
    world.principal = "bob"
    world.intent("override", "override_self_preservation")
    world.tick()
    world.decide()
    assert world.answers()["override"].outcome is DONE
    assert not any(node.lives for node in world.state.membership.nodes.values())
    assert complaints_of(world.decisions) == []


def test_whoever_may_not_ask_supersedes_nobody() -> None:
    """Else anybody could undo an order by asking for its contrary along with it."""
    world = ruled_world()
    world.principal = "ops-1"
    world.intent("rightful", "drain_node", node="n1")
    world.principal = "bob"
    world.intent("not", "undrain_node", node="n1")
    world.tick()
    world.decide()
    assert {name: answer.outcome for name, answer in world.answers().items()} == {"rightful": DONE, "not": REFUSED}


def test_a_log_in_which_somebody_got_what_he_had_no_right_to_is_complained_of() -> None:
    """A leader that does not look at rights is found out by the log alone."""
    world = ruled_world()
    ask(world, "ops-1", "drain_node", node="n1")
    assert complaints_of(world.decisions) == []
    forged = [
        replace(
            decision,
            events=tuple(
                replace(event, principal="bob") if isinstance(event, IntentAnswered) else event
                for event in decision.events
            ),
        )
        for decision in world.decisions
    ]
    (complaint,) = complaints_of(resealed(forged))
    assert complaint.endswith("is done, and 'bob' had no right to ask for drain_node")
