"""Applying events to the image of the bundles."""

from collections.abc import Sequence
from dataclasses import replace
from typing import assert_never

from controlplane.core.bundles.bundle import Bundle, Namespace
from controlplane.core.bundles.events import (
    BundleEvent,
    BundleOrdersEnded,
    BundleOrdersGiven,
    BundlesAssigned,
    BundleSplit,
    NamespaceCreated,
    NamespaceDeleted,
    NamespaceEnding,
    TenantDeleted,
    TenantSet,
)
from controlplane.core.bundles.image import BundlesImage
from controlplane.core.values.identifiers import NamespaceName
from controlplane.errors import InvariantViolationError


def apply_bundle_event(image: BundlesImage, event: BundleEvent) -> BundlesImage:
    """The image after one event.

    Raises:
        InvariantViolationError: the namespace exists already; or there is no such namespace, tenant, bundle or order.
    """
    changed = _applied(image, event)
    changed.take_counts_from(image, _changed_bundles(event))
    return changed


def _applied(image: BundlesImage, event: BundleEvent) -> BundlesImage:
    match event:
        case TenantSet() | TenantDeleted():
            return _apply_to_tenants(image, event)
        case NamespaceCreated() | NamespaceEnding() | NamespaceDeleted():
            return _apply_to_namespaces(image, event)
        case BundlesAssigned(bundles=bundles):
            return _put(image, bundles)
        case BundleSplit(bundle_id=bundle_id, children=children):
            return _put(_drop(image, [bundle_id]), children)
        case BundleOrdersGiven(orders=orders):
            return replace(image, orders=image.orders.put((order.bundle_id, order) for order in orders))
        case BundleOrdersEnded(ended=ended):
            return _without_orders(image, [each.bundle_id for each in ended])
        case _:
            assert_never(event)


def _changed_bundles(event: BundleEvent) -> set[str]:
    """The ids of the bundles that an event adds, replaces or removes."""
    match event:
        case BundlesAssigned(bundles=bundles) | NamespaceCreated(bundles=bundles):
            return {each.bundle_id for each in bundles}
        case BundleSplit(bundle_id=bundle_id, children=children):
            return {bundle_id, *(each.bundle_id for each in children)}
        case NamespaceDeleted(bundle_ids=bundle_ids):
            return set(bundle_ids)
        case _:
            return set()


def _apply_to_tenants(image: BundlesImage, event: TenantSet | TenantDeleted) -> BundlesImage:
    if isinstance(event, TenantSet):
        return replace(image, tenants=image.tenants.put([(event.tenant.name, event.tenant)]))
    if event.name not in image.tenants:
        raise InvariantViolationError(f"tenant {event.name!r} is not registered")
    return replace(image, tenants=image.tenants.drop([event.name]))


def _apply_to_namespaces(
    image: BundlesImage, event: NamespaceCreated | NamespaceEnding | NamespaceDeleted
) -> BundlesImage:
    match event:
        case NamespaceCreated(namespace=namespace, bundles=bundles):
            if namespace.name in image.namespaces:
                raise InvariantViolationError(f"namespace {namespace.name!r} exists already")
            created = replace(image, namespaces=image.namespaces.put([(namespace.name, namespace)]))
            return _put(created, bundles)
        case NamespaceEnding(name=name):
            ending = replace(_namespace(image, name), is_ending=True)
            return replace(image, namespaces=image.namespaces.put([(name, ending)]))
        case NamespaceDeleted(name=name, bundle_ids=bundle_ids):
            _namespace(image, name)
            return _drop(replace(image, namespaces=image.namespaces.drop([name])), bundle_ids)
        case _:
            assert_never(event)


def _namespace(image: BundlesImage, name: NamespaceName) -> Namespace:
    if name not in image.namespaces:
        raise InvariantViolationError(f"there is no namespace {name!r}")
    return image.namespaces[name]


def _without_orders(image: BundlesImage, bundle_ids: Sequence[str]) -> BundlesImage:
    for bundle_id in bundle_ids:
        if bundle_id not in image.orders:
            raise InvariantViolationError(f"there is no order for bundle {bundle_id!r}")
    return replace(image, orders=image.orders.drop(bundle_ids))


def _put(image: BundlesImage, bundles: Sequence[Bundle]) -> BundlesImage:
    flying = [(each.bundle_id, each.state) for each in bundles if each.state is not None and each.state.is_in_flight]
    flies = {bundle_id for bundle_id, _ in flying}
    landed = {each.bundle_id for each in bundles if each.bundle_id in image.in_flight} - flies
    by_id = image.by_id.put((bundle.bundle_id, bundle) for bundle in bundles)
    return replace(image, by_id=by_id, in_flight=image.in_flight.drop(landed).put(flying))


def _drop(image: BundlesImage, bundle_ids: Sequence[str]) -> BundlesImage:
    for bundle_id in bundle_ids:
        if bundle_id not in image.by_id:
            raise InvariantViolationError(f"there is no bundle {bundle_id!r}")
    landed = [bundle_id for bundle_id in bundle_ids if bundle_id in image.in_flight]
    return replace(image, by_id=image.by_id.drop(bundle_ids), in_flight=image.in_flight.drop(landed))
