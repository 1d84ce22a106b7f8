"""What every kind of intent has to pass: each check says what is missing of a kind."""

import re
from collections.abc import Callable
from enum import Enum
from typing import NamedTuple

import pytest

from controlplane.cli.table.suppositions import parse_supposition
from controlplane.codec.needed_level import needed_level
from controlplane.core.cluster.policy import ClusterPolicy
from controlplane.core.deciding.what_if import what_if
from controlplane.core.intents.events import IntentAnswered, IntentOutcome
from controlplane.core.intents.intent import REASON, Intent, IntentKind
from controlplane.core.intents.rights import check_kinds
from controlplane.core.operations.argument_checks import check_arguments
from controlplane.core.operations.arguments import any_text
from controlplane.core.operations.operation import Operation
from controlplane.core.values.canonical import later_levels
from controlplane.core.values.events import FIRST_LEVEL
from controlplane.errors import ConfigurationError
from controlplane.inspection.decisions import decision_documents, decision_rows
from controlplane.inspection.readers import LoggedDecision
from tests.golden.frozen import encode
from tests.helpers.commands import RunCommand
from tests.helpers.published_world import PublishedWorld
from tests.helpers.readme import ROOT
from tests.helpers.world import World
from tests.unit.cli.intent_samples import SLOTS, level_of, operation_of, opposite_of, sample_of
from tests.unit.cli.test_asking import sent_intents

DONE, REFUSED, SUPERSEDED = IntentOutcome.DONE, IntentOutcome.REFUSED, IntentOutcome.SUPERSEDED
WRONG_TEXTS = {
    "bundles": "A B",
    "by": "luck",
    "clusters": "eu,,us",
    "controller": "",
    "leads": "perhaps",
    "level": "two",
    "namespace": "A B",
    "node": "",
    "numbers": "many",
    "slots": "9-3",
    "tenant": "A B",
    "weight": "heavy",
}
"""By argument: a text that no cluster accepts. Arguments whose check is ``any_text`` have none."""


NAMESPACE = "kv"
"""The namespace that the samples name, with four bundles."""
CREATOR = "creator"
"""The principal that creates it."""


def world_for(kind: Enum, **policy: object) -> World:
    """A cluster of three nodes at the least feature level at which the kind is carried out.

    It has a namespace, unless the kind creates that.
    """
    needed = later_levels(ClusterPolicy)
    level = max(level_of(kind), *(needed.get(name, FIRST_LEVEL) for name in policy), FIRST_LEVEL)
    world = World(ClusterPolicy(**{"slot_count": SLOTS, **policy}), first_feature_level=level)  # type: ignore[arg-type]
    world.admit("n1", "n2", "n3")
    if kind is not IntentKind.CREATE_NAMESPACE:
        asks, world.principal = world.principal, CREATOR
        assert world.ask(IntentKind.CREATE_NAMESPACE.value, namespace=NAMESPACE, bundles="4").outcome is DONE
        world.principal = asks
    return world


def forms_of(command: str) -> list[str]:
    """The command, once for each alternative of an option: ``[--into N | --at M]`` is either of the two."""
    found = re.search(r"\[([^\]]* \| [^\]]*)\]", command)
    return [command.replace(found[0], f"[{each}]") for each in found[1].split(" | ")] if found else [command]


def filled(form: str, intent: Intent) -> list[str]:
    """The words of a command or a supposition with the arguments of an intent, options included."""
    words: list[str] = []
    for part in re.findall(r"\[[^\]]+\]|\S+", form):
        option = re.fullmatch(r"\[(\S*?)([ =]?)([A-Z]*)\]", part)
        if part == "NAME=VALUE...":
            words += [f"{name}={text}" for name, text in intent.arguments.items()]
        elif option and option[3]:
            text = intent.arguments[option[3].lower()]
            words += [option[1], text] if option[2] == " " else [f"{option[1]}={text}"]
        elif option:
            words.append(option[1])
        else:
            words.append(intent.arguments[part.lower()] if part.isupper() else part)
    return words


class Walk(NamedTuple):
    """What a check may use."""

    command: RunCommand
    world: PublishedWorld


def check_bytes_are_frozen(kind: Enum, _: Walk) -> None:
    """Its sample has every argument, and is written and read as it always was."""
    sample = sample_of(kind)
    missing = {each.name for each in operation_of(kind).arguments} - sample.intent.arguments.keys()
    assert not missing, f"the Intent of {kind.value} in tests/golden/samples/intents.py lacks {missing}"
    assert encode(sample.intent, 1_000_000) == sample.records


def check_rights(kind: Enum, _: Walk) -> None:
    """Rights can name it, and without the right to it an intent leads to no event but its answer."""
    check_kinds(ClusterPolicy(intent_rights={"ada": kind.value}))
    world = world_for(kind, intent_rights={"ada": kind.value, CREATOR: IntentKind.CREATE_NAMESPACE.value})
    arguments = sample_of(kind).intent.arguments
    world.principal = "mallory"
    answer = world.ask(kind.value, **arguments)
    assert (answer.outcome, "may not ask for" in answer.detail) == (REFUSED, True), answer
    assert [type(event) for event in world.decisions[-1].events] == [IntentAnswered]
    world.principal = "ada"
    assert world.ask(kind.value, **arguments).outcome is DONE


def check_wrong_arguments_are_refused(kind: Enum, _: Walk) -> None:
    """By the sender and by the leader, in words that name the argument."""
    operation, arguments = operation_of(kind), sample_of(kind).intent.arguments
    wrong: dict[str, dict[str, str]] = {} if operation.check_settings else {"colour": {**arguments, "colour": "red"}}
    for argument in operation.arguments:
        if argument.required:
            wrong[argument.name] = {name: text for name, text in arguments.items() if name != argument.name}
            refuse(operation, argument.name, wrong[argument.name])
        if argument.check is not any_text:
            known = argument.name in WRONG_TEXTS
            assert known, f"add a wrong text of {kind.value}'s argument {argument.name} to WRONG_TEXTS"
            wrong[argument.name] = {**arguments, argument.name: WRONG_TEXTS[argument.name]}
    if operation.check_settings:
        wrong["no_such_name"] = {"no_such_name": "1"}
    for name, given in wrong.items():
        refuse(operation, name, given)


def refuse(operation: Operation, name: str, arguments: dict[str, str]) -> None:
    """Neither sender nor leader takes such arguments, and both name the wrong one."""
    with pytest.raises(ConfigurationError, match=name):
        check_arguments(operation.kind, arguments)
    answer = world_for(operation.kind).ask(operation.kind.value, **arguments)
    assert (answer.outcome, name in answer.detail) == (REFUSED, True), answer


def check_it_is_decided(kind: Enum, _: Walk) -> None:
    """It is done and answered, with the reason that was given; what-if foretells the same events."""
    world, arguments, opposite = world_for(kind), sample_of(kind).intent.arguments, opposite_of(kind)
    if opposite is not None:
        assert world.ask(opposite.kind, **opposite.arguments).outcome is DONE
    before = world.state
    intent = Intent("supposed", kind.value, world.principal, {**arguments, REASON: "test"})
    draft, refusals = what_if(world.state, world.observations, [intent])
    answer = world.ask(kind.value, **intent.arguments)
    assert (answer.kind, answer.principal, answer.outcome) == (kind.value, "tester", DONE), answer
    assert answer.detail.endswith("(reason given: test)")
    assert refusals == ()
    events = world.decisions[-1].events
    assert {type(event) for event in events} == {type(event) for event in draft.events}
    if opposite is not None:
        changing = [event for event in events if not isinstance(event, IntentAnswered)]
        assert changing, f"{kind.value} changes nothing although its opposite stood before"
        assert before.digest() != world.state.digest()


def check_a_contradiction_supersedes_it(kind: Enum, _: Walk) -> None:
    """The opposite, later in the same decision, leaves nothing of it to do."""
    opposite = opposite_of(kind)
    if opposite is None:
        return
    world = world_for(kind)
    world.intent("first", kind.value, **sample_of(kind).intent.arguments)
    world.intent("second", opposite.kind, **opposite.arguments)
    world.run(100)
    outcomes = {name: answer.outcome for name, answer in world.answers().items()}
    assert (outcomes["first"], outcomes["second"]) == (SUPERSEDED, DONE)


def check_the_same_id_counts_once(kind: Enum, _: Walk) -> None:
    """Sent twice at once, and once more after its answer."""
    world, arguments = world_for(kind), sample_of(kind).intent.arguments
    for _attempt in range(2):
        world.intent("same", kind.value, **arguments)
    world.run(300)  # the steps that follow from it are taken
    answered, seq = world.answers()["same"], world.state.seq
    world.intent("same", kind.value, **arguments)
    world.run(100)
    events = [event for decision in world.decisions for event in decision.events if isinstance(event, IntentAnswered)]
    assert ([event for event in events if event.intent_id == "same"], world.state.seq) == ([answered], seq)


def check_log_show_tells_it(kind: Enum, _: Walk) -> None:
    """With its kind, its principal and its answer, for people and for programs."""
    world = world_for(kind)
    answer = world.ask(kind.value, **sample_of(kind).intent.arguments)
    logged = LoggedDecision(world.decisions[-1], 0, 0)
    (row,), (document,) = decision_rows([logged]), decision_documents([logged])
    assert row["answers"] == [f"{kind.value} by tester: done: {answer.detail}"]
    events = document["events"]
    assert isinstance(events, list)
    assert kind.value in [event.get("kind") for event in events if isinstance(event, dict)]


def check_its_command_sends_it(kind: Enum, walk: Walk) -> None:
    """The command that the operation declares, filled in, sends the sample's arguments."""
    intent = sample_of(kind).intent
    walk.world.admit("n1")
    forms = [filled(form, intent) for form in forms_of(operation_of(kind).command)]
    ran = [walk.command(*words, "--wait", "0") for words in forms]
    tried = " or ".join(f"'controlplane {' '.join(words)}'" for words in forms)
    said = "".join(each.err for each in ran)
    assert 0 in [each.status for each in ran], f"{tried} is no command that asks for {kind.value}: {said}"
    assert [(each.kind, each.arguments) for each in sent_intents(walk.world)] == [(kind.value, intent.arguments)]


def check_its_supposition_is_understood(kind: Enum, _: Walk) -> None:
    """The line of ``table plan --with``, if it has one, supposes the sample."""
    operation, intent = operation_of(kind), sample_of(kind).intent
    if operation.supposition:
        supposed = parse_supposition(" ".join(filled(operation.supposition, intent)), World().state, "ada")
        assert isinstance(supposed, Intent)
        assert (supposed.kind, supposed.arguments) == (kind.value, intent.arguments)


def check_its_feature_level_is_kept(kind: Enum, _: Walk) -> None:
    """This code supports its level, and a log of a lower one does not have it done."""
    level = level_of(kind)
    if level > FIRST_LEVEL:
        world = World(first_feature_level=level - 1)
        world.admit("n1", "n2", "n3")
        answer = world.ask(kind.value, **sample_of(kind).intent.arguments)
        assert (answer.outcome, f"needs feature level {level}" in answer.detail) == (REFUSED, True)


def check_its_events_are_of_its_feature_level(kind: Enum, _: Walk) -> None:
    """No log of the level lacks what they need: otherwise every leader of an older log would stop at such an intent."""
    level, world = level_of(kind), world_for(kind)
    world.ask(kind.value, **sample_of(kind).intent.arguments)
    decision = world.decisions[-1]
    needed = needed_level(decision)
    assert needed <= decision.feature_level, f"feature_level of {kind.value} is {level}, its events need level {needed}"


def check_the_reference_has_it(kind: Enum, _: Walk) -> None:
    """``docs/reference/intents.md`` is drawn from the declarations."""
    page = (ROOT / "docs" / "reference" / "intents.md").read_text(encoding="utf-8")
    assert f"\n## {kind.value}\n" in page, f"{kind.value}: run python docs/reference/generate_intents.py"


CHECKS: tuple[Callable[[Enum, Walk], None], ...] = (
    check_bytes_are_frozen,
    check_rights,
    check_wrong_arguments_are_refused,
    check_it_is_decided,
    check_a_contradiction_supersedes_it,
    check_the_same_id_counts_once,
    check_log_show_tells_it,
    check_its_command_sends_it,
    check_its_supposition_is_understood,
    check_its_feature_level_is_kept,
    check_its_events_are_of_its_feature_level,
    check_the_reference_has_it,
)
