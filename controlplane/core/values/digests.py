"""Digests over many entries: sums of hashes, so that updating a digest costs as much as the change.

The digest of a routing table and the digests of the entries of a state have this form.
"""

import hashlib
from typing import Final

_MODULUS: Final = 1 << 64


def row_hash(key: bytes, value: bytes) -> int:
    """The share of one key and its value in a digest.

    It is the first 8 bytes, big-endian, of SHA-256(key length as big-endian int32, key, value). A digest is the sum of
    the shares of all live keys modulo 2^64.
    """
    hashed = hashlib.sha256(len(key).to_bytes(4, "big") + key + value).digest()
    return int.from_bytes(hashed[:8], "big")


def add_hashes(digest: int, added: int, removed: int = 0) -> int:
    """The digest with one share added and one removed; 0 means no share."""
    return (digest + added - removed) % _MODULUS


def format_digest(digest: int) -> str:
    """A digest as text: 16 hexadecimal digits."""
    return f"{digest:016x}"
