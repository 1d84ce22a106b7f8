"""The values of ``controlplane table plan --with``: one supposed change each.

The forms of operators' requests are declared by their operations. The forms of nodes' changes are declared here.
"""

import re
import shlex
from collections.abc import Sequence
from typing import Final

from controlplane.cli.intent_commands.sending import new_intent
from controlplane.core.deciding.what_if import Change, NodeDies
from controlplane.core.intents.intent import TRUE
from controlplane.core.log.state import State
from controlplane.core.membership.inputs import NodeJoined, NodeLeaving
from controlplane.core.membership.node import NodeRole
from controlplane.core.operations.registry import OPERATIONS
from controlplane.core.operations.weights import parse_weight
from controlplane.errors import ConfigurationError

_SUPPOSABLE: Final = [operation for operation in OPERATIONS.values() if operation.supposition]
_SETTINGS: Final = "NAME=VALUE..."
_OPTION: Final = re.compile(r"\[(\w+)(=\w+)?\]")

GRAMMAR: Final = "\n".join(
    ["\b", "node NODE leaves | dies | joins [weight=WEIGHT] [zone=ZONE]", *(each.supposition for each in _SUPPOSABLE)]
)
"""The forms, for the command's help. SLOTS is written as 3,7-9."""


def parse_supposition(text: str, state: State, principal: str) -> Change:
    """The change that a value supposes. An intent is one of this principal.

    Raises:
        ConfigurationError: the value has none of the forms, which the message lists, or no cluster could carry it out.
    """
    try:
        words = shlex.split(text)
    except ValueError:
        words = []
    match words:
        case ["node", name, ("leaves" | "dies" | "joins") as what, *rest]:
            return _membership(text, state, name, what, rest)
        case _:
            for operation in _SUPPOSABLE:
                arguments = _arguments(operation.supposition, words)
                if arguments is not None:
                    return new_intent(operation.kind, arguments, principal)
            raise _not_understood(text)


def _arguments(form: str, words: Sequence[str]) -> dict[str, str] | None:
    """The arguments that words give to a form; None if they do not have that form.

    A form's words in capitals are arguments. ``[word]`` and ``[name=VALUE]`` are optional and come last, in any order.
    A form that would be incomplete without any of them needs one.
    """
    options = {match[1]: match[2] is not None for match in _OPTION.finditer(form)}
    fixed = [word for word in _OPTION.sub("", form).split() if word != _SETTINGS]
    if len(words) < len(fixed):
        return None
    arguments = {}
    for expected, word in zip(fixed, words, strict=False):
        if expected.isupper():
            arguments[expected.lower()] = word
        elif expected != word:
            return None
    rest = [word.partition("=") for word in words[len(fixed) :]]
    free = form.endswith(_SETTINGS)
    if any(not (free and equals) and options.get(name) != bool(equals) for name, equals, _ in rest):
        return None
    needs_one = free or any(options.values())
    if needs_one and not rest:
        return None
    return arguments | {name: value if equals else TRUE for name, equals, value in rest}


def _membership(text: str, state: State, name: str, what: str, rest: Sequence[str]) -> Change:
    node = state.membership.nodes.get(name)
    incarnation = node.incarnation if node else 0
    if what == "joins":
        settings = _arguments("[weight=WEIGHT] [zone=ZONE]", rest) if rest else {}
        if settings is None:
            raise _not_understood(text)
        weight = parse_weight(settings.get("weight", "1"))
        return NodeJoined(name, incarnation + 1, NodeRole.DATA, (), settings.get("zone", ""), weight, 0, "", 0)
    if rest:
        raise _not_understood(text)
    return NodeDies(name) if what == "dies" else NodeLeaving(name, incarnation, "supposed")


def _not_understood(text: str) -> ConfigurationError:
    forms = GRAMMAR.replace("\b\n", "")
    return ConfigurationError(f"--with {text!r:.80} is not understood; write one of\n{forms}")
