"""Applying events to the image of the cluster."""

from dataclasses import replace
from typing import assert_never

from controlplane.core.cluster.events import (
    ClusterCreated,
    ClusterEvent,
    FeatureLevelRaised,
    FormerSilenceLimitEnded,
    NodesForgotten,
    PolicyChanged,
    TermOpened,
)
from controlplane.core.cluster.image import ClusterImage
from controlplane.core.values.identifiers import Epoch
from controlplane.errors import InvariantViolationError


def apply_cluster_event(cluster: ClusterImage, event: ClusterEvent, epoch: Epoch) -> ClusterImage:
    """The image after one event of a decision; ``epoch`` is that of the table before the decision.

    Raises:
        InvariantViolationError: the event does not raise the feature level, or lowers the floor of incarnations.
    """
    match event:
        case ClusterCreated(policy=policy):
            return replace(cluster, policy=policy)
        case TermOpened(policy=policy, feature_level=feature_level, cluster=name):
            return replace(cluster, policy=policy, feature_level=feature_level, name=name)
        case PolicyChanged(policy=policy, former_silence_limit=former):
            changed = replace(cluster, policy=policy, former_silence_limit=former)
            # Another limit changes the row of the settings, and so the epoch.
            is_other_limit = policy.silence_limit_ms != cluster.policy.silence_limit_ms
            return _dated(changed, Epoch(epoch + 1)) if is_other_limit else changed
        case FormerSilenceLimitEnded():
            return replace(cluster, former_silence_limit=None, limit_shortened_in=Epoch(0))
        case FeatureLevelRaised(feature_level=feature_level):
            if feature_level <= cluster.feature_level:
                raise InvariantViolationError(
                    f"the log's feature level is {cluster.feature_level}, and {feature_level} does not raise it"
                )
            # Rows of another version are written, and so a limit that this same decision has shortened.
            return _dated(replace(cluster, feature_level=feature_level), Epoch(epoch + 1))
        case NodesForgotten(incarnation_floor=floor):
            if floor < cluster.incarnation_floor:
                raise InvariantViolationError(
                    f"the floor of incarnations is {cluster.incarnation_floor}, and {floor} would lower it"
                )
            return replace(cluster, incarnation_floor=floor)
        case _:
            assert_never(event)


def _dated(cluster: ClusterImage, epoch: Epoch) -> ClusterImage:
    """The image in which the shortened limit, if there is one, shows in tables from this epoch on."""
    shows = cluster.former_silence_limit is not None and cluster.has_several_brokers_rules
    return replace(cluster, limit_shortened_in=epoch if shows else Epoch(0))
