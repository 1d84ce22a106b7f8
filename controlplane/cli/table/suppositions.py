"""The little language of ``controlplane table plan --with``: what is supposed to happen, in one line each."""

import shlex
from collections.abc import Mapping, Sequence
from typing import Final

from controlplane.cli.operations.asking import new_intent
from controlplane.core.deciding.what_if import Change, NodeDies
from controlplane.core.intents.intent import TRUE, IntentKind
from controlplane.core.log.state import State
from controlplane.core.membership.inputs import NodeJoined, NodeLeaving
from controlplane.core.membership.node import NodeRole
from controlplane.errors import ConfigurationError

GRAMMAR: Final = """\
\b
node N leaves | dies | joins [weight=W] [zone=Z]
node N drains | undrains | excluded | included
node N weight=W | zone=Z ...
pin SLOTS N [leads]    unpin SLOTS N
exclude SLOTS N        include SLOTS N
policy NAME=VALUE ...
pause                  resume
"""
"""For the command's help; SLOTS is written as 3,7-9."""

_OF_NODES: Final[Mapping[str, IntentKind]] = {
    "drains": IntentKind.DRAIN_NODE,
    "undrains": IntentKind.UNDRAIN_NODE,
    "excluded": IntentKind.EXCLUDE_NODE,
    "included": IntentKind.INCLUDE_NODE,
}
_OF_SLOTS: Final[Mapping[str, IntentKind]] = {
    "pin": IntentKind.PIN_SLOTS,
    "unpin": IntentKind.UNPIN_SLOTS,
    "exclude": IntentKind.EXCLUDE_SLOTS,
    "include": IntentKind.INCLUDE_SLOTS,
}
_OF_THE_CLUSTER: Final[Mapping[str, IntentKind]] = {
    "pause": IntentKind.PAUSE_RECONCILIATION,
    "resume": IntentKind.RESUME_RECONCILIATION,
}


def parse_supposition(text: str, state: State, principal: str) -> Change:
    """What a line supposes, asked for by this principal.

    Raises:
        ConfigurationError: the line is not of the language; the message shows all of it.
    """
    try:
        words = shlex.split(text)
    except ValueError:
        words = []
    match words:
        case ["node", name, ("leaves" | "dies" | "joins") as what, *rest]:
            return _membership(text, state, name, what, _settings(text, rest))
        case ["node", name, what] if what in _OF_NODES:
            return new_intent(_OF_NODES[what], {"node": name}, principal)
        case ["node", name, _, *_]:
            return new_intent(IntentKind.SET_NODE, {"node": name, **_settings(text, words[2:])}, principal)
        case [what, slots, name] if what in _OF_SLOTS:
            return new_intent(_OF_SLOTS[what], {"slots": slots, "node": name}, principal)
        case ["pin", slots, name, "leads"]:
            return new_intent(IntentKind.PIN_SLOTS, {"slots": slots, "node": name, "leads": TRUE}, principal)
        case ["policy", _, *_]:
            return new_intent(IntentKind.CHANGE_POLICY, _settings(text, words[1:], known=None), principal)
        case [what] if what in _OF_THE_CLUSTER:
            return new_intent(_OF_THE_CLUSTER[what], {}, principal)
        case _:
            raise _not_of_the_language(text)


def _membership(text: str, state: State, name: str, what: str, settings: Mapping[str, str]) -> Change:
    node = state.membership.nodes.get(name)
    incarnation = node.incarnation if node else 0
    if what == "joins":
        weight = settings.get("weight", "1")
        if not (weight.isascii() and weight.isdigit()):
            raise _not_of_the_language(text)
        zone = settings.get("zone", "")
        return NodeJoined(name, incarnation + 1, NodeRole.DATA, (), zone, int(weight), 0, "", 0)
    if settings:
        raise _not_of_the_language(text)
    return NodeDies(name) if what == "dies" else NodeLeaving(name, incarnation, "supposed")


def _settings(text: str, words: Sequence[str], known: tuple[str, ...] | None = ("weight", "zone")) -> dict[str, str]:
    pairs = [word.partition("=") for word in words]
    if any(not equals or (known is not None and name not in known) for name, equals, _ in pairs):
        raise _not_of_the_language(text)
    return {name: value for name, _, value in pairs}


def _not_of_the_language(text: str) -> ConfigurationError:
    language = GRAMMAR.replace("\b\n", "")
    return ConfigurationError(f"--with {text!r:.80} is not understood; write one of\n{language}")
