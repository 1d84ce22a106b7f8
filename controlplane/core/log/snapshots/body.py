"""Converts a state into the parts of a snapshot and back, and checks that parts are complete and unaltered.

The body is the canonical form of the state, so equal states have equal snapshots. It is produced in pieces. The writer
pauses between pieces, because it shares the interpreter with a leader.
"""

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import fields, replace
from typing import Any, Final

from controlplane.core.log.snapshots.log_point import LogPoint
from controlplane.core.log.snapshots.snapshot_part import SnapshotPart
from controlplane.core.log.state import State
from controlplane.core.values.canonical import canonical_bytes, from_canonical, later_defaults
from controlplane.core.values.entries import Entries
from controlplane.core.values.identifiers import Seq, Term
from controlplane.core.values.image import Image
from controlplane.errors import ConfigurationError, InvalidInputError

PART_BYTES: Final = 256 * 1024
"""The greatest length of a part's body, far below a broker's limit on messages."""
PIECE_ENTRIES: Final = 64
"""Number of entries in a piece: about half a millisecond of work."""
DAMAGED: Final = "damaged_snapshot"
"""The reason for refusing a snapshot that is incomplete or altered."""


def snapshot_id(seq: Seq, term: Term, attempt: int) -> str:
    """The name of a snapshot: names sort as decisions do, and no two writers use the same name.

    Only one leader writes in a term; ``attempt`` counts the snapshots that it began.
    """
    return f"{seq:019}-{term:010}-{attempt}"


def pieces_of(value: Any) -> Iterator[bytes]:  # noqa: ANN401 - a state, or anything in it
    """The canonical form of a state, in pieces to be joined."""
    if isinstance(value, State | Image):
        opening = b"{"
        later = later_defaults(type(value))  # type: ignore[arg-type]  # classes are hashable
        for name in sorted(field.name for field in fields(value)):
            item = getattr(value, name)
            if name in later and item == later[name]:
                continue
            yield opening + canonical_bytes(name) + b":"
            yield from pieces_of(item)
            opening = b","
        yield b"}"
    elif isinstance(value, Entries):
        yield from _in_pieces(list(value.items()))
    else:
        yield canonical_bytes(value)


def _in_pieces(items: Sequence[tuple[object, object]]) -> Iterator[bytes]:
    """One list in pieces, each without the brackets of its own."""
    yield b"["
    for start in range(0, len(items), PIECE_ENTRIES):
        some = canonical_bytes(items[start : start + PIECE_ENTRIES])[1:-1]
        yield b"," + some if start else some
    yield b"]"


def parts_of(
    name: str, point: LogPoint, body: bytes, code_version: str, part_bytes: int = PART_BYTES
) -> Iterator[SnapshotPart]:
    """The parts of a snapshot.

    Args:
        name: see :func:`snapshot_id`.
        point: the place in the log at which it is taken.
        body: the joined :func:`pieces_of` the state at this place.
        code_version: the version of the controller that writes it.
        part_bytes: the greatest length of a part's body.
    """
    state = point.state
    count = -(-len(body) // part_bytes)
    digest = hashlib.sha256(body).hexdigest()
    for number in range(count):
        yield SnapshotPart(
            snapshot_id=name,
            part=number,
            part_count=count,
            log_id=state.log_id,
            term=state.term,
            seq=state.seq,
            epoch=state.epoch,
            next_decision_offset=point.next_offset,
            state_digest=state.digest(),
            body=body[number * part_bytes : (number + 1) * part_bytes],
            last_decision_offset=point.last_decision_offset,
            decided_at_ms=state.decided_at_ms,
            feature_level=state.cluster.feature_level,
            code_version=code_version,
            body_digest=digest,
        )


def header_of(part: SnapshotPart) -> SnapshotPart:
    """The fields that all parts of a snapshot have in common."""
    return replace(part, part=0, body=b"")


def body_of(parts: Sequence[SnapshotPart]) -> bytes:
    """The body that these parts form together. They have to be in ascending order.

    Raises:
        InvalidInputError: ``damaged_snapshot``: parts are missing, contradict each other, or do not have the digest
            that they declare.
    """
    header = header_of(parts[0])
    strange = [part.part for part in parts if header_of(part) != header]
    if strange:
        raise InvalidInputError(DAMAGED, f"its parts {parts[0].part} and {strange[0]} belong to different snapshots")
    # The count is checked first, because a foreign part may declare a count that no range can hold.
    if len(parts) != header.part_count or [part.part for part in parts] != list(range(len(parts))):
        raise InvalidInputError(DAMAGED, f"{len(parts)} of its {header.part_count} parts are present")
    body = b"".join(part.body for part in parts)
    if hashlib.sha256(body).hexdigest() != header.body_digest:
        raise InvalidInputError(DAMAGED, "its parts do not have the digest that they declare")
    return body


def restored(parts: Sequence[SnapshotPart]) -> State:
    """The state of a snapshot whose parts agree with each other. The caller has to compare it with the log.

    Raises:
        InvalidInputError: ``damaged_snapshot``, or the path to a value that this version does not know.
    """
    header = parts[0]
    try:
        state = from_canonical(State, json.loads(body_of(parts)))
        digest = state.digest()
    except (ValueError, TypeError, KeyError, AttributeError, ConfigurationError, RecursionError) as error:
        raise InvalidInputError(DAMAGED, f"its body is not the canonical form of a state: {error}") from error
    said = (header.log_id, header.term, header.seq, header.epoch, header.decided_at_ms, header.state_digest)
    found = (state.log_id, state.term, state.seq, state.epoch, state.decided_at_ms, digest)
    if said != found:
        differing = next(name for name, one, other in zip(_SAID, said, found, strict=True) if one != other)
        raise InvalidInputError(DAMAGED, f"its state has another {differing} than its parts declare")
    return state


_SAID: Final = ("log id", "term", "seq", "epoch", "log time", "digest")
