"""An event-sourced control plane over Kafka.

What programs import is named here and in three modules:

controlplane                a node's agent, a routing client, and every error that they raise
controlplane.node           what an agent tells a node, and what the node tells the agent
controlplane.routing        what a routing client answers
controlplane.slot_policies  what a slot policy of one's own is written with

Everything else may change without notice.
"""

from typing import TYPE_CHECKING

from controlplane.errors import (
    ConfigurationError,
    ControlPlaneError,
    FencedError,
    InvariantViolationError,
    LogContinuityError,
    LogUnavailableError,
    MissingExtraError,
    NoRouteError,
    NotAllowedError,
    PlacementRefusedError,
    RetryableError,
    StopError,
    UnsupportedFeatureLevelError,
    UserError,
)
from controlplane.version import __version__

if TYPE_CHECKING:
    from controlplane.bootstrap.members import node_agent, routing_client

__all__ = [
    "ConfigurationError",
    "ControlPlaneError",
    "FencedError",
    "InvariantViolationError",
    "LogContinuityError",
    "LogUnavailableError",
    "MissingExtraError",
    "NoRouteError",
    "NotAllowedError",
    "PlacementRefusedError",
    "RetryableError",
    "StopError",
    "UnsupportedFeatureLevelError",
    "UserError",
    "__version__",
    "node_agent",
    "routing_client",
]

if not TYPE_CHECKING:  # a type checker that saw this function would believe every name

    def __getattr__(name: str) -> object:
        """Import what opens Kafka clients at its first use: a policy file or a command must not wait for it."""
        if name not in {"node_agent", "routing_client"}:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from controlplane.bootstrap import members

        return getattr(members, name)
