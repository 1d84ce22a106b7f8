"""The schemas and the core's types say the same: no field can be added, removed, moved or retyped on one side only."""

import json
import types
import typing
from collections.abc import Iterator
from typing import Any, TypeAlias

import pytest

from controlplane.codec.conversion import field_types, is_enum, union_members, unwrap
from controlplane.codec.inputs import TOPIC_TYPES
from controlplane.codec.schema_store import NAMESPACE, Schema, default_store
from controlplane.codec.table import ROW_TYPES
from controlplane.core.bundles.candidate import Candidate
from controlplane.core.log.decision import Decision
from controlplane.core.log.snapshots.snapshot_part import SnapshotPart
from controlplane.core.values.dead_letter import DeadLetter

RECORD_TYPES: dict[str, type] = {
    kind.__name__: kind
    for kind in (
        *(each for kinds in TOPIC_TYPES.values() for each in kinds),
        *ROW_TYPES,
        Decision,
        Candidate,
        SnapshotPart,
        DeadLetter,
    )
}
TypeForm: TypeAlias = Any
"""A type expression: a class, a union, a generic alias."""
Json: TypeAlias = Any
PART_FIELDS = ("part", "part_count", "continues")
SCALARS = {str: "string", int: "long", float: "double", bool: "boolean", bytes: "bytes"}


def _schema_of(name: str) -> dict[str, Any]:
    return typing.cast("dict[str, Any]", json.loads(default_store().current(name).text))


class Comparison:
    """Walks a type and a schema together; named types are defined once in a schema and then only named."""

    def __init__(self) -> None:
        self.defined: dict[str, dict[str, Any]] = {}

    def differences(self, kind: TypeForm, schema: Json, path: str) -> Iterator[str]:
        """Every place where the two do not say the same."""
        kind = unwrap(kind)
        origin: TypeForm = typing.get_origin(kind)
        members = union_members(kind)
        if members:
            yield from self._union(members, schema, path)
        elif field_types(kind) is not None:
            yield from self._record(kind, schema, path)
        elif origin is tuple:
            yield from self._container(kind, schema, path, "array", "items", 0)
        elif origin is not None:
            yield from self._container(kind, schema, path, "map", "values", 1)
        elif schema != SCALARS.get(str if is_enum(kind) else kind):
            yield f"{path}: {kind} is {schema} in the schema"

    def _container(
        self,
        kind: TypeForm,
        schema: Json,
        path: str,
        avro_type: str,
        key: str,
        argument: int,
    ) -> Iterator[str]:
        if not isinstance(schema, dict) or schema.get("type") != avro_type:
            yield f"{path}: {kind} is {schema} in the schema"
        else:
            yield from self.differences(typing.get_args(kind)[argument], schema[key], f"{path}[]")

    def _union(self, members: tuple[TypeForm, ...], schema: Json, path: str) -> Iterator[str]:
        optional = types.NoneType in members
        kinds = [member for member in members if member is not types.NoneType]
        branches = list(schema) if isinstance(schema, list) else []
        if optional != (branches[:1] == ["null"]) or len(branches) != len(kinds) + optional:
            yield f"{path}: {members} is {schema} in the schema"
            return
        names = [branch["name"] if isinstance(branch, dict) else branch for branch in branches[optional:]]
        if {getattr(kind, "__name__", "") for kind in kinds} == {*names}:
            kinds.sort(key=lambda kind: names.index(kind.__name__))  # the order of a union's members says nothing
        for kind, branch in zip(kinds, branches[optional:], strict=True):
            yield from self.differences(kind, branch, path)

    def _record(self, kind: type, schema: Json, path: str) -> Iterator[str]:
        if isinstance(schema, str):
            schema = self.defined.get(schema, {"name": schema, "fields": []})
        self.defined[schema["name"]] = schema
        if schema["name"] != kind.__name__:
            yield f"{path}: {kind.__name__} is {schema['name']} in the schema"
            return
        in_schema = {each["name"]: each for each in schema["fields"] if each["name"] not in self._extra(kind)}
        in_core = dict(field_types(kind) or ())
        if list(in_schema) != list(in_core):
            yield f"{path}: fields {list(in_core)} are {list(in_schema)} in the schema"
            return
        for name, hint in in_core.items():
            yield from self.differences(hint, in_schema[name]["type"], f"{path}.{name}")
            yield from self._undocumented_values(hint, in_schema[name]["doc"], f"{path}.{name}")

    @staticmethod
    def _extra(kind: type) -> tuple[str, ...]:
        return PART_FIELDS if kind is Decision else ()

    @staticmethod
    def _undocumented_values(hint: TypeForm, doc: str, path: str) -> Iterator[str]:
        if is_enum(hint):
            yield from (f"{path}: the doc lacks {each.value!r}" for each in hint if f"'{each.value}'" not in doc)


@pytest.mark.parametrize("name", RECORD_TYPES)
def test_schema_and_type_have_the_same_fields(name: str) -> None:
    """A field that only one side knows would be lost or would break every reader; enum values have to be documented."""
    kind, schema = RECORD_TYPES[name], _schema_of(name)
    assert list(Comparison().differences(kind, schema, name)) == []


def test_every_schema_has_a_type_and_every_type_a_schema() -> None:
    """A schema that nothing writes, or a record that has no schema, is a forgotten half."""
    assert sorted(RECORD_TYPES) == sorted(default_store().names())


@pytest.mark.parametrize("schema", default_store().all(), ids=lambda schema: str(schema.id))
def test_everything_in_a_schema_is_documented(schema: Schema) -> None:
    """The schemas are the reference that people in other languages read: no record and no field without a sentence."""
    text = json.loads(schema.text)
    assert text["namespace"] == NAMESPACE
    assert [path for path, node in _documented(text, schema.name) if not node.get("doc", "").endswith(".")] == []


def _documented(node: Json, path: str) -> Iterator[tuple[str, dict[str, Any]]]:
    if isinstance(node, list):
        for member in node:
            yield from _documented(member, path)
    elif isinstance(node, dict):
        if node.get("type") == "record":
            yield path, node
            for each in node["fields"]:
                yield f"{path}.{each['name']}", each
                yield from _documented(each["type"], f"{path}.{each['name']}")
        else:
            yield from _documented(node.get("items", node.get("values")), path)


def test_a_difference_is_found() -> None:
    """The comparison itself can fail: a renamed field, another type, another order and a missing branch are seen."""
    schema = _schema_of("Slot")
    fields = schema["fields"]
    for broken in (
        [{**fields[0], "name": "slot"}, *fields[1:]],
        [{**fields[0], "type": "int"}, *fields[1:]],
        [*fields[1:], fields[0]],
        [fields[0], {**fields[1], "type": "string"}, *fields[2:]],
        [*fields[:2], {**fields[2], "type": {"type": "map", "values": "string"}}, fields[3]],
    ):
        assert list(Comparison().differences(RECORD_TYPES["Slot"], {**schema, "fields": broken}, "Slot"))
