"""What a sample is, and the values that samples of several subjects have in common."""

from dataclasses import dataclass

from controlplane.codec.decisions import DEFAULT_MAX_PART_BYTES
from controlplane.core.values.addresses import Address

STARTED_MS = 1_760_000_000_000
KV = Address("kv", "10.0.0.7", 4_000)
BUNDLE_ID = "kv/0x00000000_0x40000000"


@dataclass(frozen=True, slots=True)
class Sample:
    """A value whose bytes are frozen under a name that is unique for its record."""

    name: str
    value: object
    max_part_bytes: int = DEFAULT_MAX_PART_BYTES
