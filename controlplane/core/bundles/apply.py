"""Applying events to the image of the bundles."""

from collections.abc import Iterable
from dataclasses import replace
from typing import assert_never

from controlplane.core.bundles.bundle import Bundle
from controlplane.core.bundles.events import BundleEvent, BundlesAssigned, NamespaceCreated, TenantDeleted, TenantSet
from controlplane.core.bundles.image import BundlesImage
from controlplane.errors import InvariantViolationError


def apply_bundle_event(image: BundlesImage, event: BundleEvent) -> BundlesImage:
    """The image after one event.

    Raises:
        InvariantViolationError: the namespace exists already, or there is no such tenant to delete.
    """
    match event:
        case NamespaceCreated(namespace=namespace, bundles=bundles):
            if namespace.name in image.namespaces:
                raise InvariantViolationError(f"namespace {namespace.name!r} exists already")
            created = replace(image, namespaces=image.namespaces.put([(namespace.name, namespace)]))
            return _put(created, bundles)
        case BundlesAssigned(bundles=bundles):
            return _put(image, bundles)
        case TenantSet(tenant=tenant):
            return replace(image, tenants=image.tenants.put([(tenant.name, tenant)]))
        case TenantDeleted(name=name):
            if name not in image.tenants:
                raise InvariantViolationError(f"tenant {name!r} is not registered")
            return replace(image, tenants=image.tenants.drop([name]))
        case _:
            assert_never(event)


def _put(image: BundlesImage, bundles: Iterable[Bundle]) -> BundlesImage:
    return replace(image, by_id=image.by_id.put((bundle.bundle_id, bundle) for bundle in bundles))
