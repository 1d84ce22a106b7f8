"""The rows of namespaces and bundles in the routing table: the entries themselves."""

from collections.abc import Iterable
from typing import assert_never

from controlplane.core.bundles.events import BundleEvent, BundlesAssigned, NamespaceCreated
from controlplane.core.values.identifiers import NamespaceName


def touched_namespaces(event: BundleEvent) -> Iterable[NamespaceName]:
    """The namespaces whose rows an event may change."""
    match event:
        case NamespaceCreated(namespace=namespace):
            return [namespace.name]
        case BundlesAssigned():
            return []
        case _:
            assert_never(event)


def touched_bundles(event: BundleEvent) -> Iterable[str]:
    """The ids of the bundles whose rows an event may change."""
    match event:
        case NamespaceCreated(bundles=bundles) | BundlesAssigned(bundles=bundles):
            return [bundle.bundle_id for bundle in bundles]
        case _:
            assert_never(event)
