"""Every kind of intent, walked through all that it has to pass; what is missing of a new one is named here.

What is true of a kind is said by its ``Operation``. Kinds are not listed here: one that is added to ``IntentKind`` is
asked for at each of these places. The checks are in ``intent_checks.py``.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from enum import Enum
from typing import cast

import pytest

from controlplane.core.cluster.events import PolicyChanged
from controlplane.core.cluster.policy import FEATURE_LEVEL
from controlplane.core.intents.intent import Intent, IntentKind
from controlplane.core.log.draft import Draft
from controlplane.core.operations import registry
from controlplane.core.operations.answers import Answer, done
from controlplane.core.operations.operation import Operation
from controlplane.errors import ConfigurationError
from tests.helpers.commands import RunCommand
from tests.helpers.published_world import PublishedWorld
from tests.unit.cli.intent_checks import CHECKS, Walk, check_its_events_are_of_its_feature_level
from tests.unit.cli.intent_samples import Frozen, operation_of


def test_every_kind_is_declared_and_nothing_else() -> None:
    """In the order of ``IntentKind`` or any other, each once."""
    for kind in IntentKind:
        operation_of(kind)
    assert registry.OPERATIONS.keys() == set(IntentKind)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__.removeprefix("check_"))
@pytest.mark.parametrize("kind", IntentKind, ids=lambda kind: kind.value)
def test_every_kind_passes(
    kind: IntentKind, check: Callable[[Enum, Walk], None], cluster_command: RunCommand, world: PublishedWorld
) -> None:
    """See the checks."""
    check(kind, Walk(cluster_command, world))


class MadeUp(Enum):
    """A kind that nobody has declared."""

    FLY = "fly"


def missing_of(kind: Enum, walk: Walk) -> Iterator[str]:
    """What the checks say of a kind."""
    for check in CHECKS:
        try:
            check(kind, walk)
        except (AssertionError, ConfigurationError) as error:
            yield str(error)


def test_what_a_made_up_kind_lacks_is_named(
    cluster_command: RunCommand, world: PublishedWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """First its declaration, then its sample, then its command and its place in the reference."""
    walk = Walk(cluster_command, world)
    said = list(missing_of(MadeUp.FLY, walk))
    assert len(said) == len(CHECKS)
    assert any("declare the Operation of fly in a file of its subject" in each for each in said)
    assert any("'fly' is no kind of intent" in each for each in said)
    assert any("fly: run python docs/reference/generate_intents.py" in each for each in said)
    paused = registry.OPERATIONS[IntentKind.PAUSE_RECONCILIATION]
    fly, too_new = cast("IntentKind", MadeUp.FLY), FEATURE_LEVEL + 1
    declared = replace(paused, kind=fly, command="table fly", feature_level=too_new)
    monkeypatch.setitem(cast("dict[Enum, Operation]", registry.OPERATIONS), MadeUp.FLY, declared)
    monkeypatch.setitem(cast("dict[str, Operation]", registry._BY_NAME), "fly", declared)  # noqa: SLF001 - filled from it
    said = list(missing_of(MadeUp.FLY, walk))
    assert any("add an Intent of fly to tests/golden/samples/intents.py" in each for each in said)
    assert any(f"fly needs level {too_new}, see FEATURE_LEVEL" in each for each in said)
    sample = Frozen("fly", Intent("intent-fly", "fly", "ada", {}), [])
    monkeypatch.setattr("tests.unit.cli.intent_samples.frozen_intents", lambda: (sample,))
    said = list(missing_of(MadeUp.FLY, walk))
    assert any("'controlplane table fly' is no command that asks for fly" in each for each in said)
    assert any("no intent of tests/golden/samples/intents.py contradicts fly: add one" in each for each in said)


def test_an_intent_whose_events_need_a_later_level_is_named(
    cluster_command: RunCommand, world: PublishedWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The level is said twice, of the event and of the intent, and only the first one is seen in what is written."""

    def give_rights(draft: Draft, *_: object) -> Answer:
        draft.add(PolicyChanged(replace(draft.state.cluster.policy, intent_rights={"*": "*"}), None))
        return done("")

    pause = IntentKind.PAUSE_RECONCILIATION
    declared = replace(registry.OPERATIONS[pause], carry_out=give_rights)
    monkeypatch.setitem(cast("dict[Enum, Operation]", registry.OPERATIONS), pause, declared)
    monkeypatch.setitem(cast("dict[str, Operation]", registry._BY_NAME), pause.value, declared)  # noqa: SLF001 - as above
    with pytest.raises(AssertionError, match="is 1, its events need level 2"):
        check_its_events_are_of_its_feature_level(pause, Walk(cluster_command, world))
