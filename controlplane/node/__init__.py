"""The node agent: makes a process a member of the cluster, and notifies it of the slots and bundles that it owns.

with controlplane.node_agent("demo", "localhost:9092", "n1", callbacks=MyService()) as agent:
    agent.ownership(17)
"""

from controlplane.core.bundles.bundle import Bundle
from controlplane.core.bundles.reports import BundleLoad, ResourceUsage
from controlplane.core.membership.node import NodeRole
from controlplane.core.session.node_session import OnLogLoss, SessionSettings, SessionState
from controlplane.core.slots.reports import SlotLoad
from controlplane.core.values.identifiers import Epoch
from controlplane.node.agent import NodeAgent
from controlplane.node.callbacks import (
    Access,
    BundleOwnership,
    FencingToken,
    NodeCallbacks,
    Ownership,
    SlotChanged,
    SlotGained,
    SlotLost,
    SlotReleasing,
    TopicLoad,
)
from controlplane.node.caller_view import RoutedBy
from controlplane.node.description import NodeLoad
from controlplane.node.draining import Drained, DrainOutcome
from controlplane.node.handoff_settings import HandoffSettings
from controlplane.node.served_request import ServedBundleRequest, ServedSlotRequest
from controlplane.node.sofa_access import SofaSlotAccess

__all__ = [
    "Access",
    "Bundle",
    "BundleLoad",
    "BundleOwnership",
    "DrainOutcome",
    "Drained",
    "Epoch",
    "FencingToken",
    "HandoffSettings",
    "NodeAgent",
    "NodeCallbacks",
    "NodeLoad",
    "NodeRole",
    "OnLogLoss",
    "Ownership",
    "ResourceUsage",
    "RoutedBy",
    "ServedBundleRequest",
    "ServedSlotRequest",
    "SessionSettings",
    "SessionState",
    "SlotChanged",
    "SlotGained",
    "SlotLoad",
    "SlotLost",
    "SlotReleasing",
    "SofaSlotAccess",
    "TopicLoad",
]
