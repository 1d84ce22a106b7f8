"""Recorded answers about splits: the bundles that the leader splits, and the positions of the four algorithms."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

from controlplane.core.bundles.profiles.chosen_rules import chosen_rules
from controlplane.core.bundles.ranges import HashRange
from controlplane.core.bundles.splitting.contract import SplitRequest
from controlplane.core.bundles.splitting.leader_task import bundles_to_split
from controlplane.core.bundles.splitting.limits import SplitSettings
from controlplane.errors import ConfigurationError
from tests.conformance.pulsar.settings import composed, settings
from tests.conformance.pulsar.translation import Document, load_view, traffic

_KNOBS: Final = {
    "max_rate": "loadBalancerNamespaceBundleMaxMsgRate",
    "max_mbytes": "loadBalancerNamespaceBundleMaxBandwidthMbytes",
    "diff_percent": "flowOrQpsDifferenceThresholdPercentage",
}


def bundle_split(given: Document) -> object:
    """Node by bundle. The recorded class is asked past the guard of its caller, which wants two brokers."""
    limits = replace(settings(SplitSettings, given), min_nodes=0)
    counts = {namespace: count for namespace, count in given["bundle_counts"].items() if count is not None}
    chosen = bundles_to_split(load_view(given["brokers"], given["bundles"]), counts, limits)
    return {"split": {each.bundle.bundle_id: each.bundle.node_id for each in chosen}}


def split_boundary(given: Document) -> object:
    """The positions; null for none."""
    knobs = {knob: given[name] for name, knob in _KNOBS.items() if name in given}
    algorithms = chosen_rules(composed(given, **knobs)).split_algorithms
    stats = given.get("stats") or {}
    request = SplitRequest(
        HashRange(*given["bundle"]),
        tuple(given["topics"] or ()),
        {topic: traffic(dict(zip(("ri", "ro", "ti", "to"), figures, strict=True))) for topic, figures in stats.items()},
        tuple(given.get("positions") or ()),
        is_forced=given.get("force", False),
    )
    try:
        chosen = algorithms.configured(given["algorithm"]).choose(request)
    except ConfigurationError:
        return {"error": "IllegalArgumentException"}
    return {"boundaries": list(chosen.positions) or None}


OPERATIONS: Final[Mapping[str, Callable[[Any], object]]] = {
    "bundle_split": bundle_split,
    "split_boundary": split_boundary,
}
