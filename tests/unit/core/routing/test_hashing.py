"""Frozen answers of the hash functions: clients in other languages have to compute the same numbers."""

import pytest

from controlplane.core.bundles.ranges import bundle_hash
from controlplane.core.cluster.policy import HashFunction
from controlplane.core.routing.hashing import slot_of
from controlplane.errors import ConfigurationError

CRC32C, MD5 = HashFunction.CRC32C, HashFunction.MD5


@pytest.mark.parametrize(
    ("key", "slot_count", "function", "slot"),
    [
        ("aaaaaaaaaa", 256, CRC32C, 208),  # 48 without the absolute value
        ("123456789", 256, CRC32C, 0x7D),
        ("123456789", 1, CRC32C, 0),
        ("", 256, CRC32C, 0),
        ("", 256, MD5, 44),
        ("abc", 16_384, MD5, 0x3E70),
    ],
)
def test_known_slots(key: str, slot_count: int, function: HashFunction, slot: int) -> None:
    """SOFARegistry's vector, the checksum's check value (E3069283 for 123456789), digests of RFC 1321 by hand."""
    assert slot_of(key, slot_count, function) == slot


def test_the_bundle_hash_is_crc32() -> None:
    """The check value of CRC-32 (not of CRC-32C)."""
    assert bundle_hash("123456789") == 0xCBF43926
    assert bundle_hash("") == 0


@pytest.mark.parametrize("function", HashFunction)
def test_surrogates_are_written_as_java_writes_them(function: HashFunction) -> None:
    """A lone half becomes a question mark; two halves that stand together are the character that they encode."""
    assert slot_of("a\ud83d", 256, function) == slot_of("a?", 256, function)
    assert slot_of("\ude00\ud83d", 256, function) == slot_of("??", 256, function)
    assert slot_of("\ud83d\ude00", 256, function) == slot_of("\U0001f600", 256, function)
    assert bundle_hash("a\udfff") == bundle_hash("a?")


def test_the_smallest_integer_has_a_slot_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Math.abs of -2^31 is negative in Java: no count of slots may turn that into a negative slot here."""

    class Digest:
        def digest(self) -> bytes:
            return b"\x00\x00\x00\x80" + bytes(12)

    monkeypatch.setattr("controlplane.core.routing.hashing.hashlib.md5", lambda data, usedforsecurity: Digest())
    monkeypatch.setattr("controlplane.core.routing.hashing.google_crc32c.value", lambda data: 1 << 31)
    assert slot_of("any", 256, MD5) == 0
    assert slot_of("any", 100, MD5) == 2_147_483_648 % 100
    assert slot_of("any", 256, CRC32C) == 0


def test_a_table_without_slots_is_refused() -> None:
    """No slot can be named where there is none."""
    with pytest.raises(ConfigurationError, match="slot_count is 0"):
        slot_of("key", 0, CRC32C)
