"""The image of the bundles: tenants, namespaces and their bundles."""

from dataclasses import dataclass, field

from controlplane.core.bundles.bundle import Bundle, Namespace
from controlplane.core.bundles.orders import BundleOrder
from controlplane.core.bundles.ownership_state import OwnershipState
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
        orders: what is ordered, by bundle id: one order for a bundle at a time.
        in_flight: the bundles for which a node has to act before they have an owner again, or are split, with their
            state: *Assigning*, *Releasing* or *Splitting*. Those of ``by_id``, kept so that no decision looks at all.
    """

    namespaces: Entries[NamespaceName, Namespace] = field(default_factory=Entries)
    by_id: Entries[str, Bundle] = field(default_factory=Entries)
    tenants: Entries[TenantName, Tenant] = field(default_factory=Entries, metadata=later(since_level=2))
    orders: Entries[str, BundleOrder] = field(default_factory=Entries, metadata=later(since_level=3))
    in_flight: Entries[str, OwnershipState] = field(default_factory=Entries, metadata=later(since_level=3))
