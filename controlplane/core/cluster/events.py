"""Events of the cluster as a whole: creation, a new term, a change of policy or feature level."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from controlplane.core.cluster.policy import ClusterPolicy, FormerSilenceLimit
from controlplane.core.values.canonical import later
from controlplane.core.values.events import CallsFor, event
from controlplane.core.values.identifiers import ClusterName, ControllerId, Incarnation, NodeId, Term


@event(calls_for=CallsFor.NOTHING)
@dataclass(frozen=True, slots=True)
class ClusterCreated:
    """The first event of a log: names the log and sets the policy."""

    log_id: str
    policy: ClusterPolicy


@event(calls_for=CallsFor.NOTHING)
@dataclass(frozen=True, slots=True)
class TermOpened:
    """A controller begins to lead. All decisions up to the next event of this kind belong to its term.

    Attributes:
        term: number of the leadership.
        controller_id: the controller that leads.
        code_version: version of the leader's software.
        feature_level: the feature level of the log, which the leader supports.
        policy: the whole policy at the beginning of the term.
        observed_from: the first offset of each input partition that the leader observed, keyed ``topic[partition]``;
            empty at feature level 1, which does not record it.
        cluster: the name of the cluster in the leader's configuration; empty at feature level 1, likewise.
    """

    term: Term
    controller_id: ControllerId
    code_version: str
    feature_level: int
    policy: ClusterPolicy
    observed_from: Mapping[str, int] = field(default_factory=dict, metadata=later(since_level=2))
    cluster: ClusterName = field(default="", metadata=later(since_level=2))


@event(calls_for=CallsFor.NOTHING, since_level=2)
@dataclass(frozen=True, slots=True)
class FeatureLevelRaised:
    """The log has a new feature level from this decision on. A reader that does not support it stops here.

    Attributes:
        feature_level: the new level, greater than the previous one.
    """

    feature_level: int


@event(calls_for=CallsFor.PLAN)
@dataclass(frozen=True, slots=True)
class PolicyChanged:
    """The policy changes. If its silence limit is shortened, the former limit stays in force for a time."""

    policy: ClusterPolicy
    former_silence_limit: FormerSilenceLimit | None


@event(calls_for=CallsFor.NOTHING)
@dataclass(frozen=True, slots=True)
class FormerSilenceLimitEnded:
    """The former, longer silence limit ends, because no node can serve under it any more."""

    silence_limit_ms: int


@event(calls_for=CallsFor.NOTHING, nodes=lambda each: each.node_ids, since_level=3)
@dataclass(frozen=True, slots=True)
class NodesForgotten:
    """Nodes that left or were fenced long ago are known no more. It is the cluster's: the floor is for every name.

    Attributes:
        node_ids: the names, which no slot, bundle or order names.
        incarnation_floor: the greatest incarnation that was ever forgotten; an unknown name joins above it.
    """

    node_ids: tuple[NodeId, ...]
    incarnation_floor: Incarnation


ClusterEvent: TypeAlias = (
    ClusterCreated | TermOpened | FeatureLevelRaised | PolicyChanged | FormerSilenceLimitEnded | NodesForgotten
)
