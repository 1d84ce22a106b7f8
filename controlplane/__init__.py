"""An event-sourced control plane over Kafka.

The names that programs import are those of this module and of the following ones:

controlplane                a node's agent, a routing client, and every error that they raise
controlplane.bundle_rules   the names with which users write a rule for bundles
controlplane.node           the callbacks and values of a node's agent
controlplane.routing        the answers of a routing client
controlplane.slot_policies  the names with which users write a slot policy
controlplane.testing        a cluster in memory, for tests of services that use this package

Everything else may change without notice.
"""

from typing import TYPE_CHECKING

from controlplane.errors import (
    ConfigurationError,
    ControlPlaneError,
    InvalidInputError,
    InvariantViolationError,
    LogContinuityError,
    LogUnavailableError,
    MissingExtraError,
    NoRouteError,
    NotAllowedError,
    PlacementRefusedError,
    PrerequisiteError,
    RetryableError,
    StopError,
    SupersededError,
    UnroutableError,
    UnsupportedFeatureLevelError,
    UserError,
)
from controlplane.version import __version__

if TYPE_CHECKING:
    from controlplane.bootstrap.members import node_agent, routing_client

__all__ = [
    "ConfigurationError",
    "ControlPlaneError",
    "InvalidInputError",
    "InvariantViolationError",
    "LogContinuityError",
    "LogUnavailableError",
    "MissingExtraError",
    "NoRouteError",
    "NotAllowedError",
    "PlacementRefusedError",
    "PrerequisiteError",
    "RetryableError",
    "StopError",
    "SupersededError",
    "UnroutableError",
    "UnsupportedFeatureLevelError",
    "UserError",
    "__version__",
    "node_agent",
    "routing_client",
]

if not TYPE_CHECKING:  # a type checker that saw this function would accept every name

    def __getattr__(name: str) -> object:
        """Import the modules that open Kafka clients at first use: a policy file or a command must not wait for it."""
        if name not in {"node_agent", "routing_client"}:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from controlplane.bootstrap import members

        return getattr(members, name)
