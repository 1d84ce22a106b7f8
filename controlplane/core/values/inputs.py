"""Inputs of the log as every part of the core sees them: a payload with its place, and what is refused."""

from typing import NamedTuple

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
    """An input that is refused: it becomes a dead letter and has no other effect."""

    coordinates: Coordinates
    reason: str
    detail: str
    raw: bytes
