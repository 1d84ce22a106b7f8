"""Which bundles the node with the most load gives to the node with the least.

It is the inner part of Pulsar's TransferShedder.
"""

from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Final, NamedTuple

from controlplane.core.bundles.names import namespace_of
from controlplane.core.bundles.shedding.transfer_spread import offload_target
from controlplane.core.bundles.shedding.transfer_view import ReportedBundle, TransferView

_SWAP_SHARE: Final = 0.75
"""A swap has to leave the node with less than this share of its throughput."""


class Move(NamedTuple):
    """A bundle that goes from one node to another."""

    bundle: ReportedBundle
    source: str
    destination: str


class PairOffload(NamedTuple):
    """What a pair of nodes exchanges.

    Attributes:
        moves: in order of choice; bundles that are swapped back stand before the bundle that they make room for.
        target: the throughput that should be offloaded.
        marked: the throughput that leaves the node with the most load.
        gained: the throughput of swapped bundles, as far as it counts.
    """

    moves: tuple[Move, ...]
    target: float
    marked: float
    gained: float


def distinct(bundles: Iterable[ReportedBundle], *others: AbstractSet[str]) -> tuple[ReportedBundle, ...]:
    """The bundles, each where it is named first, without others. A node that works reports each once."""
    by_id: dict[str, ReportedBundle] = {}
    for bundle in bundles:
        by_id.setdefault(bundle.bundle_id, bundle)
    return tuple(bundle for bundle_id, bundle in by_id.items() if not any(bundle_id in each for each in others))


@dataclass(frozen=True, slots=True)
class PairRules:
    """The settings that the exchange of two nodes needs; see ``TransferSettings`` for their meanings."""

    transfers: bool
    sheds_bundles_with_policies: bool
    excluded_namespaces: AbstractSet[str]
    counts_swap_gain: bool
    swaps_any_bundle: bool


@dataclass(frozen=True, slots=True)
class NodePair:
    """Two nodes of a view: ``busy`` gives bundles to ``idle``, and may take bundles of it in exchange.

    ``chosen`` has the bundles that move already. A bundle that is named twice moves once.
    """

    view: TransferView
    rules: PairRules
    busy: str
    idle: str
    chosen: AbstractSet[str] = frozenset()

    def offload(self) -> PairOffload:
        """Choose bundles, the least loaded first, until the next one would exceed the target.

        The first one that does may still go if bundles of the other node come back for it. One reported bundle stays.
        """
        busy, idle = self.view.loads[self.busy], self.view.loads[self.idle]
        target = offload_target(busy, idle)
        bundles = distinct(self.view.top_bundles[self.busy], self.chosen)
        of_both = {bundle.bundle_id for bundle in bundles}
        in_exchange = iter(distinct(self.view.top_bundles.get(self.idle, ()), self.chosen, of_both))
        moves: list[Move] = []
        marked = gained = 0.0
        remaining = len(bundles)
        for bundle in bundles:
            if not self._may_leave(bundle, self.busy) or not self._is_transferable(bundle, self.busy, self.idle):
                continue
            if remaining <= 1:
                break
            if bundle.bytes_per_s == 0:
                continue
            back: list[Move] = []
            if marked - gained + bundle.bytes_per_s > target:
                rest = busy.bytes_per_s - marked + gained - bundle.bytes_per_s
                more = idle.bytes_per_s + marked - gained + bundle.bytes_per_s
                found = self._swap(in_exchange, busy.bytes_per_s, rest, more)
                if found is None:
                    break
                back = found
            swapped = 0.0
            for move in back:
                swapped += move.bundle.bytes_per_s
            if self.rules.counts_swap_gain:
                gained += swapped
            moves += [*back, Move(bundle, self.busy, self.idle)]
            marked += bundle.bytes_per_s
            remaining -= 1
        return PairOffload(tuple(moves), target, marked, gained)

    def _swap(self, in_exchange: Iterator[ReportedBundle], limit: float, rest: float, more: float) -> list[Move] | None:
        """Bundles of the idle node to take back, until it has no more than the busy one; None if that is not reached.

        Args:
            in_exchange: its bundles that no earlier swap has looked at.
            limit: present throughput of the busy node, which neither node may reach.
            rest: throughput of the busy node without the bundle that leaves.
            more: throughput of the idle node with it.
        """
        if not self.rules.transfers:
            return None
        back: list[Move] = []
        for bundle in in_exchange:
            free = self.rules.swaps_any_bundle or self._may_leave(bundle, self.idle)
            if not free or not self._is_transferable(bundle, self.idle, self.busy) or bundle.bytes_per_s == 0:
                continue
            new_rest, new_more = rest + bundle.bytes_per_s, more - bundle.bytes_per_s
            if new_rest < limit and new_more < limit:
                back.append(Move(bundle, self.idle, self.busy))
                rest, more = new_rest, new_more
                if more <= rest < limit * _SWAP_SHARE:
                    return back
        return None

    def _may_leave(self, bundle: ReportedBundle, node_id: str) -> bool:
        """Whether the node owns the bundle, its namespace is not excluded, and it has not moved recently."""
        checks = self.view.checks
        return (
            (checks is None or checks.owns(node_id, bundle.bundle_id))
            and namespace_of(bundle.bundle_id) not in self.rules.excluded_namespaces
            and bundle.bundle_id not in self.view.recently_unloaded
        )

    def _is_transferable(self, bundle: ReportedBundle, source: str, destination: str) -> bool:
        """Whether policies and filters let the bundle go to the destination; a filter that fails forbids it."""
        checks = self.view.checks
        if checks is None:
            return True
        if not self.rules.sheds_bundles_with_policies and checks.has_policies(namespace_of(bundle.bundle_id)):
            return False
        allowed = checks.allowed_nodes(bundle.bundle_id, self.view.registered)
        if allowed is None or destination not in allowed:
            return False
        return destination != source if self.rules.transfers else bool(allowed - {source})
