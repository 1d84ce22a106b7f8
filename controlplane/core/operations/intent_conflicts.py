"""Finds intents of one decision that contradict each other, from their goals and without carrying them out.

A goal is a subject with the value that it is to have afterwards: ``("drained", "n1")`` with ``True``. Two intents
conflict if their goals give one subject different values, or if one excludes a subject that the other sets.
"""

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from controlplane.core.intents.intent import REASON
from controlplane.core.operations.operation_context import Arguments
from controlplane.core.operations.slot_numbers import parse_slots
from controlplane.core.values.identifiers import IntentId, NodeId, SlotId
from controlplane.errors import ConfigurationError

_EXCLUDED: Final = object()
"""The value of a subject that an intent excludes: it differs from every value."""


@dataclass(frozen=True, slots=True)
class Goals:
    """The goals of an intent.

    Attributes:
        values: the value that each subject is to have afterwards.
        excluded: subjects that can have no value while these goals hold.
    """

    values: Mapping[Hashable, Hashable] = field(default_factory=dict)
    excluded: frozenset[Hashable] = frozenset()


GoalsOf: TypeAlias = Callable[[Arguments, int], Goals]
"""The goals of an intent by its arguments and the number of slots."""


def no_goals(_: Arguments, __: int) -> Goals:
    """The goals of an operation that cannot contradict another one."""
    return Goals()


def node_goal(what: str, *, value: bool) -> GoalsOf:
    """The goals of an intent that sets one value for its node."""
    return lambda arguments, _: Goals({(what, arguments.get("node", "")): value})


def cluster_goal(what: str, *, value: bool) -> GoalsOf:
    """The goals of an intent that sets one value for the whole cluster."""
    return lambda _, __: Goals({what: value})


def slot_goals(what: str, *, value: bool, excludes: str | None) -> GoalsOf:
    """The goals of an intent that sets one value for each pair of a slot and a node.

    ``excludes`` names the value that such a pair cannot have at the same time.
    """

    def goals(arguments: Arguments, slot_count: int) -> Goals:
        pairs = _pairs(arguments, slot_count)
        leads = arguments.get("leads", "")
        excluded = [] if excludes is None else [(excludes, *pair) for pair in pairs]
        return Goals({(what, *pair): (value, leads) for pair in pairs}, frozenset(excluded))

    return goals


def given_settings_of_node(arguments: Arguments, _: int) -> Goals:
    """The goals of an intent that sets the weight, the zone, or both for its node."""
    node = arguments.get("node", "")
    return Goals({(what, node): arguments[what] for what in ("weight", "zone") if what in arguments})


def no_settings_of_node(arguments: Arguments, _: int) -> Goals:
    """The goals of an intent that removes the weight and the zone set for its node."""
    node = arguments.get("node", "")
    return Goals({(what, node): None for what in ("weight", "zone")})


def policy_fields(arguments: Arguments, _: int) -> Goals:
    """The goals of an intent that sets fields of the policy."""
    return Goals({("policy", name): text for name, text in arguments.items() if name != REASON})


def contradicted(
    intents: Sequence[tuple[IntentId, Goals]], effective: Collection[IntentId]
) -> dict[IntentId, IntentId]:
    """The intents of which no goal remains, each with the last of the later intents that change its goals.

    Args:
        intents: ids and goals, in the order in which the intents would be carried out.
        effective: the intents that can change earlier goals, because they are not refused.
    """
    last: dict[Hashable, tuple[int, IntentId, object]] = {}
    for index, (intent_id, goals) in enumerate(intents):
        if intent_id in effective:
            last |= dict.fromkeys(goals.excluded, (index, intent_id, _EXCLUDED))
            last |= {subject: (index, intent_id, value) for subject, value in goals.values.items()}
    found = {}
    for index, (intent_id, goals) in enumerate(intents):
        ends = [
            last[subject][:2]
            for subject, value in goals.values.items()
            if subject in last and last[subject][0] > index and last[subject][2] != value
        ]
        if ends and len(ends) == len(goals.values):
            found[intent_id] = max(ends)[1]
    return found


def _pairs(arguments: Arguments, slot_count: int) -> list[tuple[SlotId, NodeId]]:
    try:
        slots = parse_slots(arguments.get("slots", ""), slot_count)
    except ConfigurationError:
        return []
    return [(slot_id, arguments.get("node", "")) for slot_id in slots]
