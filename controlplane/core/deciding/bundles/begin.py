"""Begins orders: as many as may be under way at once, in the order of the bundles' ids."""

from controlplane.core.bundles.bundle import Bundle
from controlplane.core.bundles.orders import (
    BY_NUMBER,
    BY_POSITIONS,
    BundleOrder,
    BundleOrderKind,
    OrderOutcome,
)
from controlplane.core.bundles.ownership_channel.live_rows import (
    assigning,
    lost,
    range_names,
    releasing,
    splitting,
    taken,
)
from controlplane.core.bundles.ranges import inner_bounds
from controlplane.core.deciding.bundles.bundle_round import BundleRound
from controlplane.core.membership.node import Node
from controlplane.core.values.identifiers import NodeId
from controlplane.errors import ConfigurationError

_FAILED = OrderOutcome.FAILED


class Beginning:
    """The orders that one decision begins."""

    def __init__(self, work: BundleRound) -> None:
        """Add rows to this round."""
        self._work = work
        self._divided: list[tuple[str, tuple[int, ...]]] = []

    def begin(self) -> None:
        """Begin orders. The cost is that of those which begin, and of those before them which are under way or wait."""
        work = self._work
        image, most = work.state.bundles, work.state.cluster.policy.bundle_moves_in_flight
        room = most - len(image.in_flight) if most else len(image.orders)
        for bundle_id, order in image.orders.items() if room > 0 else ():
            if room <= 0:
                break
            if bundle_id not in image.in_flight:
                self._begin(image.by_id[bundle_id], order)
                room -= work.has_row(bundle_id)
        work.end_phase()
        for bundle_id, bounds in self._divided:
            work.split(bundle_id, bounds)

    def _begin(self, bundle: Bundle, order: BundleOrder) -> None:
        work, owner = self._work, self._work.node(bundle.owner)
        if owner is None:
            self._begin_free(bundle, order)
            return
        if order.kind is not BundleOrderKind.SPLIT and work.consents.has_former_process(owner):
            return  # the order stands: what this process releases, the former one may still serve
        match order.kind:
            case BundleOrderKind.SPLIT:
                self._begin_split(bundle, order, owner)
            case BundleOrderKind.END if owner.hands_off:
                work.put(releasing(bundle, None, work.epoch), "told to release")
            case BundleOrderKind.END:
                work.put(lost(bundle, work.epoch), "taken at once")
            case BundleOrderKind.TRANSFER:
                self._begin_move(bundle, owner, order.destination)
            case BundleOrderKind.UNLOAD:
                self._begin_move(bundle, owner, None)
            case BundleOrderKind.RELIEVE if work.may_own(owner.node_id):
                work.end_order(bundle.bundle_id, OrderOutcome.DONE, f"{owner.node_id} may own bundles again")
            case BundleOrderKind.RELIEVE:
                self._begin_move(bundle, owner, work.placement.choose(rather_not=owner.node_id))

    def _begin_free(self, bundle: Bundle, order: BundleOrder) -> None:
        """Begin an order for a bundle without an owner: it is assigned, or the order ends."""
        work = self._work
        if order.kind is BundleOrderKind.END:
            work.end_order(bundle.bundle_id, OrderOutcome.DONE, "it has no owner")
        elif order.destination is not None and work.may_own(order.destination):
            work.put(assigning(bundle, order.destination, work.epoch), "assigned")
        else:
            work.end_order(bundle.bundle_id, _FAILED, "it has no owner, and no node may own it")

    def _begin_move(self, bundle: Bundle, owner: Node, destination: NodeId | None) -> None:
        """Begin a move to a node; without one, to the node that is chosen when the bundle is released."""
        work = self._work
        if destination == owner.node_id:
            work.end_order(bundle.bundle_id, OrderOutcome.DONE, f"{owner.node_id} owns it already")
        elif destination is not None and not work.may_own(destination):
            work.end_order(bundle.bundle_id, _FAILED, f"{destination} may own no bundles now")
        elif owner.hands_off:
            work.put(releasing(bundle, destination, work.epoch), "told to release")
        else:
            chosen = destination or work.placement.choose(rather_not=owner.node_id)
            if chosen is None or chosen == owner.node_id:
                work.end_order(bundle.bundle_id, _FAILED, f"no other node than {owner.node_id} may own it")
            else:
                work.put(taken(bundle, chosen, work.epoch), "taken at once")
                work.end_move(bundle.bundle_id, chosen)

    def _begin_split(self, bundle: Bundle, order: BundleOrder, owner: Node) -> None:
        work = self._work
        if order.split_by not in (BY_NUMBER, BY_POSITIONS):
            if owner.hands_off:
                work.put(splitting(bundle, (), order.split_by, work.epoch), "told to divide")
            else:
                detail = f"not split: {owner.node_id} takes part in no handoffs, so it cannot be asked for the bounds"
                work.end_order(bundle.bundle_id, _FAILED, detail)
            return
        parts = order.numbers[0] if order.split_by == BY_NUMBER else 0
        positions = order.numbers if order.split_by == BY_POSITIONS else ()
        try:
            bounds = inner_bounds(bundle.hash_range, parts, positions)
        except ConfigurationError as error:
            work.end_order(bundle.bundle_id, _FAILED, f"not split: {error}")
            return
        work.put(splitting(bundle, range_names(bundle, bounds), "", work.epoch), "told to divide")
        if not owner.hands_off:
            self._divided.append((bundle.bundle_id, bounds))
