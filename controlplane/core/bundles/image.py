"""The image of the bundles: tenants, namespaces and their bundles."""

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field
from functools import cached_property

from controlplane.core.bundles.bundle import Bundle, Namespace
from controlplane.core.bundles.orders import BundleOrder
from controlplane.core.bundles.ownership_state import OwnershipState
from controlplane.core.bundles.tenants import Tenant
from controlplane.core.values.canonical import later
from controlplane.core.values.entries import Entries
from controlplane.core.values.identifiers import NamespaceName, NodeId, TenantName
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

    @cached_property
    def bundle_counts(self) -> Counter[NodeId]:
        """How many bundles each node owns or is to own."""
        return _counted(self, self.by_id)

    def take_counts_from(self, before: "BundlesImage", changed: Collection[str]) -> None:
        """Keep :attr:`bundle_counts` of the image before a change, where they are known.

        While bundles move, each decision needs them, and changes few of them.

        Args:
            before: the image before the change.
            changed: the ids of the bundles that were added, replaced or removed, each once.
        """
        known = before.__dict__.get("bundle_counts")
        if known is None:
            return
        counts = Counter(known)
        counts.subtract(_counted(before, changed))
        counts.update(_counted(self, changed))
        self.__dict__["bundle_counts"] = +counts


def _counted(image: BundlesImage, bundle_ids: Collection[str]) -> Counter[NodeId]:
    bundles = (image.by_id.get(bundle_id) for bundle_id in bundle_ids)
    return Counter(name for each in bundles if each is not None and (name := each.counted_for) is not None)
