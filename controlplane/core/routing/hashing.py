"""From a key to its slot, and from a key to its place in a namespace's hash space.

These functions are part of the wire contract: a client in any language computes the same numbers. The slot functions
are SOFARegistry's, to the bit (``Crc32cSlotFunction``, ``MD5SlotFunction``); the bundle hash is Pulsar's.
"""

import hashlib
import zlib

import google_crc32c

from controlplane.core.cluster.policy import HashFunction
from controlplane.core.values.identifiers import SlotId
from controlplane.errors import ConfigurationError

_SIGN_BIT = 1 << 31
_TWO_TO_32 = 1 << 32
_MD5_PREFIX_BYTES = 4


def slot_of(key: str, slot_count: int, function: HashFunction) -> SlotId:
    """The hash slot of a key: 0 to ``slot_count`` - 1.

    ``crc32c``: the checksum (Castagnoli) as a signed 32-bit number, its absolute value, masked with ``slot_count`` - 1.
    The absolute value is taken before the mask, so about half of the keys land elsewhere than by the mask alone.
    A ``slot_count`` that is no power of two leaves some slots unused, as in SOFARegistry.

    ``md5``: the first four bytes of the digest as a little-endian signed number, its absolute value, modulo
    ``slot_count``.

    Java's ``Math.abs`` of the smallest integer is that negative number itself. Under the mask, and modulo a power of
    two, it gives slot 0 with or without the sign; modulo any other count Java's answer would be a negative slot, so
    here the true absolute value, 2^31, is taken: equal wherever Java's answer is a slot at all.

    Raises:
        ConfigurationError: ``slot_count`` is under 1.
    """
    if slot_count < 1:
        raise ConfigurationError(f"slot_count is {slot_count}: a table needs at least one slot")
    absolute = abs(slot_hash(key, function))
    return absolute & (slot_count - 1) if function is HashFunction.CRC32C else absolute % slot_count


def slot_hash(key: str, function: HashFunction) -> int:
    """The signed 32-bit number of a key whose absolute value :func:`slot_of` takes."""
    if function is HashFunction.CRC32C:
        unsigned: int = google_crc32c.value(_java_utf8(key))
    else:
        digest = hashlib.md5(_java_utf8(key), usedforsecurity=False).digest()
        unsigned = int.from_bytes(digest[:_MD5_PREFIX_BYTES], "little")
    return unsigned if unsigned < _SIGN_BIT else unsigned - _TWO_TO_32


def bundle_hash(key: str) -> int:
    """A key's place in its namespace's hash space, 0 to 2^32 - 1: the CRC-32 of its UTF-8, as Pulsar hashes topics."""
    return zlib.crc32(_java_utf8(key))


def _java_utf8(key: str) -> bytes:
    """The UTF-8 bytes that Java writes for the same string: a surrogate without its partner becomes ``?``.

    Python may hold the two halves of a pair as two characters; Java cannot tell those from the one that they encode.
    """
    try:
        return key.encode()
    except UnicodeEncodeError:
        return key.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass").encode("utf-8", "replace")
