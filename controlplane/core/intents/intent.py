"""What operators ask for."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from controlplane.core.values.identifiers import IntentId

REASON: Final = "reason"
"""The argument that every intent may have: why it is asked, for people."""


TRUE: Final = "true"
"""How an intent's argument says yes."""


class IntentKind(Enum):
    """What an operator may ask for at this feature level."""

    CREATE_NAMESPACE = "create_namespace"
    """Arguments: ``namespace``."""
    OVERRIDE_SELF_PRESERVATION = "override_self_preservation"
    """Fence the silent nodes although evictions are frozen. No arguments."""
    DRAIN_NODE = "drain_node"
    """Relieve a node of what it holds. Arguments: ``node``."""
    UNDRAIN_NODE = "undrain_node"
    """Take an operator's drain back. Arguments: ``node``."""
    EXCLUDE_NODE = "exclude_node"
    """Assign nothing to the node of this name, across restarts. Arguments: ``node``."""
    INCLUDE_NODE = "include_node"
    """Take an exclusion back. Arguments: ``node``."""
    SET_NODE = "set_node"
    """Let a node count otherwise than it says. Arguments: ``node``, ``weight`` or ``zone`` or both."""
    RESET_NODE = "reset_node"
    """Let a node's own weight and zone count again. Arguments: ``node``."""
    PIN_SLOTS = "pin_slots"
    """Keep replicas on a node. Arguments: ``slots`` as in ``3,7-9``, ``node``, ``leads`` (``true``)."""
    UNPIN_SLOTS = "unpin_slots"
    """Take pins back. Arguments: ``slots``, ``node``."""
    EXCLUDE_SLOTS = "exclude_slots"
    """Forbid a node to hold slots. Arguments: ``slots``, ``node``."""
    INCLUDE_SLOTS = "include_slots"
    """Take such exclusions back. Arguments: ``slots``, ``node``."""
    REFRESH_TABLE = "refresh_table"
    """Plan at once and write every row of the routing table again. No arguments."""
    PAUSE_RECONCILIATION = "pause_reconciliation"
    """Move no slot; only take the dead out. No arguments."""
    RESUME_RECONCILIATION = "resume_reconciliation"
    """Take a pause back. No arguments."""
    CHANGE_POLICY = "change_policy"
    """Change the cluster's policy. Arguments: fields of the policy by name, with the new values."""
    RAISE_FEATURE_LEVEL = "raise_feature_level"
    """Let the log hold what older controllers cannot read. Arguments: ``level``, ``upgraded`` (controllers' names)."""
    RESIGN_LEADER = "resign_leader"
    """Hand leading over to another controller at once. Arguments: ``controller``, the one that is to resign."""
    TAKE_SNAPSHOT = "take_snapshot"
    """Write a snapshot of the state now. No arguments."""


@dataclass(frozen=True, slots=True)
class Intent:
    """An operator asks for something; the answer is in the log. Topic ``intents``, key ``intent_id``.

    Attributes:
        intent_id: unique; the same id never counts twice.
        kind: the name of what is asked; one that this feature level does not know is answered "refused".
        principal: who asks.
        arguments: by name, as the kind defines them; every kind takes ``reason``, which the answer repeats.
    """

    intent_id: IntentId
    kind: str
    principal: str
    arguments: Mapping[str, str] = field(default_factory=dict)
