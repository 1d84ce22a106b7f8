"""The hash functions against naive ones written from the definitions."""

import hashlib
import struct

from hypothesis import given
from hypothesis import strategies as st

from controlplane.core.bundles.ranges import bundle_hash
from controlplane.core.cluster.policy import HashFunction
from controlplane.core.routing.hashing import slot_of

ANY_TEXT = st.text()
POWERS_OF_TWO = st.integers(0, 20).map(lambda power: 1 << power)


def _reflected_crc(data: bytes, polynomial: int) -> int:
    """A cyclic redundancy check, bit by bit, as a signed number like Java's."""
    remainder = 0xFFFFFFFF
    for byte in data:
        remainder ^= byte
        for _ in range(8):
            remainder = remainder >> 1 ^ (polynomial if remainder & 1 else 0)
    (signed,) = struct.unpack("<i", struct.pack("<I", remainder ^ 0xFFFFFFFF))
    return int(signed)


@given(ANY_TEXT, POWERS_OF_TWO)
def test_crc32c_slots(key: str, slot_count: int) -> None:
    """The Castagnoli checksum, Java's absolute value, the mask."""
    signed = _reflected_crc(key.encode(), 0x82F63B78)
    expected = (signed if signed >= 0 else -signed) & (slot_count - 1)
    assert slot_of(key, slot_count, HashFunction.CRC32C) == expected


@given(ANY_TEXT, st.integers(1, 100_000))
def test_md5_slots(key: str, slot_count: int) -> None:
    """The digest's first four bytes as a little-endian signed number, its absolute value, the remainder."""
    (signed,) = struct.unpack_from("<i", hashlib.md5(key.encode()).digest())  # noqa: S324 - the rule's own function
    assert slot_of(key, slot_count, HashFunction.MD5) == abs(signed) % slot_count


@given(ANY_TEXT)
def test_bundle_hashes(key: str) -> None:
    """The checksum of Ethernet, unsigned."""
    assert bundle_hash(key) == _reflected_crc(key.encode(), 0xEDB88320) % (1 << 32)


@given(st.text(st.characters()), POWERS_OF_TWO, st.sampled_from(HashFunction))
def test_every_string_has_a_slot(key: str, slot_count: int, function: HashFunction) -> None:
    """No key, surrogates included, falls outside the table or stops the program."""
    assert 0 <= slot_of(key, slot_count, function) < slot_count


@given(st.text(max_size=20), st.integers(0, 12), st.integers(0, 8), st.sampled_from(HashFunction))
def test_split_slot_keeps_its_keys_among_its_parts(key: str, bits: int, more: int, function: HashFunction) -> None:
    """With 2^more times as many slots a key of slot s is in one of s + k * count: a split moves no data."""
    count = 1 << bits
    assert slot_of(key, count << more, function) % count == slot_of(key, count, function)
