"""The status of a replica of a slot or a bundle."""

from enum import Enum


class ReplicaStatus(Enum):
    """The status that a node reports of a replica (SOFARegistry's LeaderStatus, and its counterpart for followers)."""

    HEALTHY = "healthy"
    """The replica has all data: a slot leader serves, a follower is in sync."""
    MIGRATING = "migrating"
    """The replica is still fetching its data."""
    UNHEALTHY = "unhealthy"
    """The replica can neither serve nor follow."""
