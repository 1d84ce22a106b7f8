"""Raising the feature level: who has to support it, and that there is no way back."""

from dataclasses import replace
from typing import cast

import pytest

from controlplane.codec.decisions import encode_decision
from controlplane.codec.framing import default_framing
from controlplane.core.cluster.events import FeatureLevelRaised, TermOpened
from controlplane.core.cluster.policy import FEATURE_LEVEL
from controlplane.core.intents.events import IntentAnswered, IntentOutcome
from controlplane.core.intents.intent import IntentKind
from controlplane.core.operations import registry
from controlplane.core.operations.operation import Operation
from tests.helpers.logs import complaints_of
from tests.helpers.world import World

DONE, REFUSED = IntentOutcome.DONE, IntentOutcome.REFUSED


@pytest.fixture
def world() -> World:
    """A cluster that a release of the first level has created; its leader ticks, as ``c1``."""
    older = World(first_feature_level=1)
    older.admit("n1", "n2")
    return older


def ask(world: World, level: object, **more: str) -> IntentAnswered:
    """What the leader answers."""
    return world.ask(IntentKind.RAISE_FEATURE_LEVEL.value, level=str(level), **more)


def schemas_of(world: World) -> list[str]:
    """The schema of each decision."""
    records = [encode_decision(each)[0] for each in world.decisions]
    return [str(default_framing().unframe(record)[0].id) for record in records]


def test_before_it_is_raised_older_readers_can_read_everything(world: World) -> None:
    """Also what a newer leader writes, from its term's first decision on."""
    world.take_over(500)
    world.admit("n3")
    assert {each.feature_level for each in world.decisions} == {1}
    assert set(schemas_of(world)) == {"Decision.v1"}
    opened = [event for each in world.decisions for event in each.events if isinstance(event, TermOpened)]
    assert [(event.feature_level, dict(event.observed_from)) for event in opened] == [(1, {}), (1, {})]


def test_the_decision_that_raises_it_is_of_the_new_level(world: World) -> None:
    """So that an older reader stops right there, and not at something that it half understands."""
    answer = ask(world, FEATURE_LEVEL)
    assert (answer.outcome, world.decisions[-1].feature_level) == (DONE, FEATURE_LEVEL)
    assert world.decisions[-1].events[0] == FeatureLevelRaised(FEATURE_LEVEL)
    assert schemas_of(world)[-1] == "Decision.v2"
    world.take_over(500)
    (opened,) = (event for event in world.decisions[-1].events if isinstance(event, TermOpened))
    assert opened.feature_level == FEATURE_LEVEL
    assert opened.observed_from
    assert complaints_of(world.decisions) == []


def test_a_controller_that_ticks_has_to_be_named(world: World) -> None:
    """It could lead next: it would stop instead. Once it is gone for a while nobody has to speak for it."""
    world.run(1_000, ("n1", "n2"), ticking=("c1", "c2", "c3"))
    assert (ask(world, 2).outcome, ask(world, 2, upgraded="c2").outcome) == (REFUSED, REFUSED)
    assert "c2, c3 may not support feature level 2" in ask(world, 2).detail
    assert world.state.cluster.feature_level == 1
    world.run(2_000, ("n1", "n2"), ticking=("c1", "c2"))
    assert "c2, c3 may not" in ask(world, 2).detail
    world.run(4_000, ("n1", "n2"), ticking=("c1", "c2"))
    assert ask(world, 2, upgraded="c2").outcome is DONE


@pytest.mark.parametrize(
    ("level", "sentence"),
    [
        (FEATURE_LEVEL + 1, f"the leader supports feature level {FEATURE_LEVEL}, not {FEATURE_LEVEL + 1}"),
        ("two", "level is 'two', expected a whole number"),
        ("-1", "level is '-1', expected a whole number"),
        ("9" * 5_000, "expected a whole number"),  # more digits than Python reads
    ],
)
def test_a_level_that_nobody_supports_is_refused(world: World, level: object, sentence: str) -> None:
    """The leader would not understand its own log."""
    answer = ask(world, level)
    assert answer.outcome is REFUSED
    assert sentence in answer.detail


def test_it_is_never_lowered(world: World) -> None:
    """What was written stays; asking for what is there already is no fault."""
    ask(world, 2)
    assert (ask(world, 2).outcome, ask(world, 2).detail) == (DONE, "the log has feature level 2 already")
    answer = ask(world, 1)
    assert answer.outcome is REFUSED
    assert "cannot be lowered to 1" in answer.detail
    assert world.state.cluster.feature_level == 2


def test_rights_wait_for_the_level_that_has_them(world: World) -> None:
    """A policy that older controllers cannot read would stop them as a raised level does, without a word."""
    rights = {"intent_rights.ada": "*"}
    answer = world.ask("change_policy", **rights)
    assert answer.outcome is REFUSED
    assert "intent_rights need feature level 2, the log has 1" in answer.detail
    ask(world, 2)
    assert world.ask("change_policy", **rights).outcome is DONE


def test_an_operation_waits_for_its_feature_level(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its events might be unknown to older controllers, so a log of a lower level does not get them."""
    paused = registry.OPERATIONS[IntentKind.PAUSE_RECONCILIATION]
    by_name = cast("dict[str, Operation]", registry._BY_NAME)  # noqa: SLF001 - every operation is of level 1 so far
    monkeypatch.setitem(by_name, paused.kind.value, replace(paused, feature_level=2))
    answer = world.ask("pause_reconciliation")
    assert (answer.outcome, world.state.slots.paused) == (REFUSED, False)
    assert answer.detail.startswith("pause_reconciliation needs feature level 2, the log has 1: raise it first")
    ask(world, 2)
    assert world.ask("pause_reconciliation").outcome is DONE
