"""The node agent: makes a process a member of the cluster and tells it what it owns.

with node_agent("demo", "localhost:9092", "n1", callbacks=MyService()) as agent:   # controlplane.bootstrap.members
    agent.ownership(17)
"""

from controlplane.core.session.node_session import OnLogLoss, SessionSettings, SessionState
from controlplane.node.agent import NodeAgent
from controlplane.node.callbacks import (
    Access,
    FencingToken,
    NodeCallbacks,
    Ownership,
    SlotChanged,
    SlotGained,
    SlotLost,
)
from controlplane.node.description import NodeDescription, NodeLoad

__all__ = [
    "Access",
    "FencingToken",
    "NodeAgent",
    "NodeCallbacks",
    "NodeDescription",
    "NodeLoad",
    "OnLogLoss",
    "Ownership",
    "SessionSettings",
    "SessionState",
    "SlotChanged",
    "SlotGained",
    "SlotLost",
]
