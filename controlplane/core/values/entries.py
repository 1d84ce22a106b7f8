"""Entries: a persistent map that keeps its own digest. Images hold their nodes, slots, bundles and so on in such maps.

A change returns a new map that shares unchanged parts with the old one (a hash array mapped trie, Bagwell 2001). So the
cost depends on the size of the change and not on the size of the map. The same holds for the digest. Iteration is in
the order of keys, so that equal maps give equal sequences in every process. The keys are sorted at the first iteration;
maps that put replaces values in, or drop takes keys from, go on with that order.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import reduce
from itertools import pairwise
from typing import Final, Self, TypeVar

import immutables

from controlplane.core.values.canonical import canonical_bytes, written_as_pairs
from controlplane.core.values.digests import add_hashes, row_hash

K = TypeVar("K")
"""Text, a number, or a tuple of those. The keys of one map have to be comparable with each other."""
V = TypeVar("V")
_NO_ENTRY: Final = (None, 0)


@written_as_pairs
class Entries(Mapping[K, V]):
    """An immutable map; :meth:`put` and :meth:`drop` return a changed map.

    Equal maps have equal digests. The canonical form is a list of [key, value] pairs, ascending by key.
    """

    __slots__ = ("_digest", "_keys", "_map")

    def __init__(self, entries: Mapping[K, V] | Iterable[tuple[K, V]] = ()) -> None:
        """Create a map from a mapping, or from pairs; the last pair of a key counts."""
        # Each value with its share: a change then takes the hash of the new value only.
        self._map: immutables.Map[K, tuple[V, int]] = immutables.Map(
            {key: (value, self._share(key, value)) for key, value in dict(entries).items()}
        )
        self._digest = reduce(add_hashes, (share for _, share in self._map.values()), 0)
        self._keys: tuple[K, ...] | None = None

    @property
    def digest(self) -> int:
        """The sum modulo 2^64 of the shares of all entries; see :func:`entry_share`."""
        return self._digest

    def computed_digest(self) -> int:
        """The digest computed from all entries, which :attr:`digest` has to equal."""
        digest = 0
        for key, (value, _) in self._map.items():
            digest = add_hashes(digest, self._share(key, value))
        return digest

    def put(self, changed: Iterable[tuple[K, V]]) -> Self:
        """The map with these entries added, or replaced where the key exists."""
        digest = self._digest
        changing = self._map.mutate()
        for key, value in changed:
            _, removed = changing.get(key, _NO_ENTRY)
            share = self._share(key, value)
            digest = add_hashes(digest, share, removed)
            changing[key] = value, share
        made = changing.finish()
        return self._of(made, digest, self._keys if len(made) == len(self._map) else None)

    def drop(self, keys: Iterable[K]) -> Self:
        """The map without the entries of these keys.

        Raises:
            KeyError: a key has no entry.
        """
        digest = self._digest
        changing = self._map.mutate()
        dropped = tuple(keys)
        for key in dropped:
            digest = add_hashes(digest, 0, changing.pop(key)[1])
        return self._of(changing.finish(), digest, None if self._keys is None else _without(self._keys, dropped))

    def __getitem__(self, key: K) -> V:
        return self._map[key][0]

    def __contains__(self, key: object) -> bool:
        return key in self._map

    def __iter__(self) -> Iterator[K]:
        if self._keys is None:
            self._keys = tuple(sorted(self._map))  # type: ignore[type-var]  # see K
        return iter(self._keys)

    def __len__(self) -> int:
        return len(self._map)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Entries):
            return self._digest == other._digest and self._map == other._map
        return super().__eq__(other)

    __hash__ = None  # type: ignore[assignment]  # like every mapping: values need not be hashable

    def __repr__(self) -> str:
        return f"Entries({dict(self)!r})"

    def _share(self, key: K, value: V) -> int:
        """The share of one entry in the digest."""
        return entry_share(key, value)

    def _of(self, entries: "immutables.Map[K, tuple[V, int]]", digest: int, keys: tuple[K, ...] | None) -> Self:
        made = object.__new__(type(self))
        made._map, made._digest, made._keys = entries, digest, keys
        return made


def _without(keys: tuple[K, ...], dropped: Sequence[K]) -> tuple[K, ...]:
    """Ascending keys without some of them. Copying what is between them is much faster than sorting."""
    places = sorted(bisect_left(keys, key) for key in dropped)  # type: ignore[call-overload]  # see K
    kept: list[K] = []
    for start, end in pairwise([-1, *places, len(keys)]):
        kept += keys[start + 1 : end]
    return tuple(kept)


def entry_share(key: object, value: object) -> int:
    """The share of one entry: :func:`controlplane.core.values.digests.row_hash` of both canonical bytes."""
    return row_hash(canonical_bytes(key), canonical_bytes(value))
