"""The row of the cluster in the routing table."""

from dataclasses import dataclass

from controlplane.core.cluster.policy import HashFunction, Policy
from controlplane.core.values.canonical import union_member


@union_member
@dataclass(frozen=True, slots=True)
class TableSettings:
    """What routers and nodes follow of the cluster's policy.

    Attributes:
        slot_count, replica_count, hash_function: what turns a key into a slot's holders.
        silence_limit_ms: when a node that is cut off from the log has to have stopped serving.
    """

    slot_count: int
    replica_count: int
    hash_function: HashFunction
    silence_limit_ms: int


def table_settings(policy: Policy) -> TableSettings:
    """The settings row of a cluster with this policy."""
    return TableSettings(policy.slot_count, policy.replica_count, policy.hash_function, policy.silence_limit_ms)
