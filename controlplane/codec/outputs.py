"""Dead letters, candidates and snapshot parts: records that stand beside decisions and rows."""

from typing import TypeVar

from controlplane.codec.conversion import from_datum, to_datum
from controlplane.codec.framing import Framing, default_framing
from controlplane.core.outputs import Candidate, DeadLetter, SnapshotPart
from controlplane.errors import InvalidInputError

_Output = TypeVar("_Output", DeadLetter, Candidate, SnapshotPart)


def encode_dead_letter(dead_letter: DeadLetter, framing: Framing | None = None) -> bytes:
    """The value of a record of the topic ``dead-letters``."""
    return _encode(dead_letter, framing)


def decode_dead_letter(value: bytes, framing: Framing | None = None) -> DeadLetter:
    """The dead letter in these bytes.

    Raises:
        InvalidInputError: they hold none.
    """
    return _decode(DeadLetter, value, framing)


def encode_candidate(candidate: Candidate, framing: Framing | None = None) -> bytes:
    """The value of a record of the topic ``candidates``."""
    return _encode(candidate, framing)


def decode_candidate(value: bytes, framing: Framing | None = None) -> Candidate:
    """The candidate in these bytes.

    Raises:
        InvalidInputError: they hold none.
    """
    return _decode(Candidate, value, framing)


def encode_snapshot_part(part: SnapshotPart, framing: Framing | None = None) -> bytes:
    """The value of a record of the topic ``snapshots``."""
    return _encode(part, framing)


def decode_snapshot_part(value: bytes, framing: Framing | None = None) -> SnapshotPart:
    """The snapshot part in these bytes.

    Raises:
        InvalidInputError: they hold none.
    """
    return _decode(SnapshotPart, value, framing)


def _encode(output: DeadLetter | Candidate | SnapshotPart, framing: Framing | None) -> bytes:
    return (framing or default_framing()).encode(type(output).__name__, to_datum(output))


def _decode(kind: type[_Output], value: bytes, framing: Framing | None) -> _Output:
    chosen = framing or default_framing()
    schema, start = chosen.unframe(value)
    if schema.name != kind.__name__:
        raise InvalidInputError("wrong_record_type", f"the record is a {schema.name}, expected a {kind.__name__}")
    return from_datum(kind, chosen.decode_body(value, start, schema))
