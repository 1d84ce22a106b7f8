"""Encodes and decodes dead letters, candidates and snapshot parts: the records beside decisions and rows."""

from typing import TypeVar

from controlplane.codec.conversion import from_datum, to_datum
from controlplane.codec.framing import default_framing
from controlplane.core.bundles.candidate import Candidate
from controlplane.core.log.snapshots.snapshot_part import SnapshotPart
from controlplane.core.values.dead_letter import DeadLetter
from controlplane.errors import InvalidInputError

_Output = TypeVar("_Output", DeadLetter, Candidate, SnapshotPart)


def encode_dead_letter(dead_letter: DeadLetter) -> bytes:
    """The value of a record of the topic ``dead-letters``."""
    return _encode(dead_letter)


def decode_dead_letter(value: bytes) -> DeadLetter:
    """The dead letter in these bytes.

    Raises:
        InvalidInputError: they are not a dead letter.
    """
    return _decode(DeadLetter, value)


def encode_candidate(candidate: Candidate) -> bytes:
    """The value of a record of the topic ``candidates``."""
    return _encode(candidate)


def decode_candidate(value: bytes) -> Candidate:
    """The candidate in these bytes.

    Raises:
        InvalidInputError: they are not a candidate.
    """
    return _decode(Candidate, value)


def encode_snapshot_part(part: SnapshotPart) -> bytes:
    """The value of a record of the topic ``snapshots``."""
    return _encode(part)


def decode_snapshot_part(value: bytes) -> SnapshotPart:
    """The snapshot part in these bytes.

    Raises:
        InvalidInputError: they are not a snapshot part.
    """
    return _decode(SnapshotPart, value)


def _encode(output: DeadLetter | Candidate | SnapshotPart) -> bytes:
    return default_framing().encode(type(output).__name__, to_datum(output))


def _decode(kind: type[_Output], value: bytes) -> _Output:
    framing = default_framing()
    schema, start = framing.unframe(value)
    if schema.name != kind.__name__:
        raise InvalidInputError("wrong_record_type", f"the record is a {schema.name}, expected a {kind.__name__}")
    return from_datum(kind, framing.decode_body(value, start, schema))
