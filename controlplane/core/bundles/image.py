"""The image of the bundles: namespaces and their bundles."""

from dataclasses import dataclass, field

from controlplane.core.bundles.bundle import Bundle, Namespace
from controlplane.core.values.entries import Entries
from controlplane.core.values.identifiers import NamespaceName
from controlplane.core.values.image import Image


@dataclass(frozen=True)
class BundlesImage(Image):
    """The part of the state that concerns bundles.

    Attributes:
        namespaces: namespaces by name.
        by_id: the bundles of all namespaces by bundle id.
    """

    namespaces: Entries[NamespaceName, Namespace] = field(default_factory=Entries)
    by_id: Entries[str, Bundle] = field(default_factory=Entries)
