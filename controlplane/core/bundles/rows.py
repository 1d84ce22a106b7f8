"""The rows of namespaces and bundles in the routing table. The rows are the entries of the image.

Tenants have no rows: clients and nodes do not use them.
"""

from collections.abc import Iterable
from typing import Final, assert_never, get_args

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
from controlplane.core.cluster.policy import HANDOFFS_FROM_LEVEL
from controlplane.core.values.identifiers import NamespaceName
from controlplane.core.values.row_kind import RowKind


def touched_namespaces(event: BundleEvent) -> Iterable[NamespaceName]:
    """The namespaces whose rows an event may change."""
    match event:
        case NamespaceCreated(namespace=namespace):
            return [namespace.name]
        case NamespaceEnding(name=name) | NamespaceDeleted(name=name):
            return [name]
        case (
            BundlesAssigned()
            | BundleSplit()
            | BundleOrdersGiven()
            | BundleOrdersEnded()
            | TenantSet()
            | TenantDeleted()
        ):
            return []
        case _:
            assert_never(event)


def touched_bundles(event: BundleEvent) -> Iterable[str]:
    """The ids of the bundles whose rows an event may change."""
    match event:
        case NamespaceCreated(bundles=bundles) | BundlesAssigned(bundles=bundles):
            return [bundle.bundle_id for bundle in bundles]
        case BundleSplit(bundle_id=bundle_id, children=children):
            return [bundle_id, *(child.bundle_id for child in children)]
        case NamespaceDeleted(bundle_ids=bundle_ids):
            return bundle_ids
        case NamespaceEnding() | BundleOrdersGiven() | BundleOrdersEnded() | TenantSet() | TenantDeleted():
            return []
        case _:
            assert_never(event)


NAMESPACE_ROWS: Final = RowKind(
    name="namespace",
    record=Namespace,
    levels=(1, HANDOFFS_FROM_LEVEL),
    image=BundlesImage,
    ids=lambda image: image.namespaces,
    row=lambda image, name: image.namespaces.get(name),
    events=get_args(BundleEvent),
    touched=touched_namespaces,
    id_of=lambda namespace: namespace.name,
    id_in_key=str,
)
"""The rows of namespaces, for example ``main/namespace/kv``."""

BUNDLE_ROWS: Final = RowKind(
    name="bundle",
    record=Bundle,
    levels=(1, HANDOFFS_FROM_LEVEL),
    image=BundlesImage,
    ids=lambda image: image.by_id,
    row=lambda image, bundle_id: image.by_id.get(bundle_id),
    events=get_args(BundleEvent),
    touched=touched_bundles,
    id_of=lambda bundle: bundle.bundle_id,
    id_in_key=str,
)
"""The rows of bundles, for example ``main/bundle/kv/0x00000000_0x40000000``: the identifier contains a slash."""
