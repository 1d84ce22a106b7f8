"""What the transfer shedder sees: averages that the nodes compute, and the busiest bundles that they report.

A node of Pulsar's extensible load manager reports its smoothed load and its busiest bundles. The leader keeps no
averages.
"""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from typing import NamedTuple, Protocol

from controlplane.core.bundles.load.plausible import (
    GREATEST_AMOUNT,
    GREATEST_USAGE,
    Beyond,
    Implausible,
    beyond,
    is_plausible_amount,
)
from controlplane.core.bundles.load.stored_load import StoredLoad


class ReportedBundle(NamedTuple):
    """A bundle among the busiest ones of a node, and its throughput in the latest sample, in plus out."""

    bundle_id: str
    bytes_per_s: float


class TransferChecks(Protocol):
    """What only others know: owners, policies and the filters for nodes."""

    def owns(self, node_id: str, bundle_id: str) -> bool:
        """Whether the node is the bundle's owner."""
        ...

    def has_policies(self, namespace: str) -> bool:
        """Whether an isolation policy or an anti-affinity group applies to the namespace."""
        ...

    def allowed_nodes(self, bundle_id: str, nodes: AbstractSet[str]) -> AbstractSet[str] | None:
        """The nodes that all filters leave for the bundle; None if a filter failed."""
        ...


@dataclass(frozen=True, slots=True)
class TransferView:
    """The input of one cycle.

    Attributes:
        loads: the stored load of each node, outdated ones included, in the order of sums and ties.
        registered: the living nodes.
        now_ms: the present time, to be compared with ``updated_at_ms``.
        checks: owners, policies and filters; None means that every bundle may go to every node.
        top_bundles: each node's busiest bundles, the least loaded first, as they are reported.
        recently_unloaded: ids of bundles that were unloaded within the grace period.
    """

    loads: Mapping[str, StoredLoad]
    registered: AbstractSet[str]
    now_ms: int
    checks: TransferChecks | None
    top_bundles: Mapping[str, tuple[ReportedBundle, ...]] = field(default_factory=dict)
    recently_unloaded: AbstractSet[str] = frozenset()


def plausible_transfers(view: TransferView) -> tuple[TransferView, tuple[Implausible, ...]]:
    """The view without loads and bundles whose figures cannot be true, and those figures.

    See :mod:`controlplane.core.bundles.load.plausible`. A registered node without a load ends the cycle.
    """
    wrong_nodes = {node_id: _implausible_load(load) for node_id, load in view.loads.items()}
    found = [Implausible(node_id, "", *wrong) for node_id, wrong in wrong_nodes.items() if wrong is not None]
    found += (
        Implausible(node_id, each.bundle_id, *wrong)
        for node_id, bundles in view.top_bundles.items()
        for each in bundles
        if (wrong := beyond("bytes_per_s", each.bytes_per_s, GREATEST_AMOUNT)) is not None
    )
    if not found:
        return view, ()
    loads = {node_id: load for node_id, load in view.loads.items() if wrong_nodes[node_id] is None}
    top_bundles = {
        node_id: tuple(each for each in bundles if is_plausible_amount(each.bytes_per_s))
        for node_id, bundles in view.top_bundles.items()
    }
    return replace(view, loads=loads, top_bundles=top_bundles), tuple(found)


def _implausible_load(load: StoredLoad) -> Beyond | None:
    """The first figure that cannot be true."""
    return (
        beyond("smoothed_usage", load.smoothed_usage, GREATEST_USAGE)
        or beyond("smoothed_bytes_per_s", load.smoothed_bytes_per_s, GREATEST_AMOUNT)
        or beyond("bytes_per_s", load.bytes_per_s, GREATEST_AMOUNT)
    )
