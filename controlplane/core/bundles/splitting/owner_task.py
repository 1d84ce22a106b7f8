"""The bundles that an owner splits itself (Pulsar's DefaultNamespaceBundleSplitStrategyImpl)."""

from collections.abc import Collection, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from enum import Enum
from typing import Final, NamedTuple

from controlplane.core.bundles.load.averages import MessageLoad
from controlplane.core.bundles.ranges import HashRange, namespace_and_range
from controlplane.core.bundles.reports import BundleLoad
from controlplane.core.bundles.settings.allowed import NOT_NEGATIVE, ONE_OR_MORE
from controlplane.core.bundles.settings.knobs import knob
from controlplane.core.bundles.splitting.contract import SplitAlgorithm, SplitRequest
from controlplane.core.bundles.splitting.limits import (
    ExceededLimit,
    MeasuredBundle,
    SplitLimits,
    exceeded_limits,
)
from controlplane.errors import ConfigurationError

NO_HITS: Final[Mapping[str, int]] = {}


@dataclass(frozen=True, slots=True)
class OwnerSplitSettings(SplitLimits):
    """Limits of a bundle, and how patient the owner is. The defaults are Pulsar's.

    Attributes:
        max_hits: a bundle is split when it was found over a limit in more rounds than these, one after the other.
        max_splits_per_round: greatest number of splits in a round.
        compares_namespaces_by_prefix: whether a bundle also waits for a bundle that is being split in a namespace whose
            name only begins with its own, as in Pulsar.
    """

    max_hits: int = knob(
        "loadBalancerNamespaceBundleSplitConditionHitCountThreshold", 3, NOT_NEGATIVE, accepted=NOT_NEGATIVE
    )
    max_splits_per_round: int = knob(
        "loadBalancerMaxNumberOfBundlesToSplitPerCycle", 10, ONE_OR_MORE, accepted=ONE_OR_MORE
    )
    compares_namespaces_by_prefix: bool = False


@dataclass(frozen=True, slots=True)
class OwnerView:
    """What an owner knows when it looks for bundles to split.

    Attributes:
        node_id: the owner.
        stats: the latest sample of each of its bundles, by id, in the order of the search.
        owned: ids of the bundles that it owns now.
        splitting: ids of all bundles that are being split now, by any owner.
        bundle_counts: number of bundles by namespace; a namespace is missing if its number could not be read.
        topics: the topics of a bundle, by its id.
        topic_loads: the latest load of a topic, by full name.
    """

    node_id: str
    stats: Mapping[str, BundleLoad]
    owned: AbstractSet[str]
    splitting: Collection[str] = ()
    bundle_counts: Mapping[str, int] = field(default_factory=dict)
    topics: Mapping[str, Sequence[str]] = field(default_factory=dict)
    topic_loads: Mapping[str, MessageLoad] = field(default_factory=dict)


class OwnerSplit(NamedTuple):
    """A bundle to split. Both parts stay at its owner.

    Attributes:
        bundle_id: the bundle.
        children: its two parts.
        exceeded: the first limit that it exceeds.
        hits: in how many rounds, one after the other, it was found over a limit.
        reason: why this position.
    """

    bundle_id: str
    children: tuple[HashRange, HashRange]
    exceeded: ExceededLimit
    hits: int
    reason: str


class Waiting(Enum):
    """Why a bundle over a limit is not split in this round, or cannot be looked at."""

    TOO_NARROW = "too_narrow"
    UNKNOWN_COUNT = "unknown_count"
    TOO_MANY_BUNDLES = "too_many_bundles"
    NEIGHBOUR_SPLITS = "neighbour_splits"
    NO_USABLE_POSITION = "no_usable_position"


class WaitingBundle(NamedTuple):
    """A bundle that is not split, with the cause and the figures."""

    bundle_id: str
    waiting: Waiting
    reason: str


class OwnerSplits(NamedTuple):
    """A round's result.

    Attributes:
        splits: the bundles to split, in the order of the search.
        waiting: bundles that would be split if not for a cause.
        hits: the new memory: by bundle, the rounds in which it was found over a limit.
    """

    splits: tuple[OwnerSplit, ...]
    waiting: tuple[WaitingBundle, ...]
    hits: Mapping[str, int]


def find_owner_splits(
    view: OwnerView, hits: Mapping[str, int], algorithm: SplitAlgorithm, settings: OwnerSplitSettings
) -> OwnerSplits:
    """One round of an owner's search. Figures are those of the latest sample, not averages.

    The search ends with the last split that a round may have; hits of the bundles behind it stay as they are. So do
    those of a bundle with fewer than two topics, with too narrow a range, or without this owner.

    Args:
        view: see there.
        hits: the memory that the former round returned; at first :data:`NO_HITS`.
        algorithm: the default split algorithm. A bundle is split only where it chooses exactly one position.
        settings: see there.

    Raises:
        ConfigurationError: a bundle's id does not end with the name of a range.
    """
    counted = {bundle_id: count for bundle_id, count in hits.items() if bundle_id in view.stats}
    neighbours = _Neighbours.of(view.splitting, by_prefix=settings.compares_namespaces_by_prefix)
    splits: list[OwnerSplit] = []
    waiting: list[WaitingBundle] = []
    accepted: dict[str, int] = {}
    for bundle_id, latest in view.stats.items():
        if latest.topic_count < settings.min_topics or bundle_id not in view.owned:
            continue
        namespace, bundle = namespace_and_range(bundle_id)
        if not bundle.can_split:
            waiting.append(WaitingBundle(bundle_id, Waiting.TOO_NARROW, f"the bounds of {bundle.name} are neighbours"))
            continue
        exceeded = exceeded_limits(_measured(latest, bundle_id, namespace, view.node_id), settings)
        if not exceeded:
            counted.pop(bundle_id, None)
            continue
        counted[bundle_id] = counted.get(bundle_id, 0) + 1
        if counted[bundle_id] <= settings.max_hits:
            continue
        cause = _cap(view, namespace, accepted.get(namespace, 0), settings) or neighbours.of_bundle(namespace, bundle)
        if cause is None:
            request = SplitRequest(bundle, tuple(view.topics.get(bundle_id, ())), view.topic_loads)
            found = _children(request, algorithm)
            if isinstance(found, str):
                cause = Waiting.NO_USABLE_POSITION, found
            else:
                children, reason = found
                splits.append(OwnerSplit(bundle_id, children, exceeded[0], counted.pop(bundle_id), reason))
                accepted[namespace] = accepted.get(namespace, 0) + 1
        if cause is not None:
            waiting.append(WaitingBundle(bundle_id, *cause))
        elif len(splits) == settings.max_splits_per_round:
            break
    return OwnerSplits(tuple(splits), tuple(waiting), counted)


def _measured(latest: BundleLoad, bundle_id: str, namespace: str, node_id: str) -> MeasuredBundle:
    return MeasuredBundle(
        bundle_id,
        namespace,
        node_id,
        latest.topic_count,
        latest.consumer_count + latest.producer_count,
        latest.message_rate_in_per_s + latest.message_rate_out_per_s,
        latest.throughput_in_bytes_per_s + latest.throughput_out_bytes_per_s,
    )


def _cap(view: OwnerView, namespace: str, accepted: int, settings: SplitLimits) -> tuple[Waiting, str] | None:
    count = view.bundle_counts.get(namespace)
    if count is None:
        return Waiting.UNKNOWN_COUNT, f"the number of bundles of namespace {namespace!r} is not known"
    if count + accepted < settings.max_bundles_per_namespace:
        return None
    reason = f"namespace {namespace!r} has {count + accepted} of at most {settings.max_bundles_per_namespace} bundles"
    return Waiting.TOO_MANY_BUNDLES, reason


def _children(request: SplitRequest, algorithm: SplitAlgorithm) -> tuple[tuple[HashRange, HashRange], str] | str:
    """The two parts and the reason for them, or the reason why there are none."""
    lower, upper = request.bundle
    try:
        positions, reason = algorithm.choose(request)
    except ConfigurationError as error:
        return f"{algorithm.name}: {error}"
    if len(positions) != 1:
        return f"{algorithm.name} chose {len(positions)} positions, not 1: {reason}"
    if not lower < positions[0] < upper:
        return f"{algorithm.name} chose {positions[0]}, which is not inside {request.bundle.name}: {reason}"
    return (HashRange(lower, positions[0]), HashRange(positions[0], upper)), f"{algorithm.name}: {reason}"


class _Neighbours(NamedTuple):
    """The lower and the upper bounds of the bundles that are being split, by namespace."""

    bounds: Mapping[str, tuple[AbstractSet[int], AbstractSet[int]]]
    by_prefix: bool

    @classmethod
    def of(cls, splitting: Collection[str], *, by_prefix: bool) -> "_Neighbours":
        bounds: dict[str, tuple[set[int], set[int]]] = {}
        for bundle_id in splitting:
            namespace, bundle = namespace_and_range(bundle_id)
            lowers, uppers = bounds.setdefault(namespace, (set(), set()))
            lowers.add(bundle.lower)
            uppers.add(bundle.upper)
        return cls(bounds, by_prefix)

    def of_bundle(self, namespace: str, bundle: HashRange) -> tuple[Waiting, str] | None:
        """Whether a bundle that is being split shares a bound: it is this one, or its parent."""
        for name in (each for each in self.bounds if each.startswith(namespace)) if self.by_prefix else (namespace,):
            lowers, uppers = self.bounds.get(name, ((), ()))
            if bundle.lower in lowers or bundle.upper in uppers:
                return (
                    Waiting.NEIGHBOUR_SPLITS,
                    f"a bundle of namespace {name!r} with a bound of {bundle.name} is split",
                )
        return None
