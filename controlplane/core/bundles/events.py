"""Events on namespaces and bundles."""

from dataclasses import dataclass
from typing import TypeAlias

from controlplane.core.bundles.bundle import Bundle, Namespace
from controlplane.core.values.events import CallsFor, event


@event(calls_for=CallsFor.OWNERS)
@dataclass(frozen=True, slots=True)
class NamespaceCreated:
    """A namespace with its bundles."""

    namespace: Namespace
    bundles: tuple[Bundle, ...]


@event(calls_for=CallsFor.NOTHING)
@dataclass(frozen=True, slots=True)
class BundlesAssigned:
    """Whole new rows of the bundle table."""

    bundles: tuple[Bundle, ...]


BundleEvent: TypeAlias = NamespaceCreated | BundlesAssigned
