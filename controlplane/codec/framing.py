"""The bytes before a record's body that name the schema that wrote it.

Two framings can precede the Avro body:

* Avro single-object encoding: ``C3 01`` and the schema's fingerprint, 8 bytes little-endian. It needs no registry, and
  is the only one that is written.
* Confluent's framing: ``00`` and a registry's schema id, 4 bytes big-endian. It is read if the caller names the schemas
  of the ids.

Source: the Avro specification, "Single object encoding"; Confluent Schema Registry, "Wire format".
"""

import functools
from collections.abc import Mapping
from io import BytesIO
from typing import TypeAlias, cast

import fastavro

from controlplane.codec.schema_store import Schema, SchemaStore, SchemaVersion, default_store
from controlplane.errors import ConfigurationError, InvalidInputError

SINGLE_OBJECT_MARKER = b"\xc3\x01"
CONFLUENT_MARKER = b"\x00"
SINGLE_OBJECT_HEADER_BYTES = 10
CONFLUENT_HEADER_BYTES = 5

Datum: TypeAlias = dict[str, object]
"""A record in the form of the Avro library: fields by name, nested records alike."""


class Framing:
    """Writes the header before a body, and reads it. Immutable; safe to share between threads."""

    def __init__(self, store: SchemaStore, schema_ids: Mapping[int, SchemaVersion] | None = None) -> None:
        """Choose the schemas that can be read and written.

        Args:
            store: the schemas.
            schema_ids: the schemas of Confluent's ids; None refuses every id.
        """
        self._store = store
        self._schema_ids = dict(schema_ids or {})

    @property
    def store(self) -> SchemaStore:
        """The schemas that this framing knows."""
        return self._store

    def unframe(self, value: bytes) -> tuple[Schema, int]:
        """The schema that wrote the record, and the byte at which the record's body begins.

        Raises:
            InvalidInputError: ``not_avro_framed``, ``truncated``, ``unknown_fingerprint`` or ``unknown_schema_id``.
        """
        if value[:2] == SINGLE_OBJECT_MARKER:
            return self._by_fingerprint(value), SINGLE_OBJECT_HEADER_BYTES
        if value[:1] == CONFLUENT_MARKER:
            return self._by_schema_id(value), CONFLUENT_HEADER_BYTES
        raise InvalidInputError(
            "not_avro_framed",
            f"the record begins with {value[:4].hex(' ') or 'nothing'}; Avro's single-object encoding begins with "
            "c3 01, Confluent's framing with 00",
        )

    def encode(self, name: str, datum: Datum, version: int | None = None) -> bytes:
        """The framed bytes of a record in its newest schema, or in that of a version that can hold it.

        Raises:
            InvalidInputError: ``unencodable``: a value does not fit the schema, for example an integer over 64 bits.
            KeyError: there is no schema of that name or version (a defect of the caller).
        """
        schema = self._store.current(name) if version is None else self._store.by_version(SchemaVersion(name, version))
        if schema is None:
            raise KeyError(f"there is no schema {SchemaVersion(name, version or 0)}")
        buffer = BytesIO()
        buffer.write(SINGLE_OBJECT_MARKER + schema.fingerprint)
        try:
            fastavro.schemaless_writer(buffer, schema.parsed, datum, strict_allow_default=True)
        except (TypeError, ValueError, OverflowError, KeyError, AttributeError) as error:
            raise InvalidInputError("unencodable", f"{schema.id} cannot hold the value: {error}") from error
        return buffer.getvalue()

    def decode(self, value: bytes) -> tuple[Schema, Datum]:
        """The schema that wrote a record, and the record resolved to the newest version of that schema.

        Members of unions of several records are pairs of full name and datum.

        Raises:
            InvalidInputError: as :meth:`unframe`, and ``truncated``, ``trailing_bytes`` or ``undecodable``.
        """
        schema, start = self.unframe(value)
        return schema, self.decode_body(value, start, schema)

    def decode_body(self, value: bytes, start: int, schema: Schema) -> Datum:
        """The record whose body begins at ``start``, resolved to the newest version of its schema.

        Raises:
            InvalidInputError: ``truncated``, ``trailing_bytes`` or ``undecodable``.
        """
        newest = self._store.current(schema.name)
        reader_schema = None if newest is schema else newest.parsed
        return read_body(value, start, schema, reader_schema)

    def _by_fingerprint(self, value: bytes) -> Schema:
        fingerprint = value[2:SINGLE_OBJECT_HEADER_BYTES]
        if len(value) < SINGLE_OBJECT_HEADER_BYTES:
            raise InvalidInputError("truncated", f"the record ends within its header, after {len(value)} bytes")
        schema = self._store.by_fingerprint(fingerprint)
        if schema is None:
            raise InvalidInputError(
                "unknown_fingerprint",
                f"no schema here has the fingerprint {fingerprint.hex()}: the writer is newer than this reader, or "
                "uses a schema of its own",
            )
        return schema

    def _by_schema_id(self, value: bytes) -> Schema:
        if len(value) < CONFLUENT_HEADER_BYTES:
            raise InvalidInputError("truncated", f"the record ends within its header, after {len(value)} bytes")
        schema_id = int.from_bytes(value[1:CONFLUENT_HEADER_BYTES], "big")
        schema_version = self._schema_ids.get(schema_id)
        schema = None if schema_version is None else self._store.by_version(schema_version)
        if schema is None:
            raise InvalidInputError(
                "unknown_schema_id",
                f"schema id {schema_id} is not known: give the reader the registry's ids (--schema-id), or write "
                "single-object encoding",
            )
        return schema


def read_body(value: bytes, start: int, schema: Schema, reader_schema: object = None) -> Datum:
    """The record in ``value``, from ``start`` to the end.

    Raises:
        InvalidInputError: ``truncated``, ``trailing_bytes`` or ``undecodable``.
    """
    buffer = BytesIO(value)
    buffer.seek(start)
    try:
        datum = fastavro.schemaless_reader(
            buffer,
            schema.parsed,
            cast("dict[str, object] | None", reader_schema),
            return_record_name=True,
            return_record_name_override=True,
        )
    except Exception as error:
        if isinstance(error, EOFError) or _ends_within_a_number(error, value, buffer):
            raise InvalidInputError("truncated", f"{schema.id} ends too early, after {len(value)} bytes") from error
        raise InvalidInputError("undecodable", f"{schema.id} cannot be read: {error}") from error
    if buffer.tell() != len(value):
        raise InvalidInputError(
            "trailing_bytes", f"{schema.id} ends at byte {buffer.tell()}, the record has {len(value)}"
        )
    return cast("Datum", datum)


def _ends_within_a_number(error: Exception, value: bytes, buffer: BytesIO) -> bool:
    """Whether the last byte announces a further one that is missing; fastavro has no error of its own for that."""
    return isinstance(error, IndexError) and buffer.tell() == len(value) and bool(value[-1:] > b"\x7f")


@functools.cache
def default_framing() -> Framing:
    """Single-object encoding with the package's schemas; Confluent's schema ids are unknown."""
    return Framing(default_store())


def framing_with(schema_ids: Mapping[int, str]) -> Framing:
    """Like :func:`default_framing`, but Confluent framing with the given ids of a registry is read as well.

    Args:
        schema_ids: registry id to record and version, as the schema's file is named: ``{17: "Heartbeat.v1"}``.

    Raises:
        ConfigurationError: an id is not between 0 and 2^32 - 1, or a name is not one of the package's schemas.
    """
    known = {str(schema.id): schema.id for schema in default_store().all()}
    for schema_id, name in schema_ids.items():
        if not 0 <= schema_id < 1 << 32:
            raise ConfigurationError(f"schema id {schema_id} ({name}) is not between 0 and 4,294,967,295")
        if name not in known:
            raise ConfigurationError(f"schema id {schema_id}: {name!r} is not one of the schemas {', '.join(known)}")
    return Framing(default_store(), {schema_id: known[name] for schema_id, name in schema_ids.items()})
