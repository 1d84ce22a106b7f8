"""The Avro schemas of the log: loaded from files, parsed once, and found by their fingerprints.

``schemas/<Record>.v<N>.avsc`` holds one version of one record. The greatest version of a record is the one that is
written, and to which older ones are resolved when they are read.
"""

import functools
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import fastavro
import fastavro.schema
from fastavro.schema import SchemaParseException, UnknownType

from controlplane.errors import PrerequisiteError
from controlplane.resources import resource_path

ParsedSchema: TypeAlias = "str | list[Any] | dict[Any, Any]"
"""A schema in the form of fastavro, opaque to all other code."""

NAMESPACE = "controlplane"
"""The Avro namespace of every record."""

_FILE_NAME = re.compile(r"(?P<name>[A-Za-z][A-Za-z0-9]*)\.v(?P<version>[1-9][0-9]*)\.avsc")


class SchemaVersion(NamedTuple):
    """The name of one schema file: the record and its version, from 1."""

    name: str
    version: int

    def __str__(self) -> str:
        """The name of the file without its suffix, for example ``Heartbeat.v1``."""
        return f"{self.name}.v{self.version}"


@dataclass(frozen=True, slots=True)
class Schema:
    """One version of one record's schema.

    Attributes:
        id: record name and version.
        fingerprint: CRC-64-AVRO of the parsing canonical form, little-endian as in framed records.
        text: the file's JSON, for readers in other languages.
        parsed: the same for fastavro.
    """

    id: SchemaVersion
    fingerprint: bytes
    text: str = field(repr=False)
    parsed: ParsedSchema = field(repr=False, compare=False)

    @property
    def name(self) -> str:
        """The record's name, for example ``Heartbeat``."""
        return self.id.name


class SchemaStore:
    """Every schema of a folder. Immutable once built; safe to share between threads."""

    def __init__(self, schemas: Iterable[Schema]) -> None:
        """Index the schemas.

        Raises:
            PrerequisiteError: two of them have one fingerprint, so that a reader could not tell them apart.
        """
        self._by_fingerprint: dict[bytes, Schema] = {}
        self._by_id: dict[SchemaVersion, Schema] = {}
        self._current: dict[str, Schema] = {}
        for schema in sorted(schemas, key=lambda each: each.id):
            twin = self._by_fingerprint.setdefault(schema.fingerprint, schema)
            if twin is not schema:
                raise PrerequisiteError(
                    f"schemas {twin.id} and {schema.id} have the same fingerprint: "
                    "a new version has to change more than documentation and defaults"
                )
            self._by_id[schema.id] = schema
            self._current[schema.name] = schema

    @classmethod
    def load(cls, folder: Path) -> "SchemaStore":
        """Read every ``<Record>.v<N>.avsc`` of a folder.

        Raises:
            PrerequisiteError: there is none, or a file is not an Avro schema of the record in its name.
        """
        paths = sorted(folder.glob("*.avsc"))
        if not paths:
            raise PrerequisiteError(f"no *.avsc file in {folder}: the installation is incomplete, install it again")
        return cls(_load_file(path) for path in paths)

    def current(self, name: str) -> Schema:
        """The newest version of a record, which is the one that is written.

        Raises:
            KeyError: there is no schema of that name (a defect of the caller).
        """
        return self._current[name]

    def by_fingerprint(self, fingerprint: bytes) -> Schema | None:
        """The schema with this fingerprint (8 bytes, little-endian), or None."""
        return self._by_fingerprint.get(fingerprint)

    def by_version(self, schema_version: SchemaVersion) -> Schema | None:
        """The schema of this record and version, or None."""
        return self._by_id.get(schema_version)

    def all(self) -> tuple[Schema, ...]:
        """Every version of every record, sorted by name and version."""
        return tuple(self._by_id.values())

    def names(self) -> tuple[str, ...]:
        """The records' names, sorted."""
        return tuple(self._current)


@functools.cache
def default_store() -> SchemaStore:
    """The schemas of this package, read once per process."""
    return SchemaStore.load(resource_path("schemas"))


def parse_schema_text(text: str, schema_version: SchemaVersion) -> Schema:
    """A schema from its JSON.

    Raises:
        PrerequisiteError: the text is not an Avro schema of a record of that name.
    """
    try:
        parsed = fastavro.parse_schema(json.loads(text))
    except (SchemaParseException, UnknownType, ValueError) as error:
        raise PrerequisiteError(f"schema {schema_version} is not an Avro schema: {error}") from error
    if not isinstance(parsed, dict) or parsed["name"] != f"{NAMESPACE}.{schema_version.name}":
        raise PrerequisiteError(f"schema {schema_version} does not define the record {NAMESPACE}.{schema_version.name}")
    canonical_form = fastavro.schema.to_parsing_canonical_form(parsed)
    fingerprint = bytes.fromhex(fastavro.schema.fingerprint(canonical_form, "CRC-64-AVRO"))
    return Schema(schema_version, fingerprint, text, parsed)


def _load_file(path: Path) -> Schema:
    matched = _FILE_NAME.fullmatch(path.name)
    if matched is None:
        raise PrerequisiteError(f"{path} is not named <Record>.v<N>.avsc")
    return parse_schema_text(path.read_text("utf-8"), SchemaVersion(matched["name"], int(matched["version"])))
