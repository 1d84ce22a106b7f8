"""Dead letters: refused inputs, kept to be looked into."""

from dataclasses import dataclass
from typing import Final

RAW_KEPT_BYTES: Final = 64 * 1024
"""How much of a refused record's bytes a dead letter keeps."""


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A refused input with everything needed to look into it. Topic ``dead-letters``, key: the source's coordinates.

    Attributes:
        reason: short stable code, also the counter's label.
        detail: a sentence for people.
        topic: the source topic without the cluster's prefix.
        partition: the source partition.
        offset: the source offset.
        append_time_ms: when the broker appended the input.
        writer: who refused it: a controller's id or ``pipeline``.
        raw: the bytes, cut at 64 KiB.
        raw_length_bytes: their whole length.
    """

    reason: str
    detail: str
    topic: str
    partition: int
    offset: int
    append_time_ms: int
    writer: str
    raw: bytes
    raw_length_bytes: int
