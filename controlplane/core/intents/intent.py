"""Intents: the record in which an operator asks for something, and the kinds that there are."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from controlplane.core.values.identifiers import IntentId

REASON: Final = "reason"
"""The argument that every intent may have: why it is asked, for people."""

TRUE: Final = "true"
FALSE: Final = "false"
"""The texts of an argument that says yes or no."""


class IntentKind(Enum):
    """What an operator may ask for.

    The arguments, the effect and everything else of a kind are declared by its
    :class:`~controlplane.core.operations.operation.Operation`.
    """

    CREATE_NAMESPACE = "create_namespace"
    OVERRIDE_SELF_PRESERVATION = "override_self_preservation"
    DRAIN_NODE = "drain_node"
    UNDRAIN_NODE = "undrain_node"
    EXCLUDE_NODE = "exclude_node"
    INCLUDE_NODE = "include_node"
    SET_NODE = "set_node"
    RESET_NODE = "reset_node"
    PIN_SLOTS = "pin_slots"
    UNPIN_SLOTS = "unpin_slots"
    EXCLUDE_SLOTS = "exclude_slots"
    INCLUDE_SLOTS = "include_slots"
    REFRESH_TABLE = "refresh_table"
    PAUSE_RECONCILIATION = "pause_reconciliation"
    RESUME_RECONCILIATION = "resume_reconciliation"
    CHANGE_POLICY = "change_policy"
    RAISE_FEATURE_LEVEL = "raise_feature_level"
    RESIGN_LEADER = "resign_leader"
    TAKE_SNAPSHOT = "take_snapshot"


@dataclass(frozen=True, slots=True)
class Intent:
    """What an operator asks for; the answer is in the log. Topic ``intents``, key ``intent_id``.

    Attributes:
        intent_id: unique; the same id never counts twice.
        kind: the value of an :class:`IntentKind`; a kind that the leader does not know is answered "refused".
        principal: the operator's name.
        arguments: by name, as the kind's operation declares them; every kind takes ``reason``, repeated by the answer.
    """

    intent_id: IntentId
    kind: str
    principal: str
    arguments: Mapping[str, str] = field(default_factory=dict)
