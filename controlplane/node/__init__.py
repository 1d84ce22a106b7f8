"""The node agent: makes a process a member of the cluster and tells it what it owns.

with node_agent("demo", "localhost:9092", "n1", callbacks=MyService()) as agent:   # controlplane.bootstrap.members
    agent.ownership(17)
"""

from controlplane.core.node_session import OnLogLoss, SessionSettings
from controlplane.node.agent import NodeAgent
from controlplane.node.callbacks import NodeCallbacks
from controlplane.node.description import NodeDescription, NodeLoad
from controlplane.node.metrics import NodeMetrics
from controlplane.node.ownership import Access, Ownership, SlotGained, SlotLost

__all__ = [
    "Access",
    "NodeAgent",
    "NodeCallbacks",
    "NodeDescription",
    "NodeLoad",
    "NodeMetrics",
    "OnLogLoss",
    "Ownership",
    "SessionSettings",
    "SlotGained",
    "SlotLost",
]
