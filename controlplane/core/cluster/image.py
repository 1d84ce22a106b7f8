"""The image of the cluster: its policy and the feature level of its log."""

from dataclasses import dataclass, field

from controlplane.core.cluster.policy import ClusterPolicy, FormerSilenceLimit
from controlplane.core.values.canonical import later
from controlplane.core.values.identifiers import ClusterName
from controlplane.core.values.image import Image


@dataclass(frozen=True)
class ClusterImage(Image):
    """The part of the state that concerns the cluster as a whole.

    Attributes:
        policy: the policy by which the controllers decide.
        feature_level: feature level of the log; 0 before the first term.
        former_silence_limit: the longer limit that is still in force after the policy's limit was shortened.
        name: the name of the cluster, by which tenants allow it; empty if the present term began at feature level 1.
    """

    policy: ClusterPolicy = field(default_factory=ClusterPolicy)
    feature_level: int = 0
    former_silence_limit: FormerSilenceLimit | None = None
    name: ClusterName = field(default="", metadata=later(since_level=2))

    @property
    def silence_limit_ms(self) -> int:
        """The silence limit in force: log time without a heartbeat after which a node is fenced."""
        former = self.former_silence_limit
        return max(self.policy.silence_limit_ms, former.limit_ms if former else 0)
