"""Keys with their hashes: those at which implementations differ, and those at the bounds of slots and bundles."""

import hashlib
import zlib
from collections.abc import Callable
from typing import Any

import google_crc32c

from controlplane.core.bundles.bundle import equal_bundles
from controlplane.core.bundles.ranges import bundle_hash
from controlplane.core.cluster.policy import HashFunction
from controlplane.core.routing.hashing import slot_of

SLOT_COUNTS = (1, 2, 16, 256, 1_024, 16_384, 1 << 20)
BUNDLE_COUNTS = (1, 2, 3, 4, 7, 16, 27, 33, 100, 128)
_SIGN_BIT = 1 << 31

TEXTS: dict[str, str] = {
    "empty": "",
    "one letter, high bit": "a",
    "high bit of crc32c": "user-3",
    "no high bit": "user-17",
    "check value": "123456789",
    "one null character": "\x00",
    "spaces are part of the key": " user-17 ",
    "upper case is another key": "USER-17",
    "slashes": "tenant/eu-1/orders",
    "line break and quote": 'a\n"b"',
    "two bytes in UTF-8": "ключ",
    "three bytes in UTF-8": "键",
    "four bytes in UTF-8": "\U0001f600",
    "composed": "é",
    "decomposed": "e\u0301",
    "long": "0123456789abcdef" * 64,
}
CRC32C_TARGETS: dict[str, int] = {
    "crc32c is the smallest signed integer": 0x8000_0000,
    "crc32c is -1": 0xFFFF_FFFF,
    "crc32c is the greatest signed integer": 0x7FFF_FFFF,
}
CRC32_TARGETS: dict[str, int] = {
    "last hash of the first quarter": 0x3FFF_FFFF,
    "first hash of the second quarter": 0x4000_0000,
    "first hash with the high bit": 0x8000_0000,
    "last hash of all": 0xFFFF_FFFF,
}


def hash_cases() -> list[dict[str, Any]]:
    """The contents of ``hashes.json``."""
    wanted = {name: key_with_checksum(google_crc32c.value, value) for name, value in CRC32C_TARGETS.items()}
    return [_hash_case(name, key) for name, key in (TEXTS | wanted).items()]


def bundle_cases() -> list[dict[str, Any]]:
    """The contents of ``bundles.json``."""
    wanted = {name: key_with_checksum(zlib.crc32, value) for name, value in CRC32_TARGETS.items()}
    return [_bundle_case(name, key) for name, key in (TEXTS | wanted).items()]


def _hash_case(name: str, key: str) -> dict[str, Any]:
    return {
        "name": name,
        "key": key,
        "utf8": key.encode().hex(),
        "crc32c": _signed(google_crc32c.value(key.encode())),
        "md5": hashlib.md5(key.encode(), usedforsecurity=False).hexdigest(),
        "slots": {
            function.value: {str(count): slot_of(key, count, function) for count in SLOT_COUNTS}
            for function in HashFunction
        },
    }


def _bundle_case(name: str, key: str) -> dict[str, Any]:
    hashed = bundle_hash(key)
    found = {}
    for count in BUNDLE_COUNTS:
        (bundle,) = (each for each in equal_bundles("kv", count) if each.lower <= hashed < each.end)
        found[str(count)] = bundle.bundle_id
    return {"name": name, "key": key, "utf8": key.encode().hex(), "crc32": hashed, "bundles": found}


def _signed(unsigned: int) -> int:
    return unsigned - (1 << 32) if unsigned >= _SIGN_BIT else unsigned


def key_with_checksum(checksum: Callable[[bytes], int], wanted: int) -> str:
    """A text of letters that has this CRC.

    A CRC is linear over GF(2): what changing one letter does to it does not depend on the others. So which letters to
    change is a system of linear equations, solved by elimination.
    """
    text = bytearray(b"k" * 48)
    zero = checksum(bytes(text))
    pivots: dict[int, tuple[int, int]] = {}
    for place in range(len(text)):
        changed = bytearray(text)
        changed[place] = ord("j")
        effect, places = checksum(bytes(changed)) ^ zero, 1 << place
        while effect and effect.bit_length() in pivots:
            known, known_places = pivots[effect.bit_length()]
            effect, places = effect ^ known, places ^ known_places
        if effect:
            pivots[effect.bit_length()] = effect, places
    left, chosen = checksum(bytes(text)) ^ wanted, 0
    while left:
        effect, places = pivots[left.bit_length()]
        left, chosen = left ^ effect, chosen ^ places
    key = bytes(ord("j") if chosen >> place & 1 else letter for place, letter in enumerate(text))
    assert checksum(key) == wanted
    return key.decode("ascii")
