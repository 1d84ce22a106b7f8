"""Recorded answers about splits: the bundles that the leader splits, and the positions of the four algorithms."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

from controlplane.core.bundles.load.split_rule import SplitSettings
from controlplane.core.bundles.ranges import HashRange
from controlplane.core.bundles.splitting.algorithms import TrafficSplitSettings
from controlplane.core.bundles.splitting.contract import SplitRequest
from controlplane.core.bundles.splitting.leader_task import bundles_to_split
from controlplane.core.bundles.splitting.lookup import split_algorithms
from controlplane.errors import ConfigurationError
from tests.conformance.pulsar.settings import settings
from tests.conformance.pulsar.translation import Document, load_view, traffic

_TRAFFIC_LIMITS: Final = {
    "max_rate": "max_message_rate_per_s",
    "max_mbytes": "max_bandwidth_mib_per_s",
    "diff_percent": "excess_threshold_percent",
}


def bundle_split(given: Document) -> object:
    """Node by bundle. The recorded class is asked past the guard of its caller, which wants two brokers."""
    limits = replace(settings(SplitSettings, given), min_nodes=0)
    counts = {namespace: count for namespace, count in given["bundle_counts"].items() if count is not None}
    chosen = bundles_to_split(load_view(given["brokers"], given["bundles"]), counts, limits)
    return {"split": {each.bundle.bundle_id: each.bundle.node_id for each in chosen}}


def split_boundary(given: Document) -> object:
    """The positions; null for none."""
    limits = {field: given[name] for name, field in _TRAFFIC_LIMITS.items() if name in given}
    traffic_settings = replace(settings(TrafficSplitSettings, given), **limits)
    stats = given.get("stats") or {}
    request = SplitRequest(
        HashRange(*given["bundle"]),
        tuple(given["topics"] or ()),
        {topic: traffic(dict(zip(("ri", "ro", "ti", "to"), figures, strict=True))) for topic, figures in stats.items()},
        tuple(given.get("positions") or ()),
        is_forced=given.get("force", False),
    )
    try:
        chosen = split_algorithms(traffic_settings).configured(given["algorithm"]).choose(request)
    except ConfigurationError:
        return {"error": "IllegalArgumentException"}
    return {"boundaries": list(chosen.positions) or None}


OPERATIONS: Final[Mapping[str, Callable[[Any], object]]] = {
    "bundle_split": bundle_split,
    "split_boundary": split_boundary,
}
