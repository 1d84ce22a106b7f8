"""What of an operator's arguments is wrong in every state of a cluster: asked before anything is sent, and again after.

Whoever sends an intent refuses such a one at once, so that what cannot be meant does not stand in the log for ever.
What depends on the state, for example how many slots there are, is the leader's to judge.
"""

import re
from collections.abc import Mapping
from typing import Final

from controlplane.core.cluster.policy import MAX_SLOT_COUNT, Policy
from controlplane.core.intents.intent import REASON, IntentKind
from controlplane.core.operations.policy_operations import changed_policy
from controlplane.core.operations.slot_numbers import parse_slots
from controlplane.core.operations.weights import parse_weight
from controlplane.errors import ConfigurationError

_NEVER_EMPTY: Final = ("namespace", "node", "slots", "controller")
_NAMESPACE_NAME: Final = re.compile(r"[a-z0-9][a-z0-9._-]{0,126}\Z")


def check_arguments(kind: IntentKind, arguments: Mapping[str, str]) -> None:
    """Refuse what no cluster could ever carry out.

    Raises:
        ConfigurationError: an argument is empty, badly written, or outside of what is ever allowed.
    """
    for name in _NEVER_EMPTY:
        if arguments.get(name) == "":
            raise ConfigurationError(f"the {name} must not be empty")
    if "namespace" in arguments:
        check_namespace_name(arguments["namespace"])
    if "slots" in arguments:
        parse_slots(arguments["slots"], MAX_SLOT_COUNT)
    if "weight" in arguments:
        parse_weight(arguments["weight"])
    if kind is IntentKind.CHANGE_POLICY:
        # Names, types and ranges are those of every policy, whichever one is changed: the default one stands for it.
        changed_policy(Policy(), {name: text for name, text in arguments.items() if name != REASON})


def check_namespace_name(name: str) -> None:
    """Refuse a name that no namespace can bear.

    Raises:
        ConfigurationError: it is too long, or has a character that is not allowed.
    """
    if not _NAMESPACE_NAME.match(name):
        raise ConfigurationError(
            f"namespace {name!r:.140}: take 1 to 127 of a-z, 0-9, '.', '_' and '-', beginning with a letter or digit"
        )
