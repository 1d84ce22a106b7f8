"""The choice of bundles that are too big for one node and should be split (Pulsar's BundleSplitterTask)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final, NamedTuple

from controlplane.core.bundles.load.resource_usage import BYTES_PER_MIB
from controlplane.core.bundles.settings.allowed import NOT_NEGATIVE, ONE_OR_MORE, POSITIVE, UNLIMITED_OR_MORE
from controlplane.core.bundles.settings.knobs import knob, refuse_unusable

RULE_NAME: Final = "BundleSplitterTask"


@dataclass(frozen=True, slots=True)
class SplitLimits:
    """Limits of a bundle. The defaults are Pulsar's.

    Attributes:
        max_topics: greatest number of topics.
        max_sessions: greatest number of producers plus consumers; 0 or less means no limit.
        max_message_rate_per_s: greatest message rate, in plus out.
        max_bandwidth_mib_per_s: greatest throughput in MiB/s, in plus out.
        max_bundles_per_namespace: no bundle of a namespace with as many is split.
        min_topics: a bundle with fewer topics is not split: one topic cannot be divided. Pulsar 2 has no such limit (0)
            and splits a bundle with one hot topic until its range is too narrow.
        limits_sessions_below_one: whether ``max_sessions`` of 0 or less is a limit like any other, as in Pulsar 2.
    """

    max_topics: int = knob("loadBalancerNamespaceBundleMaxTopics", 1_000, ONE_OR_MORE, accepted=NOT_NEGATIVE)
    max_sessions: int = knob("loadBalancerNamespaceBundleMaxSessions", 1_000, UNLIMITED_OR_MORE)
    max_message_rate_per_s: float = knob(
        "loadBalancerNamespaceBundleMaxMsgRate", 30_000, POSITIVE, accepted=NOT_NEGATIVE
    )
    max_bandwidth_mib_per_s: float = knob(
        "loadBalancerNamespaceBundleMaxBandwidthMbytes", 100, POSITIVE, accepted=NOT_NEGATIVE
    )
    max_bundles_per_namespace: int = knob(
        "loadBalancerNamespaceMaximumBundles", 128, ONE_OR_MORE, accepted=NOT_NEGATIVE
    )
    min_topics: int = 2
    limits_sessions_below_one: bool = False

    def __post_init__(self) -> None:
        """Refuse negative limits: with them every bundle would be too big."""
        refuse_unusable(self)


@dataclass(frozen=True, slots=True)
class SplitSettings(SplitLimits):
    """Limits of a bundle for the leader, which compares long-term averages with those of rates.

    Attributes:
        min_nodes: least number of nodes; with fewer, no other node could take a half.
        is_enabled: whether bundles are split automatically.
        ignores_splits_of_the_round: whether bundles that were chosen before in the same round do not count against
            ``max_bundles_per_namespace``, as in Pulsar 2. A namespace can then get more bundles than that.
    """

    min_nodes: int = 2
    is_enabled: bool = knob("loadBalancerAutoBundleSplitEnabled", default=True)
    ignores_splits_of_the_round: bool = False


class SplitLimit(Enum):
    """The limits that a bundle can exceed, in the order in which evidence names them."""

    TOPICS = "topics"
    SESSIONS = "sessions"
    MESSAGE_RATE = "message_rate_per_s"
    BANDWIDTH = "bandwidth_bytes_per_s"


class ExceededLimit(NamedTuple):
    """Evidence: the measured and the allowed value, in the unit of the limit."""

    limit: SplitLimit
    measured: float
    allowed: float


class MeasuredBundle(NamedTuple):
    """A bundle as an input of the rule.

    Attributes:
        bundle_id: id of the bundle.
        namespace: its namespace.
        node_id: the owner that reported it.
        topic_count: number of topics in the latest report.
        session_count: number of producers plus consumers in the latest report.
        message_rate_per_s: long-term average, in plus out; 0 for a bundle without averages.
        throughput_bytes_per_s: long-term average, in plus out; 0 for a bundle without averages.
    """

    bundle_id: str
    namespace: str
    node_id: str
    topic_count: int
    session_count: int
    message_rate_per_s: float
    throughput_bytes_per_s: float


class SplitChoice(NamedTuple):
    """A bundle to split, with the limits that it exceeds, at least one."""

    bundle: MeasuredBundle
    exceeded: tuple[ExceededLimit, ...]


def exceeded_limits(bundle: MeasuredBundle, settings: SplitLimits) -> tuple[ExceededLimit, ...]:
    """The limits that a bundle exceeds strictly, in the order of :class:`SplitLimit`."""
    if bundle.topic_count < settings.min_topics:
        return ()
    measured = (
        ExceededLimit(SplitLimit.TOPICS, bundle.topic_count, settings.max_topics),
        ExceededLimit(
            SplitLimit.SESSIONS,
            bundle.session_count,
            settings.max_sessions if settings.max_sessions > 0 or settings.limits_sessions_below_one else float("inf"),
        ),
        ExceededLimit(SplitLimit.MESSAGE_RATE, bundle.message_rate_per_s, settings.max_message_rate_per_s),
        ExceededLimit(
            SplitLimit.BANDWIDTH, bundle.throughput_bytes_per_s, settings.max_bandwidth_mib_per_s * BYTES_PER_MIB
        ),
    )
    return tuple(each for each in measured if each.measured > each.allowed)


def choose_splits(
    bundles: Sequence[MeasuredBundle], bundle_counts: Mapping[str, int], node_count: int, settings: SplitSettings
) -> tuple[SplitChoice, ...]:
    """The bundles that should be split.

    Args:
        bundles: the bundles. If a namespace is near its greatest number of bundles, the first ones are chosen; the
            pipeline sorts by node, then by id.
        bundle_counts: number of bundles by namespace. Bundles of other namespaces are not chosen.
        node_count: number of nodes.
        settings: the limits.
    """
    if not settings.is_enabled or node_count < settings.min_nodes:
        return ()
    chosen: list[SplitChoice] = []
    accepted: dict[str, int] = {}
    for bundle in bundles:
        exceeded = exceeded_limits(bundle, settings)
        if not exceeded or bundle.namespace not in bundle_counts:
            continue
        taken = 0 if settings.ignores_splits_of_the_round else accepted.get(bundle.namespace, 0)
        if bundle_counts[bundle.namespace] + taken < settings.max_bundles_per_namespace:
            accepted[bundle.namespace] = taken + 1
            chosen.append(SplitChoice(bundle, exceeded))
    return tuple(chosen)
