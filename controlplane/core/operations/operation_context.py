"""The inputs of an operation beside the state that it changes."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from controlplane.core.slots.policy_contract import SlotPolicies
from controlplane.core.values.identifiers import ControllerId

Arguments: TypeAlias = Mapping[str, str]
"""The arguments of an intent, by name."""


@dataclass(frozen=True, slots=True)
class OperationContext:
    """The inputs of an operation beside the state.

    Attributes:
        policies: the slot policies that this controller knows, by name.
        now_ms: log time.
        heartbeats_offset: next offset of ``heartbeats`` partition 0, or ``UNDATED_OFFSET``; see ``dating_offset``.
        ticking: the controllers that write ticks.
    """

    policies: SlotPolicies
    now_ms: int
    heartbeats_offset: int
    ticking: frozenset[ControllerId]
