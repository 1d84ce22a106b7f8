"""Recorded inputs as the objects that the rules for bundles take."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from controlplane.core.bundles.load.averages import (
    LONG_TERM_SAMPLES,
    SHORT_TERM_SAMPLES,
    BundleAverages,
    MessageLoad,
    NodeAverages,
    TimeAverage,
)
from controlplane.core.bundles.load.view import (
    UNKNOWN_USAGE,
    BundleHistory,
    LoadView,
    NodeLoad,
    NodeView,
)
from controlplane.core.bundles.placement.isolation import IsolationPolicies, IsolationPolicy
from controlplane.core.bundles.reports import BundleLoad, ResourceUsage
from controlplane.core.bundles.settings.managers import MODULAR_MANAGER
from tests.conformance.pulsar.numbers import number

Document = Mapping[str, Any]
NOW_MS: Final = 10**12
"""A present time; the recorded ones are relative."""


def resource(given: Sequence[float | str] | None) -> ResourceUsage:
    """``[usage, limit]``; absent is unknown."""
    return UNKNOWN_USAGE if given is None else ResourceUsage(*map(number, given))


def traffic(given: Document) -> MessageLoad:
    """``ti to ri ro``; absent is 0."""
    return MessageLoad(*(number(given.get(name, 0.0)) for name in ("ti", "to", "ri", "ro")))


def average(given: Sequence[float | str], default_max_samples: int) -> TimeAverage:
    """``[thr_in, thr_out, rate_in, rate_out, samples?, max_samples?]``."""
    load, rest = MessageLoad(*map(number, given[:4])), [int(number(each)) for each in given[4:]]
    max_samples = rest[1] if len(rest) > 1 else default_max_samples
    return TimeAverage(max_samples, min(rest[0], max_samples) if rest else 0, load)


def history(given: Document) -> BundleHistory:
    """A bundle's averages and topics; a missing long-term average equals the short-term one."""
    short = average(given["short"], SHORT_TERM_SAMPLES)
    long = average(given.get("long", given["short"]), LONG_TERM_SAMPLES)
    return BundleHistory(BundleAverages(short, long), given.get("topics", 0))


def bundle_load(bundle_id: str, given: Document) -> BundleLoad:
    """The last stats of a bundle."""
    rates = traffic(given)
    return BundleLoad(
        bundle_id,
        rates.message_rate_in_per_s,
        rates.message_rate_out_per_s,
        rates.throughput_in_bytes_per_s,
        rates.throughput_out_bytes_per_s,
        given.get("topics", 0),
        given.get("producers", 0),
        given.get("consumers", 0),
        given.get("cache", 0),
    )


def node_load(given: Document) -> NodeLoad:
    """A recorded LocalBrokerData."""
    stats = {name: bundle_load(name, each) for name, each in given.get("stats", {}).items()}
    bundles = tuple(given.get("bundles", ()))
    return NodeLoad(
        node_id=given.get("name", ""),
        cpu=resource(given.get("cpu")),
        memory=resource(given.get("mem")),
        direct_memory=resource(given.get("dmem")),
        bandwidth_in=resource(given.get("bwin")),
        bandwidth_out=resource(given.get("bwout")),
        traffic=traffic(given),
        bundles=bundles,
        stats=stats,
        topic_count=given.get("num_topics", 0),
        bundle_count=given.get("num_bundles", 0),
        takes_persistent_topics=given.get("persistent", True),
        takes_non_persistent_topics=given.get("non_persistent", True),
        version=given.get("version", "4.2.4"),
        manager=given.get("manager", MODULAR_MANAGER),
    )


def node_view(given: Document) -> NodeView:
    """A recorded broker with its averages and preallocated bundles."""
    rate_in, rate_out = map(number, given.get("avg", (0.0, 0.0)))
    averages = NodeAverages(MessageLoad(0.0, 0.0, 0.0, 0.0), MessageLoad(0.0, 0.0, rate_in, rate_out))
    preallocated = {name: history(each) for name, each in given.get("prealloc", {}).items()}
    return NodeView(node_load(given), averages, preallocated)


def nodes(given: Sequence[Document]) -> dict[str, NodeView]:
    """Recorded brokers by name, in their order."""
    return {each["name"]: node_view(each) for each in given}


def load_view(brokers: Sequence[Document], bundles: Sequence[Document], recent: Sequence[str] = ()) -> LoadView:
    """A recorded LoadData."""
    return LoadView(nodes(brokers), {each["name"]: history(each) for each in bundles}, frozenset(recent))


def isolation_policies(given: Sequence[Document] | None) -> IsolationPolicies:
    """Recorded policies in their order; null is none."""
    return IsolationPolicies(
        tuple(
            IsolationPolicy(
                each["name"],
                tuple(each["namespaces"]),
                tuple(each["primary"]),
                tuple(each["secondary"]),
                int(each.get("min_limit", IsolationPolicy.min_primaries)),
            )
            for each in given or ()
        )
    )
