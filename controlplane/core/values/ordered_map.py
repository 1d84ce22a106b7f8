"""A persistent map in the order in which its keys first came.

A rule's memory and view depend on that order: sums of floating-point numbers and ties follow it. A change returns a new
map that shares unchanged parts with the old one (a hash array mapped trie, Bagwell 2001), so its cost depends on the
size of the change and not on the size of the map. ``Entries`` in turn is sorted, and keeps a digest of its content.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Self, TypeVar

import immutables

K = TypeVar("K")
V = TypeVar("V")


class OrderedMap(Mapping[K, V]):
    """An immutable map; :meth:`put` and :meth:`drop` return a changed map.

    It equals every map with equal entries, whatever their order.
    """

    __slots__ = ("_keys", "_next_position", "_positions", "_values")

    def __init__(self, entries: Mapping[K, V] | Iterable[tuple[K, V]] = ()) -> None:
        """Create a map from a mapping, or from pairs; the last pair of a key counts, at the place of the first."""
        given = dict(entries)
        self._values: immutables.Map[K, V] = immutables.Map(given)
        self._positions: immutables.Map[K, int] = immutables.Map(zip(given, range(len(given)), strict=True))
        self._next_position = len(given)
        self._keys: tuple[K, ...] | None = tuple(given)

    @classmethod
    def of(cls, entries: Mapping[K, V]) -> Self:
        """The map with these entries; a map of this class is returned as it is."""
        return entries if isinstance(entries, cls) else cls(entries)

    def put(self, changed: Iterable[tuple[K, V]]) -> Self:
        """The map with these entries added at the end, or replaced where the key is."""
        values, positions, next_position = self._values.mutate(), self._positions.mutate(), self._next_position
        for key, value in changed:
            values[key] = value
            if key not in positions:
                positions[key] = next_position
                next_position += 1
        keys = self._keys if next_position == self._next_position else None
        return self._of(values.finish(), positions.finish(), next_position, keys)

    def drop(self, keys: Iterable[K]) -> Self:
        """The map without the entries of these keys.

        Raises:
            KeyError: a key has no entry.
        """
        values, positions = self._values.mutate(), self._positions.mutate()
        for key in keys:
            del values[key], positions[key]
        return self._of(values.finish(), positions.finish(), self._next_position, None)

    def __getitem__(self, key: K) -> V:
        return self._values[key]

    def __contains__(self, key: object) -> bool:
        return key in self._values

    def __iter__(self) -> Iterator[K]:
        if self._keys is None:
            self._keys = tuple(sorted(self._positions, key=self._positions.__getitem__))
        return iter(self._keys)

    def __len__(self) -> int:
        return len(self._values)

    __hash__ = None  # type: ignore[assignment]  # like every mapping: values need not be hashable

    def __repr__(self) -> str:
        return f"OrderedMap({dict(self)!r})"

    def _of(
        self,
        values: "immutables.Map[K, V]",
        positions: "immutables.Map[K, int]",
        next_position: int,
        keys: tuple[K, ...] | None,
    ) -> Self:
        made = object.__new__(type(self))
        made._values, made._positions, made._next_position, made._keys = values, positions, next_position, keys
        return made
