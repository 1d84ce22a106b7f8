"""What a node says of a replica that it holds, be it of a slot or of a bundle."""

from enum import Enum


class ReplicaStatus(Enum):
    """What a node says of one replica it holds (SOFARegistry's LeaderStatus, and its follower counterpart)."""

    HEALTHY = "healthy"
    """It holds all the data: a slot leader serves, a follower is in sync."""
    MIGRATING = "migrating"
    """It is still fetching."""
    UNHEALTHY = "unhealthy"
    """It cannot serve or follow."""
