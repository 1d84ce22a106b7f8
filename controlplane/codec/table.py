"""Encodes and decodes the rows of the routing table and the epoch marker; equal rows give equal bytes everywhere.

The table's digest is taken over these bytes, so a row that did not change has to be written exactly as before.
"""

from typing import Final

from controlplane.codec.conversion import from_datum, to_datum
from controlplane.codec.framing import default_framing
from controlplane.codec.schema_levels import version_at
from controlplane.core.cluster.policy import FEATURE_LEVEL
from controlplane.core.routing.rows import ROW_KINDS, EpochMarker, TableRow, TableValue, key_of
from controlplane.errors import InvalidInputError

ROW_TYPES: Final[tuple[type[TableValue], ...]] = (*(kind.record for kind in ROW_KINDS), EpochMarker)
"""The types of the values in the topic ``routing-table``."""

_BY_NAME: Final = {kind.__name__: kind for kind in ROW_TYPES}


def encode_row(row: TableRow | EpochMarker, feature_level: int = FEATURE_LEVEL) -> bytes:
    """The value of a row or of the marker. Equal rows give equal bytes, because these schemas contain no map.

    Args:
        row: the row.
        feature_level: of the log; determines the version of the schema in which the row is written.

    Raises:
        InvariantViolationError: rows of this kind are written only from a later level on (a defect of the caller).
    """
    name = type(row).__name__
    return default_framing().encode(name, to_datum(row), version_at(name, feature_level))


def decode_row(key: bytes, value: bytes) -> TableRow | EpochMarker:
    """The row or marker in a value that is stored under this key.

    Raises:
        InvalidInputError: the bytes cannot be read (reasons of :mod:`controlplane.codec.framing`), are not a row
            (``wrong_record_type``), hold an unknown value (``unknown_<field>``), or belong under another key
            (``key_mismatch``).
    """
    framing = default_framing()
    schema, start = framing.unframe(value)
    kind = _BY_NAME.get(schema.name)
    if kind is None:
        raise InvalidInputError(
            "wrong_record_type", f"{key!r:.80} holds a {schema.name}; the table has {', '.join(sorted(_BY_NAME))}"
        )
    row = from_datum(kind, framing.decode_body(value, start, schema))
    if key != key_of(row).encode():
        raise InvalidInputError("key_mismatch", f"the row under {key!r:.80} belongs under {key_of(row)!r:.80}")
    return row
