"""Backward compatibility: the newest schema of a record reads what every released one wrote."""

import json
from io import BytesIO
from typing import Any

import fastavro
import pytest
from fastavro.read import SchemaResolutionError
from hypothesis import given, settings
from hypothesis import strategies as st

from controlplane.codec.schema_store import SchemaVersion, default_store, parse_schema_text
from controlplane.resources import resource_path
from tests.golden.frozen import RELEASED, SUMS_FILE, released_sums, sha256

RELEASED_FILES = sorted(RELEASED.glob("*.avsc"))
SCALARS: dict[str, st.SearchStrategy[Any]] = {
    "null": st.none(),
    "boolean": st.booleans(),
    "long": st.integers(-(1 << 63), (1 << 63) - 1),
    "double": st.floats(allow_nan=False),
    "string": st.text(max_size=4),
    "bytes": st.binary(max_size=4),
}


def written_by(schema: Any, named: dict[str, Any]) -> st.SearchStrategy[Any]:  # noqa: ANN401 - a schema's JSON
    """Data of a schema, with every branch of every union among them."""
    if isinstance(schema, list):
        return st.one_of(*(_branch(member, named) for member in schema))
    if isinstance(schema, str):
        return written_by(named[schema], named) if schema in named else SCALARS[schema]
    if schema["type"] == "array":
        return st.lists(written_by(schema["items"], named), max_size=3)
    if schema["type"] == "map":
        return st.dictionaries(st.text(max_size=4), written_by(schema["values"], named), max_size=2)
    if schema["type"] != "record":
        return written_by(schema["type"], named)
    named[schema["name"]] = schema
    return st.fixed_dictionaries({each["name"]: written_by(each["type"], named) for each in schema["fields"]})


def _branch(schema: Any, named: dict[str, Any]) -> st.SearchStrategy[Any]:  # noqa: ANN401 - a schema's JSON
    data = written_by(schema, named)
    name = schema["name"] if isinstance(schema, dict) and schema["type"] == "record" else schema
    return data.map(lambda datum: (f"controlplane.{name}", datum)) if name in named else data


def is_readable(written: str, read: str, data: st.DataObject) -> bool:
    """Whether data that one schema wrote can be read by another one."""
    writer = fastavro.parse_schema(json.loads(written))
    reader = fastavro.parse_schema(json.loads(read))
    buffer = BytesIO()
    fastavro.schemaless_writer(buffer, writer, data.draw(written_by(json.loads(written), {})))
    buffer.seek(0)
    try:
        fastavro.schemaless_reader(buffer, writer, reader, return_record_name=True, return_record_name_override=True)
    except SchemaResolutionError:
        return False
    return True


@pytest.mark.parametrize("path", RELEASED_FILES, ids=lambda path: path.stem)
@settings(max_examples=20)
@given(data=st.data())
def test_the_newest_schema_reads_what_a_released_one_wrote(path: Any, data: st.DataObject) -> None:  # noqa: ANN401
    """A leader that was upgraded still meets the records of nodes that were not, and the whole decision log."""
    newest = default_store().current(path.name.partition(".")[0])
    assert is_readable(path.read_text("utf-8"), newest.text, data)


def test_a_released_schema_never_changes() -> None:
    """A reader takes the fingerprint for the whole truth: a released file is the same for ever, and stays."""
    sums = released_sums()
    assert sums == {path.name: sha256(path) for path in RELEASED_FILES}
    assert SUMS_FILE.read_text("utf-8").splitlines() == [f"{sums[name]}  {name}" for name in sorted(sums)]
    for path in RELEASED_FILES:
        assert (resource_path("schemas") / path.name).read_bytes() == path.read_bytes()


def test_only_the_newest_version_may_be_unreleased() -> None:
    """A version under work replaces nothing: everything before it has been released."""
    released = released_sums()
    for schema in default_store().all():
        assert f"{schema.id}.avsc" in released or schema is default_store().current(schema.name)


def _fingerprint(text: str) -> bytes:
    return parse_schema_text(text, SchemaVersion("Certificate", 1)).fingerprint


BEFORE: dict[str, Any] = {
    "type": "record",
    "name": "Certificate",
    "namespace": "controlplane",
    "fields": [
        {"name": "moved", "type": "long"},
        {
            "name": "policy",
            "type": ["null", {"type": "record", "name": "ClusterPolicy", "fields": []}],
            "default": None,
        },
        {
            "name": "events",
            "type": {
                "type": "array",
                "items": [
                    {"type": "record", "name": "Left", "fields": [{"name": "at_ms", "type": "long"}]},
                    {"type": "record", "name": "Right", "fields": [{"name": "at_ms", "type": "long"}]},
                ],
            },
        },
    ],
}
MOVED, POLICY, EVENTS = BEFORE["fields"]
LEFT, RIGHT = EVENTS["type"]["items"]
ADDED = {"name": "added", "type": "long"}


def _events(*members: dict[str, Any]) -> dict[str, Any]:
    return {**EVENTS, "type": {"type": "array", "items": list(members)}}


INCOMPATIBLE: dict[str, list[dict[str, Any]]] = {
    "a new field without a default": [MOVED, POLICY, EVENTS, ADDED],
    "another type": [{**MOVED, "type": "string"}, POLICY, EVENTS],
    "a renamed field": [{**MOVED, "name": "moves"}, POLICY, EVENTS],
    "no null any more": [MOVED, {"name": "policy", "type": POLICY["type"][1]}, EVENTS],
    "a removed event": [MOVED, POLICY, _events(LEFT)],
    "an event's new field without a default": [
        MOVED,
        POLICY,
        _events(LEFT, {**RIGHT, "fields": [*RIGHT["fields"], ADDED]}),
    ],
}
COMPATIBLE: dict[str, list[dict[str, Any]]] = {
    "a new field with a default": [MOVED, POLICY, EVENTS, {**ADDED, "default": 0}],
    "a removed field": [POLICY, EVENTS],
    "another order": [EVENTS, MOVED, POLICY],
    "a new event": [MOVED, POLICY, _events({**LEFT, "name": "Up"}, LEFT, RIGHT)],
    "an event's new field with a default": [
        MOVED,
        POLICY,
        _events(LEFT, {**RIGHT, "fields": [*RIGHT["fields"], {**ADDED, "default": 0}]}),
    ],
}


@pytest.mark.parametrize("fields", INCOMPATIBLE.values(), ids=INCOMPATIBLE.keys())
def test_the_check_finds_what_is_incompatible(fields: list[dict[str, Any]]) -> None:
    """A check that lets everything pass would be worse than none: each forbidden change is seen."""
    after = json.dumps({**BEFORE, "fields": fields})
    results: list[bool] = []

    @settings(max_examples=50)
    @given(data=st.data())
    def collect(data: st.DataObject) -> None:
        results.append(is_readable(json.dumps(BEFORE), after, data))

    collect()
    assert False in results


@pytest.mark.parametrize("fields", COMPATIBLE.values(), ids=COMPATIBLE.keys())
@settings(max_examples=20)
@given(data=st.data())
def test_the_check_allows_what_is_compatible(fields: list[dict[str, Any]], data: st.DataObject) -> None:
    """What the rule allows must not be refused, or nobody could evolve a schema."""
    after = json.dumps({**BEFORE, "fields": fields})
    assert is_readable(json.dumps(BEFORE), after, data)
    assert _fingerprint(after) != _fingerprint(json.dumps(BEFORE))
