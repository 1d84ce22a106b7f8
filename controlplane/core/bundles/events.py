"""Events of tenants, namespaces and bundles."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from controlplane.core.bundles.bundle import Bundle, Namespace
from controlplane.core.bundles.orders import BundleOrder, EndedOrder
from controlplane.core.bundles.tenants import Tenant
from controlplane.core.cluster.policy import HANDOFFS_FROM_LEVEL
from controlplane.core.values.events import CallsFor, event
from controlplane.core.values.identifiers import NamespaceName, NodeId, TenantName


def _owners(bundles: Iterable[Bundle]) -> Iterator[NodeId]:
    named = ((bundle.owner, bundle.next_owner, bundle.former_owner) for bundle in bundles)
    return (node_id for each in named for node_id in each if node_id is not None)


@event(calls_for=CallsFor.OWNERS, nodes=lambda each: _owners(each.bundles))
@dataclass(frozen=True, slots=True)
class NamespaceCreated:
    """A namespace is created, with its bundles."""

    namespace: Namespace
    bundles: tuple[Bundle, ...]


@event(calls_for=CallsFor.NOTHING, nodes=lambda each: _owners(each.bundles))
@dataclass(frozen=True, slots=True)
class BundlesAssigned:
    """Bundles change their owners, or the state of their ownership. ``bundles`` holds the whole new entries."""

    bundles: tuple[Bundle, ...]


@event(calls_for=CallsFor.NOTHING, since_level=2)
@dataclass(frozen=True, slots=True)
class TenantSet:
    """A tenant is registered, or its allowed clusters change. ``tenant`` is the whole new entry."""

    tenant: Tenant


@event(calls_for=CallsFor.NOTHING, since_level=2)
@dataclass(frozen=True, slots=True)
class TenantDeleted:
    """A tenant without namespaces is not registered any more."""

    name: TenantName


@event(calls_for=CallsFor.NOTHING, nodes=lambda each: _owners(each.children), since_level=HANDOFFS_FROM_LEVEL)
@dataclass(frozen=True, slots=True)
class BundleSplit:
    """A bundle ends, and others take its place.

    Attributes:
        bundle_id: the bundle that ends.
        children: the bundles that divide its range, ascending, as whole entries.
    """

    bundle_id: str
    children: tuple[Bundle, ...]


@event(
    calls_for=CallsFor.NOTHING,
    nodes=lambda each: (order.destination for order in each.orders if order.destination),
    since_level=HANDOFFS_FROM_LEVEL,
)
@dataclass(frozen=True, slots=True)
class BundleOrdersGiven:
    """Bundles are ordered to move, to be split or to end; each order stands until it has ended."""

    orders: tuple[BundleOrder, ...]


@event(calls_for=CallsFor.NOTHING, since_level=HANDOFFS_FROM_LEVEL)
@dataclass(frozen=True, slots=True)
class BundleOrdersEnded:
    """Orders of bundles end; each says what came of it."""

    ended: tuple[EndedOrder, ...]


@event(calls_for=CallsFor.NOTHING, since_level=HANDOFFS_FROM_LEVEL)
@dataclass(frozen=True, slots=True)
class NamespaceEnding:
    """A namespace is being deleted: no bundle of it gets an owner any more."""

    name: NamespaceName


@event(calls_for=CallsFor.NOTHING, since_level=HANDOFFS_FROM_LEVEL)
@dataclass(frozen=True, slots=True)
class NamespaceDeleted:
    """A namespace and all its bundles end. None of them has an owner.

    Attributes:
        name: the namespace.
        bundle_ids: all its bundles.
    """

    name: NamespaceName
    bundle_ids: tuple[str, ...]


BundleEvent: TypeAlias = (
    NamespaceCreated
    | BundlesAssigned
    | TenantSet
    | TenantDeleted
    | BundleSplit
    | BundleOrdersGiven
    | BundleOrdersEnded
    | NamespaceEnding
    | NamespaceDeleted
)
