"""The image of the cluster: its policy and the feature level of its log."""

from dataclasses import dataclass, field

from controlplane.core.cluster.policy import (
    HEARTBEAT_INTERVAL_MS,
    SEVERAL_BROKERS_LEVEL,
    ClusterPolicy,
    FormerSilenceLimit,
)
from controlplane.core.values.canonical import later
from controlplane.core.values.identifiers import ClusterName, Epoch, Incarnation
from controlplane.core.values.image import Image


@dataclass(frozen=True)
class ClusterImage(Image):
    """The part of the state that concerns the cluster as a whole.

    Attributes:
        policy: the policy by which the controllers decide.
        feature_level: feature level of the log; 0 before the first term.
        former_silence_limit: the longer limit that is still in force after the policy's limit was shortened.
        limit_shortened_in: the table epoch that shows the shortened limit while the former one is in force, else 0; 0
            below feature level 3.
        incarnation_floor: the greatest incarnation of the nodes that were forgotten; 0 before, and below feature level
            3. A node that is not known joins with a greater one.
        name: the name of the cluster, by which tenants allow it; empty if the present term began at feature level 1.
    """

    policy: ClusterPolicy = field(default_factory=ClusterPolicy)
    feature_level: int = 0
    former_silence_limit: FormerSilenceLimit | None = None
    name: ClusterName = field(default="", metadata=later(since_level=2))
    limit_shortened_in: Epoch = field(default=Epoch(0), metadata=later(since_level=3))
    incarnation_floor: Incarnation = field(default=0, metadata=later(since_level=3))

    @property
    def silence_limit_ms(self) -> int:
        """The silence limit in force: log time without a heartbeat after which a node is fenced."""
        former = self.former_silence_limit
        return max(self.policy.silence_limit_ms, former.limit_ms if former else 0)

    @property
    def heartbeat_interval_ms(self) -> int:
        """The greatest interval between two heartbeats of a node that the silence limit in force allows."""
        return min(HEARTBEAT_INTERVAL_MS, self.silence_limit_ms // 2)

    @property
    def has_several_brokers_rules(self) -> bool:
        """Whether the rules of :data:`SEVERAL_BROKERS_LEVEL` apply."""
        return self.feature_level >= SEVERAL_BROKERS_LEVEL
