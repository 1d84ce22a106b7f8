"""Draw ``schemas.md`` from the schemas: ``python docs/reference/generate_schemas.py``.

A test compares the page with what this script would write.
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
PAGE = Path(__file__).with_name("schemas.md")

sys.path.insert(0, str(ROOT))

from controlplane.codec.input_checks import REASONS  # noqa: E402 - the checkout is on the path only now
from controlplane.codec.schema_store import (  # noqa: E402 - as above
    NAMESPACE,
    Schema,
    SchemaStore,
    default_store,
)

HEADER = """\
# Schemas

<!-- Drawn by docs/reference/generate_schemas.py from schemas/*.avsc: change those, not this page. -->

Every record of the log, field by field. The files are in `schemas/`, one for each record and version; their
[README](../../schemas/README.md) says how a record names its schema and how schemas may change.

A record begins with its header: Avro single-object encoding, `c301` and the fingerprint of its writer's schema, listed
here for every version. The Avro binary body follows. The fields below are those of the newest version; those of an
older one are in its file. A decision is written in the oldest version that can hold it, so older headers also occur in
new logs. Every other record is written in the newest version that its writer knows.
"""

REFUSALS = """\
## Why an input is refused

An input record that cannot be used becomes a dead letter and has no other effect. These reasons can be
determined without the state of the cluster. The leader has further ones, for example for an unknown node.

| reason | meaning |
|---|---|
"""


def page() -> str:
    """The whole page."""
    store = default_store()
    sections = [_record_section(store.current(name), _headers(store, name)) for name in store.names()]
    reasons = "".join(f"| `{reason}` | {meaning} |\n" for reason, meaning in REASONS.items())
    return "\n".join([HEADER, *sections, REFUSALS + reasons])


def _headers(store: SchemaStore, name: str) -> list[str]:
    """A line for each version of a record, the oldest first."""
    versions = [schema for schema in store.all() if schema.name == name]
    return [f"File `schemas/{each.id}.avsc`, header `c301{each.fingerprint.hex()}`." for each in versions]


def _record_section(schema: Schema, headers: list[str]) -> str:
    text = json.loads(schema.text)
    lines = [
        f"## {schema.name}",
        "",
        _text(text["doc"]),
        "",
        *(line for header in headers for line in (header, "")),
    ]
    for record in _records(text):
        if record is not text:
            lines += [f"### {record['name']} in {schema.name}", "", _text(record["doc"]), ""]
        lines += _table(record["fields"])
    return "\n".join(lines)


def _table(fields: list[dict[str, Any]]) -> list[str]:
    rows = [
        f"| `{each['name']}` | {_type_name(each['type'])} | {_default(each)} | {_text(each['doc'])} |"
        for each in fields
    ]
    return ["| field | type | default | meaning |", "|---|---|---|---|", *rows, ""] if rows else []


def _records(schema: Any) -> Iterator[dict[str, Any]]:  # noqa: ANN401 - a schema's JSON
    """Every record that a schema defines, outermost first."""
    if isinstance(schema, list):
        for member in schema:
            yield from _records(member)
    elif isinstance(schema, dict) and schema["type"] == "record":
        yield schema
        for each in schema["fields"]:
            yield from _records(each["type"])
    elif isinstance(schema, dict):
        yield from _records(schema.get("items", schema.get("values")))


def _type_name(schema: Any) -> str:  # noqa: ANN401 - a schema's JSON
    if isinstance(schema, str):
        return schema.removeprefix(f"{NAMESPACE}.")
    if isinstance(schema, list):
        return " or ".join(_type_name(member) for member in schema)
    if schema["type"] == "array":
        return f"array of {_type_name(schema['items'])}"
    if schema["type"] == "map":
        return f"map of {_type_name(schema['values'])}"
    return str(schema["name"])


def _text(doc: str) -> str:
    return doc.replace("<", "\\<")


def _default(field: dict[str, Any]) -> str:
    return f"`{json.dumps(field['default'])}`" if "default" in field else ""


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    print(f"wrote {PAGE.relative_to(ROOT)}")
