"""Where frozen bytes and released schemas lie, and how they are read and extended.

``records/<Record>.v<N>.json`` holds the bytes of one schema version: for each case the value and the hexadecimal
records that it is written as. ``tests/golden/schemas/released`` holds a copy of each released schema, named in its
``SHA256SUMS``.
"""

import hashlib
import json
from pathlib import Path
from typing import Any

from controlplane.codec.conversion import from_datum
from controlplane.codec.decisions import DecisionAssembler, encode_decision
from controlplane.codec.framing import default_framing
from controlplane.codec.inputs import TOPIC_TYPES, decode_input, encode_input
from controlplane.codec.outputs import (
    decode_candidate,
    decode_dead_letter,
    decode_snapshot_part,
    encode_candidate,
    encode_dead_letter,
    encode_snapshot_part,
)
from controlplane.codec.table import ROW_TYPES, decode_row, encode_row
from controlplane.core.bundles.candidate import Candidate
from controlplane.core.log.decision import Decision
from controlplane.core.log.snapshots.snapshot_part import SnapshotPart
from controlplane.core.routing.rows import key_of
from controlplane.core.values.dead_letter import DeadLetter
from controlplane.errors import InvalidInputError
from controlplane.ports import RawRecord

FOLDER = Path(__file__).parent
RECORDS = FOLDER / "records"
DAMAGED_FILE = RECORDS / "damaged.json"
RELEASED = FOLDER / "schemas" / "released"
SUMS_FILE = FOLDER / "schemas" / "SHA256SUMS"

_ONE_PART = 1 << 30
"""More bytes than any value takes."""

INPUT_TYPES = tuple(kind for kinds in TOPIC_TYPES.values() for kind in kinds)


def encode(value: Any, max_part_bytes: int) -> list[bytes]:  # noqa: ANN401 - any value of the log
    """The records of a value, through the function that writes it in production."""
    if isinstance(value, Decision):
        return encode_decision(value, max_part_bytes)
    if isinstance(value, INPUT_TYPES):
        return [encode_input(value)]
    if isinstance(value, ROW_TYPES):
        return [encode_row(value)]
    encoders: dict[type, Any] = {
        Candidate: encode_candidate,
        DeadLetter: encode_dead_letter,
        SnapshotPart: encode_snapshot_part,
    }
    return [encoders[type(value)](value)]


def schema_of(records: list[bytes]) -> str:
    """Which schema wrote them, for example ``Tick.v1``."""
    return str(default_framing().unframe(records[0])[0].id)


def decode(records: list[bytes]) -> object:
    """The value that the records hold, through the function that reads it in production."""
    schema, datum = default_framing().decode(records[0])
    if schema.name == Decision.__name__:
        assembler = DecisionAssembler()
        return [assembler.add(record) for record in records][-1]
    for topic, kinds in TOPIC_TYPES.items():
        if schema.name in {kind.__name__ for kind in kinds}:
            key = str(datum.get("node_id") or datum.get("intent_id") or "")
            return decode_input(topic, RawRecord(topic, 0, 0, 0, key.encode(), records[0])).payload
    for kind in ROW_TYPES:
        if schema.name == kind.__name__:
            return decode_row(key_of(from_datum(kind, datum)).encode(), records[0])
    decoders: dict[str, Any] = {
        Candidate.__name__: decode_candidate,
        DeadLetter.__name__: decode_dead_letter,
        SnapshotPart.__name__: decode_snapshot_part,
    }
    return decoders[schema.name](records[0])


def decode_frozen(records: list[str]) -> object:
    """The value that hexadecimal records of a golden file hold.

    Raises:
        AssertionError: no schema wrote them: one that is not released has changed, and they were not written again.
    """
    try:
        return decode([bytes.fromhex(record) for record in records])
    except InvalidInputError as error:
        raise AssertionError(
            f"run python -m tests.golden.rewrite and python -m tests.vectors.rewrite: {error}"
        ) from error


def plain(value: object) -> object:
    """A value as a golden file shows it: bytes are hexadecimal, members of unions are pairs of name and record."""
    (record,) = encode(value, _ONE_PART)
    _, datum = default_framing().decode(record)
    if isinstance(value, Decision):
        datum = {name: item for name, item in datum.items() if name not in ("part", "part_count", "continues")}
    return json.loads(json.dumps(datum, default=bytes.hex))


def read_json(path: Path) -> Any:  # noqa: ANN401 - JSON
    """The contents of a golden file; an empty list if there is none yet."""
    return json.loads(path.read_text("utf-8")) if path.exists() else []


def write_json(path: Path, contents: object) -> None:
    """Write a golden file so that a change of one value changes few lines."""
    path.write_text(json.dumps(contents, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def released_sums() -> dict[str, str]:
    """File name to SHA-256 of every released schema."""
    if not SUMS_FILE.exists():
        return {}
    lines = SUMS_FILE.read_text("utf-8").splitlines()
    return {name: digest for digest, _, name in (line.partition("  ") for line in lines)}


def sha256(path: Path) -> str:
    """The digest of a file's contents, in hexadecimal."""
    return hashlib.sha256(path.read_bytes()).hexdigest()
