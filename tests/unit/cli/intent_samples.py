"""What is declared of a kind of intent, its frozen sample, and the sample that contradicts it."""

from enum import Enum
from functools import cache
from typing import NamedTuple

from controlplane.core.cluster.policy import FEATURE_LEVEL
from controlplane.core.intents.intent import Intent
from controlplane.core.operations import registry
from controlplane.core.operations.intent_conflicts import Goals, no_goals
from controlplane.core.operations.operation import Operation
from controlplane.core.values.events import FIRST_LEVEL
from tests.golden.frozen import RECORDS, decode, read_json

SLOTS = 16


class Frozen(NamedTuple):
    """An intent whose bytes are kept."""

    name: str
    intent: Intent
    records: list[bytes]


@cache
def frozen_intents() -> tuple[Frozen, ...]:
    """The intents of the frozen records."""
    found = []
    for case in read_json(RECORDS / "Intent.v1.json"):
        records = [bytes.fromhex(record) for record in case["records"]]
        intent = decode(records)
        assert isinstance(intent, Intent)
        found.append(Frozen(case["name"], intent, records))
    return tuple(found)


def operation_of(kind: Enum) -> Operation:
    """What is declared of a kind."""
    found = {each.value: operation for each, operation in registry.OPERATIONS.items()}.get(kind.value)
    assert found, f"declare the Operation of {kind.value} in a file of its subject in controlplane/core/operations/"
    return found


def level_of(kind: Enum) -> int:
    """The least feature level at which a kind is carried out."""
    level = operation_of(kind).feature_level
    assert FIRST_LEVEL <= level <= FEATURE_LEVEL, f"{kind.value} needs level {level}, see FEATURE_LEVEL in policy.py"
    return level


def sample_of(kind: Enum) -> Frozen:
    """The frozen intent of a kind; of several, the one with the most arguments."""
    found = [each for each in frozen_intents() if each.name.split()[0] == kind.value]
    assert found, (
        f"add an Intent of {kind.value} to tests/golden/samples/intents.py and run python -m tests.golden.rewrite"
    )
    return max(found, key=lambda each: len(each.intent.arguments))


def goals_of(intent: Intent) -> Goals:
    """What an intent is to achieve."""
    operation = registry.operation_named(intent.kind)
    return operation.goals(intent.arguments, SLOTS) if operation else Goals()


def opposite_of(kind: Enum) -> Intent | None:
    """A frozen intent that is to achieve the opposite; None for a kind that has no goals."""
    operation, values = operation_of(kind), goals_of(sample_of(kind).intent).values
    if operation.goals is no_goals:
        return None
    assert values, f"the goals of {kind.value} are empty: declare no_goals, or see intent_conflicts.py"
    for each in frozen_intents():
        others = goals_of(each.intent).values
        if all(subject in others and others[subject] != value for subject, value in values.items()):
            return each.intent
    raise AssertionError(f"no intent of tests/golden/samples/intents.py contradicts {kind.value}: add one")
