"""The image of the bundles: tenants, namespaces and their bundles."""

from dataclasses import dataclass, field

from controlplane.core.bundles.bundle import Bundle, Namespace
from controlplane.core.bundles.tenants import Tenant
from controlplane.core.values.canonical import later
from controlplane.core.values.entries import Entries
from controlplane.core.values.identifiers import NamespaceName, TenantName
from controlplane.core.values.image import Image


@dataclass(frozen=True)
class BundlesImage(Image):
    """The part of the state that concerns bundles.

    Attributes:
        namespaces: namespaces by name.
        by_id: the bundles of all namespaces by bundle id.
        tenants: the registered tenants by name.
    """

    namespaces: Entries[NamespaceName, Namespace] = field(default_factory=Entries)
    by_id: Entries[str, Bundle] = field(default_factory=Entries)
    tenants: Entries[TenantName, Tenant] = field(default_factory=Entries, metadata=later(since_level=2))
