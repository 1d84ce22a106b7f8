"""The image of the cluster: the policy under which it decides, and the feature level of its log."""

from dataclasses import dataclass, field

from controlplane.core.cluster.policy import ClusterPolicy, FormerSilenceLimit


@dataclass(frozen=True, slots=True)
class ClusterImage:
    """The part of the state that is about the cluster as a whole.

    Attributes:
        policy: how the cluster decides.
        feature_level: the level of the log.
        former_silence_limit: a longer limit that still fences, after the policy's was shortened.
    """

    policy: ClusterPolicy = field(default_factory=ClusterPolicy)
    feature_level: int = 0
    former_silence_limit: FormerSilenceLimit | None = None

    @property
    def silence_limit_ms(self) -> int:
        """Log time without a heartbeat after which a node is fenced now."""
        former = self.former_silence_limit
        return max(self.policy.silence_limit_ms, former.limit_ms if former else 0)
