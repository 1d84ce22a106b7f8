"""Input records and refusals."""

from typing import NamedTuple, Self

from controlplane.core.values.dead_letter import RAW_KEPT_BYTES
from controlplane.core.values.identifiers import Coordinates


class InputRecord(NamedTuple):
    """A decoded input with its place and its bytes, which a dead letter needs.

    Attributes:
        coordinates: topic (without prefix), partition, offset, append time.
        payload: the decoded record; None if it was refused and became a dead letter.
        raw: the bytes as read.
    """

    coordinates: Coordinates
    payload: object | None
    raw: bytes


class Refusal(NamedTuple):
    """A refused input. It becomes a dead letter and has no other effect.

    Attributes:
        coordinates: topic (without prefix), partition, offset, append time.
        reason: short stable code from a closed list.
        detail: description for display.
        raw: the first bytes of the record, no more than a dead letter keeps, because refusals are held in memory.
        raw_length_bytes: length of the whole record.
    """

    coordinates: Coordinates
    reason: str
    detail: str
    raw: bytes
    raw_length_bytes: int

    @classmethod
    def of(cls, coordinates: Coordinates, reason: str, detail: str, record: bytes) -> Self:
        """The refusal of a record with the bytes ``record``."""
        return cls(coordinates, reason, detail, record[:RAW_KEPT_BYTES], len(record))
