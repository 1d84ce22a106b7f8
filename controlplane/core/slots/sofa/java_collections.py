"""java.util.HashMap and HashSet, as far as their iteration order matters.

SOFARegistry sorts by counts only, so ties keep the order of a Java hash map: bins ascending, and the chain within a
bin. The rules are those of Java 17 (``HashMap.putVal``, ``computeIfAbsent``, ``resize``, ``treeifyBin``).

Bins of more than seven keys in a table of 64 bins or more, which Java turns into trees, are not emulated. Only names
that were made to collide form such bins.
"""

import functools
from collections.abc import Callable, Iterable, Iterator
from typing import Final, Generic, TypeVar

JavaKey = TypeVar("JavaKey", str, int)
JavaValue = TypeVar("JavaValue")

_DEFAULT_CAPACITY: Final = 16
_TREEIFY_THRESHOLD: Final = 8
_MIN_TREEIFY_CAPACITY: Final = 64
_MASK: Final = 0xFFFFFFFF


@functools.lru_cache(1 << 16)
def java_hash(key: str | int) -> int:
    """``hashCode()`` of a String or an Integer, as an unsigned 32-bit number."""
    if isinstance(key, int):
        return key & _MASK
    code = 0
    for unit in utf16_units(key):
        code = 31 * code + unit & _MASK
    return code


def utf16_units(text: str) -> list[int]:
    """The UTF-16 code units of a text, on which Java's ``String.hashCode`` and ``compareTo`` are defined."""
    encoded = text.encode("utf-16-be", "surrogatepass")
    return [encoded[index] << 8 | encoded[index + 1] for index in range(0, len(encoded), 2)]


class JavaMap(Generic[JavaKey, JavaValue]):
    """A HashMap, initially empty with sixteen bins.

    Args:
        capacity: number of bins, a power of two.
    """

    def __init__(self, capacity: int = _DEFAULT_CAPACITY) -> None:
        self._bins: list[list[JavaKey]] = [[] for _ in range(capacity)]
        self._values: dict[JavaKey, JavaValue] = {}

    def __contains__(self, key: object) -> bool:
        """Whether the key exists."""
        return key in self._values

    def __len__(self) -> int:
        """The number of keys."""
        return len(self._values)

    def __iter__(self) -> Iterator[JavaKey]:
        """The keys in Java's order."""
        for keys in self._bins:
            yield from keys

    def __getitem__(self, key: JavaKey) -> JavaValue:
        """The value of a key.

        Raises:
            KeyError: the key does not exist.
        """
        return self._values[key]

    def get(self, key: JavaKey, default: JavaValue) -> JavaValue:
        """The value of a key, or a default if the key does not exist."""
        return self._values.get(key, default)

    def values(self) -> Iterator[JavaValue]:
        """The values, in the order of their keys."""
        return (self._values[key] for key in self)

    def put(self, key: JavaKey, value: JavaValue) -> None:
        """``put``: a new key goes to the end of its bin."""
        is_new = key not in self._values
        self._values[key] = value
        if not is_new:
            return
        chain = self._bin_of(key)
        chain.append(key)
        if len(chain) > _TREEIFY_THRESHOLD:
            self._split_crowded()
        if len(self._values) > self._threshold:
            self._double()

    def put_if_absent(self, key: JavaKey, value: JavaValue) -> None:
        """``putIfAbsent``: as ``put``, unless the key exists."""
        if key not in self._values:
            self.put(key, value)

    def compute_if_absent(self, key: JavaKey, new: Callable[[], JavaValue]) -> JavaValue:
        """``computeIfAbsent``: a new key goes to the front of its bin, and the table grows before the insertion."""
        if len(self._values) > self._threshold:
            self._double()
        if key not in self._values:
            chain = self._bin_of(key)
            others = len(chain)
            chain.insert(0, key)
            self._values[key] = new()
            if others >= _TREEIFY_THRESHOLD - 1:
                self._split_crowded()
        return self._values[key]

    def remove(self, key: JavaKey) -> None:
        """``remove``: the table keeps its capacity."""
        if key in self._values:
            del self._values[key]
            self._bin_of(key).remove(key)

    @property
    def _threshold(self) -> int:
        return len(self._bins) * 3 // 4

    def _bin_of(self, key: JavaKey) -> list[JavaKey]:
        code = java_hash(key)
        return self._bins[(code ^ code >> 16) & len(self._bins) - 1]

    def _split_crowded(self) -> None:
        if len(self._bins) < _MIN_TREEIFY_CAPACITY:
            self._double()

    def _double(self) -> None:
        keys = list(self)
        self._bins = [[] for _ in range(2 * len(self._bins))]
        for key in keys:
            self._bin_of(key).append(key)


def tree_set(texts: Iterable[str]) -> list[str]:
    """A TreeSet of Strings: without repetition, ordered by UTF-16 code units."""
    return sorted(set(texts), key=utf16_units)


def java_set(keys: Iterable[JavaKey], capacity: int = _DEFAULT_CAPACITY) -> JavaMap[JavaKey, None]:
    """A HashSet to which the keys were added one by one."""
    found: JavaMap[JavaKey, None] = JavaMap(capacity)
    for key in keys:
        found.put(key, None)
    return found


def copied_set(keys: list[JavaKey]) -> JavaMap[JavaKey, None]:
    """``new HashSet(collection)``: room for the collection from the start."""
    wanted = max(len(keys) * 4 // 3 + 1, _DEFAULT_CAPACITY)
    return java_set(keys, 1 << (wanted - 1).bit_length())
