"""The bundles of the table in use: found by their hashes, and compared with those of the table before."""

from bisect import bisect_right
from collections.abc import Mapping

from controlplane.core.bundles.bundle import Bundle
from controlplane.core.values.identifiers import NamespaceName


class BundleIndex:
    """The bundles of one table. Not thread-safe.

    A table shares the rows that did not change with the one before, and there may be 100,000. So rows are compared by
    their identity, and only the namespaces with a changed row are sorted again, when a key of them is looked up.
    """

    def __init__(self) -> None:
        """Begin without bundles."""
        self._rows: Mapping[str, Bundle] = {}
        self._by_namespace: dict[NamespaceName, dict[str, Bundle]] = {}
        self._sorted: dict[NamespaceName, tuple[list[int], list[Bundle]]] = {}

    @property
    def rows(self) -> Mapping[str, Bundle]:
        """The bundles by id."""
        return self._rows

    def follow(self, rows: Mapping[str, Bundle]) -> dict[str, Bundle | None]:
        """Take the bundles of the next table; return those whose rows are other objects, None for those that ended."""
        before, self._rows = self._rows, rows
        if rows is before:
            return {}
        changed: dict[str, Bundle | None] = {key: row for key, row in rows.items() if before.get(key) is not row}
        ended = [bundle_id for bundle_id in before if bundle_id not in rows]
        for bundle_id in ended:
            changed[bundle_id] = None
            namespace = before[bundle_id].namespace
            del self._by_namespace[namespace][bundle_id]
            self._sorted.pop(namespace, None)
        for bundle_id, row in changed.items():
            if row is not None:
                self._by_namespace.setdefault(row.namespace, {})[bundle_id] = row
                self._sorted.pop(row.namespace, None)
        return changed

    def at(self, namespace: NamespaceName, hashed: int) -> Bundle | None:
        """The bundle of a namespace that holds a hash; None if there is none."""
        lowers, bundles = self._ascending(namespace)
        place = bisect_right(lowers, hashed) - 1
        return bundles[place] if place >= 0 and hashed < bundles[place].end else None

    def within(self, parent: Bundle) -> list[Bundle]:
        """The bundles of a namespace whose ranges are parts of another one's, ascending."""
        lowers, bundles = self._ascending(parent.namespace)
        begin, end = bisect_right(lowers, parent.lower - 1), bisect_right(lowers, parent.end - 1)
        return [each for each in bundles[begin:end] if each.end <= parent.end]

    def _ascending(self, namespace: NamespaceName) -> tuple[list[int], list[Bundle]]:
        known = self._sorted.get(namespace)
        if known is None:
            bundles = sorted(self._by_namespace.get(namespace, {}).values(), key=lambda each: each.lower)
            known = self._sorted[namespace] = [each.lower for each in bundles], bundles
        return known
