"""Inputs of the log as every part of the core sees them: a payload with its place, and what is refused."""

from typing import NamedTuple, Self

from controlplane.core.values.dead_letter import RAW_KEPT_BYTES
from controlplane.core.values.identifiers import Coordinates


class InputRecord(NamedTuple):
    """A decoded input with its place in the log and its bytes, which a dead letter needs.

    Attributes:
        coordinates: topic (without prefix), partition, offset, append time.
        payload: the decoded record, or None where the bytes could not be used and a dead letter was written.
        raw: the bytes as they stood in the log.
    """

    coordinates: Coordinates
    payload: object | None
    raw: bytes


class Refusal(NamedTuple):
    """An input that is refused: it becomes a dead letter and has no other effect.

    Attributes:
        coordinates: topic (without prefix), partition, offset, append time.
        reason: a word from the closed list.
        detail: what is wrong, in a sentence.
        raw: the first bytes of the record, as many as a dead letter keeps at most: refusals wait in memory.
        raw_length_bytes: of the whole record.
    """

    coordinates: Coordinates
    reason: str
    detail: str
    raw: bytes
    raw_length_bytes: int

    @classmethod
    def of(cls, coordinates: Coordinates, reason: str, detail: str, record: bytes) -> Self:
        """The refusal of a record with these bytes."""
        return cls(coordinates, reason, detail, record[:RAW_KEPT_BYTES], len(record))
