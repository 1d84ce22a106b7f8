"""Intents: the record that carries an operator's request, and the kinds of intents."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from controlplane.core.values.identifiers import IntentId

REASON: Final = "reason"
"""The argument that every intent may have: why the operator asks, for readers of the log."""

TRUE: Final = "true"
FALSE: Final = "false"
"""The two texts of a Boolean argument."""


class IntentKind(Enum):
    """The kind of an intent.

    The arguments, the effect and the other properties of a kind are declared by its
    :class:`~controlplane.core.operations.operation.Operation`.
    """

    CREATE_NAMESPACE = "create_namespace"
    DELETE_NAMESPACE = "delete_namespace"
    TRANSFER_BUNDLES = "transfer_bundles"
    UNLOAD_BUNDLES = "unload_bundles"
    SPLIT_BUNDLES = "split_bundles"
    SET_TENANT = "set_tenant"
    DELETE_TENANT = "delete_tenant"
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
    """An operator's request, answered in the decision log. Topic ``intents``, key ``intent_id``.

    Attributes:
        intent_id: unique. An id that was answered before is ignored.
        kind: the value of an :class:`IntentKind`. A kind that the leader does not know is answered "refused".
        principal: the name that the operator claims.
        arguments: texts by name, as the kind's operation declares them. Every kind takes ``reason``, which the answer
            repeats.
    """

    intent_id: IntentId
    kind: str
    principal: str
    arguments: Mapping[str, str] = field(default_factory=dict)
