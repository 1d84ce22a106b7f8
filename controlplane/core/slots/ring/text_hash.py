"""The hash of HiveMQ's ring: XXH64 with seed 0 over the UTF-16 units of a text, little-endian, as a signed number.

It is what ``LongHashFunction.xx_r39().hashChars(text)`` of OpenHFT's zero-allocation hashing, ``xx()`` in its later
versions, computes on a little-endian machine.
"""

from functools import lru_cache
from typing import Final

from xxhash import xxh64_intdigest

PLACES_PER_NODE: Final = 500
"""Number of places of a node on the ring (HiveMQ's ``NODE_BUCKET_COUNT``)."""

_SIGN_BIT: Final = 1 << 63
_TWO_TO_64: Final = 1 << 64
_NODES_KEPT: Final = 1_024
"""Nodes whose places are kept from one ring to the next, for so many nodes in some 20 MB."""


def text_hash(text: str) -> int:
    """The signed 64-bit hash of a text. Unpaired surrogates are hashed as they are.

    Raises:
        TypeError: it is not a text. Bytes have no UTF-16 units: decode them first, as every other client has to.
    """
    _require_text(text)
    unsigned: int = xxh64_intdigest(text.encode("utf-16-le", "surrogatepass"))
    return unsigned if unsigned < _SIGN_BIT else unsigned - _TWO_TO_64


def virtual_node_name(node: str, index: int) -> str:
    """The name of a virtual node: the node's name and the index, with nothing between them.

    Two nodes may have the same one: ``n1`` with 10 is ``n110``, and so is ``n11`` with 0.
    """
    return f"{node}{index}"


@lru_cache(maxsize=_NODES_KEPT)
def places_of(node: str) -> tuple[int, ...]:
    """The places of a node on a ring, by the index of the virtual node.

    Raises:
        TypeError: the node's name is not a text.
    """
    _require_text(node)
    return tuple(text_hash(virtual_node_name(node, index)) for index in range(PLACES_PER_NODE))


def utf16_order(text: str) -> bytes:
    """A key that orders texts by their UTF-16 units (Java's ``String.compareTo``). Python orders them by characters."""
    return text.encode("utf-16-be", "surrogatepass")


def _require_text(value: object) -> None:
    if not isinstance(value, str):
        raise TypeError(f"a ring hashes texts, and {value!r:.80} is of type {type(value).__name__}: decode it first")
