"""Loads that a working node can report; others are kept away from the rules.

Pulsar's rules calculate with whatever is reported: one value that is not a number makes its threshold shedder unload a
bundle of every node, and stays in the averages. A node with an implausible report is left out instead, as if it had
not reported, and a bundle with implausible averages stays where it is. The profiles that follow Pulsar use views as
they are.
"""

import math
from collections.abc import Iterable
from dataclasses import replace
from typing import Final, NamedTuple

from controlplane.core.bundles.load.averages import BundleAverages, MessageLoad
from controlplane.core.bundles.load.view import LoadView, NodeLoad
from controlplane.core.bundles.reports import ResourceUsage

GREATEST_AMOUNT: Final = 1e15
"""Bytes or messages per second, Kbit/s or MiB: no node has a thousandth of it."""
GREATEST_USAGE: Final = 100.0
"""Usage divided by its limit: a limit may be wrong, but not by so much."""


class Implausible(NamedTuple):
    """A figure that cannot be true.

    Attributes:
        node_id: the node; empty for a figure of a bundle that is not one node's.
        bundle_id: the bundle; empty for a figure of a node.
        name: the figure.
        value: what was reported.
        limit: the bound that it is beyond: the least value that can be true if it is less or not a number, otherwise
            the greatest.
    """

    node_id: str
    bundle_id: str
    name: str
    value: float
    limit: float


class Beyond(NamedTuple):
    """A figure that is beyond what can be true, with that bound."""

    name: str
    value: float
    limit: float


def beyond(name: str, value: float, greatest: float) -> Beyond | None:
    """The figure with its bound, if it is not a number from 0 to ``greatest``; otherwise None."""
    if 0 <= value <= greatest:
        return None
    return Beyond(name, value, greatest if value > greatest else 0.0)


def is_plausible_amount(value: float) -> bool:
    """Whether a rate, a throughput or an amount can be true: a number from 0 to :data:`GREATEST_AMOUNT`."""
    return 0 <= value <= GREATEST_AMOUNT


def implausible_load(load: MessageLoad) -> Beyond | None:
    """The first field that cannot be true."""
    fields = (beyond(name, value, GREATEST_AMOUNT) for name, value in load._asdict().items())
    return next((each for each in fields if each is not None), None)


def implausible_resource(name: str, resource: ResourceUsage) -> Beyond | None:
    """The usage or the limit that cannot be true. Without a limit, which 0 or less means, the usage does not count."""
    if math.isnan(resource.limit) or resource.limit > GREATEST_AMOUNT:
        return Beyond(name, resource.limit, GREATEST_AMOUNT)
    if resource.limit <= 0:
        return None
    return beyond(name, resource.usage, resource.limit * GREATEST_USAGE)


def implausible_node(node: NodeLoad) -> Beyond | None:
    """The first field of a report that cannot be true."""
    resources = {
        "cpu": node.cpu,
        "memory": node.memory,
        "direct_memory": node.direct_memory,
        "bandwidth_in": node.bandwidth_in,
        "bandwidth_out": node.bandwidth_out,
    }
    for name, resource in resources.items():
        wrong = implausible_resource(name, resource)
        if wrong is not None:
            return wrong
    return implausible_load(node.traffic)


def implausible_averages(averages: BundleAverages) -> Beyond | None:
    """The first field of a bundle's averages that cannot be true."""
    return implausible_load(averages.short_term.load) or implausible_load(averages.long_term.load)


def plausible(view: LoadView) -> tuple[LoadView, tuple[Implausible, ...]]:
    """The view without nodes and bundles whose values cannot be true, and those values."""
    nodes = {node_id: implausible_node(node.load) for node_id, node in view.nodes.items()}
    bundles = {bundle_id: implausible_averages(history.averages) for bundle_id, history in view.bundles.items()}
    found = (
        *(Implausible(node_id, "", *wrong) for node_id, wrong in _wrong(nodes.items())),
        *(Implausible("", bundle_id, *wrong) for bundle_id, wrong in _wrong(bundles.items())),
    )
    if not found:
        return view, ()
    kept = replace(
        view,
        nodes={node_id: node for node_id, node in view.nodes.items() if nodes[node_id] is None},
        bundles={bundle_id: history for bundle_id, history in view.bundles.items() if bundles[bundle_id] is None},
    )
    return kept, found


def _wrong(judged: Iterable[tuple[str, Beyond | None]]) -> Iterable[tuple[str, Beyond]]:
    return ((name, wrong) for name, wrong in judged if wrong is not None)
