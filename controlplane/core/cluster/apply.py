"""Applying events to the image of the cluster."""

from dataclasses import replace
from typing import assert_never

from controlplane.core.cluster.events import (
    ClusterCreated,
    ClusterEvent,
    FeatureLevelRaised,
    FormerSilenceLimitEnded,
    PolicyChanged,
    TermOpened,
)
from controlplane.core.cluster.image import ClusterImage
from controlplane.errors import InvariantViolationError


def apply_cluster_event(cluster: ClusterImage, event: ClusterEvent) -> ClusterImage:
    """The image after one event.

    Raises:
        InvariantViolationError: the event does not raise the feature level.
    """
    match event:
        case ClusterCreated(policy=policy):
            return replace(cluster, policy=policy)
        case TermOpened(policy=policy, feature_level=feature_level, cluster=name):
            return replace(cluster, policy=policy, feature_level=feature_level, name=name)
        case PolicyChanged(policy=policy, former_silence_limit=former):
            return replace(cluster, policy=policy, former_silence_limit=former)
        case FormerSilenceLimitEnded():
            return replace(cluster, former_silence_limit=None)
        case FeatureLevelRaised(feature_level=feature_level):
            if feature_level <= cluster.feature_level:
                raise InvariantViolationError(
                    f"the log's feature level is {cluster.feature_level}, and {feature_level} does not raise it"
                )
            return replace(cluster, feature_level=feature_level)
        case _:
            assert_never(event)
