"""The two entrances of the work on bundles: going on with handoffs, and repairing after members changed."""

from controlplane.core.bundles.bundle import Bundle
from controlplane.core.bundles.orders import OrderOutcome
from controlplane.core.bundles.ownership_channel.live_rows import lost, taken
from controlplane.core.bundles.ownership_state import OwnershipState
from controlplane.core.deciding.bundles.begin import Beginning
from controlplane.core.deciding.bundles.bundle_round import BundleRound
from controlplane.core.deciding.bundles.steps import Steps
from controlplane.core.deciding.observations import Observations
from controlplane.core.log.draft import Draft
from controlplane.core.values.identifiers import NodeId

_OWNED = frozenset({OwnershipState.OWNED, OwnershipState.RELEASING, OwnershipState.SPLITTING})


def hand_off_bundles(draft: Draft, observations: Observations) -> None:
    """Take the steps that are due, and begin as many orders as may be under way at once.

    The cost is that of the bundles in flight and of the orders that begin. What it takes of all of them, the order of
    the ids and the number of bundles of each node, is kept from one decision to the next.
    """
    if not (draft.state.bundles.in_flight or draft.state.bundles.orders):  # the usual case
        return
    work = BundleRound(draft, observations)
    Steps(work).take()
    Beginning(work).begin()
    work.finish()


def repair_bundles(draft: Draft, observations: Observations, renewed: frozenset[NodeId]) -> None:
    """After members changed: give each bundle whose owner is lost to another node, and relieve nodes by orders.

    The cost is that of all bundles.

    Args:
        draft: the draft, with the changes of the membership.
        observations: what was read.
        renewed: the nodes of which this decision admits a new process, which holds nothing of what the former one held.
    """
    work = BundleRound(draft, observations)
    for bundle in work.state.bundles.by_id.values():
        is_assigning = bundle.ownership_state is OwnershipState.ASSIGNING
        holder = work.node(bundle.next_owner if is_assigning else bundle.owner)
        if holder is None or not holder.may_hold:
            _take_from_lost(work, bundle)
        elif holder.node_id in renewed and bundle.ownership_state in _OWNED:
            # The token changes: the former process may still serve under the former one. A release begins again later:
            # the new process cannot say for the former one that it has released the bundle, and serves meanwhile.
            work.put(taken(bundle, holder.node_id, work.epoch), "owned by a new process")
    work.end_phase()
    work.relieve(work.state.bundles.by_id)
    work.finish()


def _take_from_lost(work: BundleRound, bundle: Bundle) -> None:
    """Give a bundle to another node at once, because the one that has it is lost; or free it, if there is none."""
    is_free = bundle.ownership_state is OwnershipState.FREE
    if work.is_ending(bundle):
        if not is_free:
            work.put(lost(bundle, work.epoch), "without an owner")
        work.end_order(bundle.bundle_id, OrderOutcome.DONE, "its owner is gone")
        return
    wanted = _wanted_owner(work, bundle)
    chosen = wanted if work.may_own(wanted) else work.placement.choose()
    if chosen is not None:
        work.put(taken(bundle, chosen, work.epoch), "owned at once")
        work.end_move(bundle.bundle_id, chosen)
    elif not is_free:
        work.put(lost(bundle, work.epoch), "without an owner")


def _wanted_owner(work: BundleRound, bundle: Bundle) -> NodeId | None:
    """The node to which a bundle was on its way, or is ordered to go; None for none."""
    match bundle.ownership_state:
        case OwnershipState.RELEASING:
            return bundle.next_owner
        case OwnershipState.ASSIGNING:  # that is the lost one
            return None
        case _:
            order = work.state.bundles.orders.get(bundle.bundle_id)
            return None if order is None else order.destination
