"""The names with which users write and try a slot policy: see ``docs/how-to/write-a-slot-policy.md``.

class Mine(SlotPolicy):
    name = "mine"
    def check_options(self, options): ...
    def plan(self, request): return SlotAnswer(...)

SLOT_POLICIES = (Mine(),)
"""

from typing import TYPE_CHECKING

from controlplane.core.cluster.policy import ClusterPolicy
from controlplane.core.slots.answers import Answered, ask
from controlplane.core.slots.minimal.contract import PlacementNode
from controlplane.core.slots.pins import Exclusion, Pin
from controlplane.core.slots.policy_contract import OrderKind, SlotAnswer, SlotBalance, SlotPolicy, SlotRequest
from controlplane.core.slots.reports import SlotReport, SlotStatus
from controlplane.core.slots.table import Slot
from controlplane.core.values.identifiers import Epoch
from controlplane.core.values.replica_status import ReplicaStatus
from controlplane.errors import MissingExtraError

if TYPE_CHECKING:
    from controlplane.bootstrap.slot_policies import load_slot_policies

__all__ = [
    "Answered",
    "ClusterPolicy",
    "Epoch",
    "Exclusion",
    "OrderKind",
    "Pin",
    "PlacementNode",
    "ReplicaStatus",
    "Slot",
    "SlotAnswer",
    "SlotBalance",
    "SlotPolicy",
    "SlotReport",
    "SlotRequest",
    "SlotStatus",
    "ask",
    "load_slot_policies",
]

if not TYPE_CHECKING:  # a type checker that saw this function would accept every name

    def __getattr__(name: str) -> object:
        """Import the built-in policies, which need the extra ``controller``, only for code that loads them."""
        if name != "load_slot_policies":
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        try:
            from controlplane.bootstrap import slot_policies
        except ModuleNotFoundError as error:
            if error.name != "numpy":
                raise
            raise MissingExtraError("controller", "loading slot policies beside the built-in ones") from error
        return slot_policies.load_slot_policies
