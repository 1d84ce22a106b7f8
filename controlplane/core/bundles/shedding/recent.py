"""The bundles that were unloaded lately and are not shed again for a while (Pulsar's recentlyUnloadedBundles)."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from controlplane.core.values.ordered_map import OrderedMap

_MS_PER_MIN: Final = 60_000


@dataclass(frozen=True, slots=True)
class RecentlyUnloaded:
    """What the leader remembers of unloads.

    The leader of the extensible manager forgets it when another node takes its place; that of the modular one does not.

    Attributes:
        at_ms: by bundle, when it was unloaded last; the leader's clock.
    """

    at_ms: Mapping[str, int] = field(default_factory=dict)

    @property
    def bundle_ids(self) -> frozenset[str]:
        """The bundles, as shedders take them."""
        return frozenset(self.at_ms)

    def within(self, now_ms: int, grace_min: int) -> "RecentlyUnloaded":
        """Without the bundles that were unloaded longer ago than the grace period: what a cycle begins with."""
        limit_ms = now_ms - grace_min * _MS_PER_MIN
        return RecentlyUnloaded({each: at_ms for each, at_ms in self.at_ms.items() if at_ms >= limit_ms})

    def with_unloaded(self, bundle_ids: Iterable[str], now_ms: int) -> "RecentlyUnloaded":
        """With bundles that were unloaded now. One whose unload failed does not count, and may be shed again."""
        return RecentlyUnloaded(OrderedMap.of(self.at_ms).put((each, now_ms) for each in bundle_ids))
