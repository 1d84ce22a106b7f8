"""The declaration of a kind of intent: one :class:`Operation`, beside the function that carries it out."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from controlplane.core.intents.intent import IntentKind
from controlplane.core.log.draft import Draft
from controlplane.core.operations.answers import Answer
from controlplane.core.operations.arguments import Argument
from controlplane.core.operations.intent_conflicts import GoalsOf
from controlplane.core.operations.operation_context import Arguments, OperationContext


class Turn(Enum):
    """When an operation takes effect within its decision, and so which rights apply. The value says it in words."""

    IN_ORDER = "after the intents before it, by the rights that they leave"
    BEFORE_EXPIRY = "before silent nodes are fenced, hence before every other intent, by the rights before the decision"


CarryOut: TypeAlias = Callable[[Draft, Arguments, OperationContext], Answer]
"""Adds the events of an operation to the draft and returns the answer. A refused operation adds none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """A kind of intent. Every field is required, so that a new kind is declared completely.

    Attributes:
        kind: the kind; the right to ask for it has the same name.
        summary: what it does: a sentence for the reference.
        carry_out: its effect and its answer.
        arguments: the arguments of an intent of this kind, beside ``reason``, which every kind may have.
        check_settings: the check of all further arguments, if their names are free; None if there are no others. Raises
            :class:`~controlplane.errors.ConfigurationError` for what no cluster could accept.
        goals: the goals of an intent, by which contradictions between intents are found.
        turn: when it takes effect within its decision.
        feature_level: the least feature level of the log at which it is carried out.
        command: the command that asks for it, without ``controlplane``: arguments in capitals, options in brackets.
        supposition: the line of ``controlplane table plan --with`` that supposes it, in the same notation; empty if it
            changes nothing that could be planned.
    """

    kind: IntentKind
    summary: str
    carry_out: CarryOut
    arguments: tuple[Argument, ...]
    check_settings: Callable[[Mapping[str, str]], object] | None
    goals: GoalsOf
    turn: Turn
    feature_level: int
    command: str
    supposition: str
