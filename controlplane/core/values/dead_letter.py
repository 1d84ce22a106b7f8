"""Dead letters: refused inputs, kept for inspection."""

from dataclasses import dataclass
from typing import Final

RAW_KEPT_BYTES: Final = 64 * 1024
"""Greatest number of bytes of a refused record that a dead letter keeps."""


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A refused input with its reason. Topic ``dead-letters``, key: the coordinates of the input.

    Attributes:
        reason: short stable code, also a label of the counter.
        detail: description for display.
        topic: topic of the input, without the cluster's prefix.
        partition: partition of the input.
        offset: offset of the input.
        append_time_ms: time at which the broker appended the input.
        writer: id of the controller that refused it, or ``pipeline``.
        raw: the first bytes of the input, at most :data:`RAW_KEPT_BYTES`.
        raw_length_bytes: length of the whole input.
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
