"""The default partitioner of Kafka's Java clients, which all clients of this package use."""

from typing import Final

_UINT32: Final = 0xFFFFFFFF


def partition_of(key: bytes, partition_count: int) -> int:
    """The partition for a key, as Java's ``DefaultPartitioner`` chooses it (murmur2)."""
    return (murmur2(key) & 0x7FFFFFFF) % partition_count


def murmur2(data: bytes) -> int:
    """MurmurHash2 of Austin Appleby, 32 bits, with the seed 0x9747b28c of Kafka's clients."""
    multiplier = 0x5BD1E995
    state = (0x9747B28C ^ len(data)) & _UINT32
    whole = len(data) - len(data) % 4
    for start in range(0, whole, 4):
        word = int.from_bytes(data[start : start + 4], "little") * multiplier & _UINT32
        word = (word ^ word >> 24) * multiplier & _UINT32
        state = state * multiplier & _UINT32 ^ word
    if rest := data[whole:]:
        state = (state ^ int.from_bytes(rest, "little")) * multiplier & _UINT32
    state = (state ^ state >> 13) * multiplier & _UINT32
    return state ^ state >> 15
