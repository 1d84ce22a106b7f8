"""Events of tenants, namespaces and bundles."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from controlplane.core.bundles.bundle import Bundle, Namespace
from controlplane.core.bundles.tenants import Tenant
from controlplane.core.values.events import CallsFor, event
from controlplane.core.values.identifiers import NodeId, TenantName


def _owners(bundles: Iterable[Bundle]) -> Iterator[NodeId]:
    return (bundle.owner for bundle in bundles if bundle.owner is not None)


@event(calls_for=CallsFor.OWNERS, nodes=lambda each: _owners(each.bundles))
@dataclass(frozen=True, slots=True)
class NamespaceCreated:
    """A namespace is created, with its bundles."""

    namespace: Namespace
    bundles: tuple[Bundle, ...]


@event(calls_for=CallsFor.NOTHING, nodes=lambda each: _owners(each.bundles))
@dataclass(frozen=True, slots=True)
class BundlesAssigned:
    """Bundles change their owners. ``bundles`` holds the whole new entries."""

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


BundleEvent: TypeAlias = NamespaceCreated | BundlesAssigned | TenantSet | TenantDeleted
