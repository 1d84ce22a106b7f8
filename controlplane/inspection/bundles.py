"""Bundles as rows: the state of their ownership, and the orders that stand for them."""

from controlplane.core.bundles.bundle import Bundle
from controlplane.core.log.state import State
from controlplane.core.operations.bundle_texts import order_text
from controlplane.core.values.identifiers import NamespaceName, NodeId
from controlplane.inspection.records import Record

BUNDLE_STATE_FIELDS = ("bundle", "state", "owner", "next_owner", "owner_epoch", "state_epoch", "version", "order")


def bundle_state_rows(state: State, namespace: NamespaceName | None, node_id: NodeId | None) -> list[Record]:
    """A row for each bundle, by bundle id.

    Args:
        state: the cluster's state.
        namespace: leave out bundles of other namespaces; None for all.
        node_id: leave out bundles that this node neither owns nor is to own next; None for all.
    """
    orders = state.bundles.orders
    return [
        {
            "bundle": bundle_id,
            "state": bundle.ownership_state.value,
            "owner": bundle.owner,
            "next_owner": bundle.next_owner,
            "owner_epoch": bundle.owner_epoch,
            "state_epoch": bundle.state_epoch,
            "version": bundle.version,
            "order": order_text(orders[bundle_id]) if bundle_id in orders else None,
        }
        for bundle_id, bundle in state.bundles.by_id.items()
        if namespace in (None, bundle.namespace) and node_id in (None, bundle.owner, bundle.next_owner)
    ]


def step_text(bundle: Bundle) -> str:
    """What a bundle's ownership waits for or has come to, as a short text."""
    what = bundle.ownership_state.value
    if bundle.owner is None and bundle.next_owner is None:
        return what
    place = f"{what} by {bundle.owner}" if bundle.owner is not None else what
    return f"{place} to {bundle.next_owner}" if bundle.next_owner is not None else place
