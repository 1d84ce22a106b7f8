"""The hash functions from a key to its slot.

They are part of the protocol: a client in any language has to compute the same numbers. They equal SOFARegistry's to
the bit (``Crc32cSlotFunction``, ``MD5SlotFunction``). A key's hash in a namespace is
:func:`controlplane.core.bundles.ranges.bundle_hash`.
"""

import hashlib

import google_crc32c

from controlplane.core.cluster.policy import HashFunction
from controlplane.core.values.identifiers import SlotId
from controlplane.core.values.java_text import java_utf8
from controlplane.errors import ConfigurationError

_SIGN_BIT = 1 << 31
_TWO_TO_32 = 1 << 32
_MD5_PREFIX_BYTES = 4


def slot_of(key: str, slot_count: int, function: HashFunction) -> SlotId:
    """The slot of a key: 0 to ``slot_count`` - 1.

    ``crc32c``: the checksum (Castagnoli) as a signed 32-bit number, its absolute value, masked with ``slot_count`` - 1.
    The absolute value comes before the mask, so that about half of the keys have another slot than by the mask alone.
    A ``slot_count`` that is not a power of two leaves some slots unused, as in SOFARegistry.

    ``md5``: the first four bytes of the digest as a little-endian signed number, its absolute value, modulo
    ``slot_count``.

    The absolute value of -2^31 is 2^31. Java's ``Math.abs`` returns -2^31 itself. With the mask, and modulo a power of
    two, both give slot 0. Modulo any other count Java's result is negative and thus not a slot.

    Raises:
        ConfigurationError: ``slot_count`` is less than 1.
    """
    if slot_count < 1:
        raise ConfigurationError(f"slot_count is {slot_count}: a table needs at least one slot")
    absolute = abs(slot_hash(key, function))
    return absolute & (slot_count - 1) if function is HashFunction.CRC32C else absolute % slot_count


def slot_hash(key: str, function: HashFunction) -> int:
    """The signed 32-bit hash of a key, of which :func:`slot_of` uses the absolute value."""
    if function is HashFunction.CRC32C:
        unsigned: int = google_crc32c.value(java_utf8(key))
    else:
        digest = hashlib.md5(java_utf8(key), usedforsecurity=False).digest()
        unsigned = int.from_bytes(digest[:_MD5_PREFIX_BYTES], "little")
    return unsigned if unsigned < _SIGN_BIT else unsigned - _TWO_TO_32
