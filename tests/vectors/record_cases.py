"""Frozen records of every schema version, as any Avro library reads them, and digests of tables."""

import json
from io import BytesIO, StringIO
from typing import Any

import fastavro

from controlplane.codec.framing import default_framing
from controlplane.codec.table import encode_row
from controlplane.core.bundles.bundle import Namespace
from controlplane.core.cluster.policy import HashFunction
from controlplane.core.cluster.rows import TableSettings
from controlplane.core.routing.rows import SETTINGS_KEY, namespace_key, slot_key
from controlplane.core.slots.table import Slot
from controlplane.core.values.digests import add_hashes, format_digest, row_hash
from controlplane.core.values.identifiers import Epoch
from tests.golden.frozen import DAMAGED_FILE, RECORDS, read_json
from tests.vectors.script_topic import text_of


def record_cases() -> list[dict[str, Any]]:
    """The contents of ``records.json``: the golden records, each part of a decision apart."""
    cases = []
    for path in sorted(RECORDS.glob("*.json")):
        if path == DAMAGED_FILE:
            continue
        for case in read_json(path):
            for part, record in enumerate(case["records"]):
                name = case["name"] if len(case["records"]) == 1 else f"{case['name']}: part {part}"
                value = bytes.fromhex(record)
                cases.append({"name": name, "schema": path.stem, "value": text_of(value), "json": avro_json(value)})
    return cases


def avro_json(value: bytes) -> Any:  # noqa: ANN401 - JSON
    """A framed record in Avro's JSON encoding, by the schema that wrote it: not resolved into a later one."""
    schema, start = default_framing().unframe(value)
    body: Any = BytesIO(value[start:])
    datum: Any = fastavro.schemaless_reader(
        body, schema.parsed, None, return_record_name=True, return_record_name_override=True
    )
    text = StringIO()
    fastavro.json_writer(text, schema.parsed, [datum])
    return json.loads(text.getvalue())


_SETTINGS = encode_row(TableSettings(4, 2, HashFunction.CRC32C, 2_500))
_SLOT = encode_row(Slot(1, "n1", ("n2",), Epoch(1)))
_TABLES: dict[str, list[tuple[bytes, bytes]]] = {
    "no rows": [],
    "one row": [(SETTINGS_KEY.encode(), _SETTINGS)],
    "two rows": [(SETTINGS_KEY.encode(), _SETTINGS), (slot_key(1).encode(), _SLOT)],
    "two rows in another order": [(slot_key(1).encode(), _SLOT), (SETTINGS_KEY.encode(), _SETTINGS)],
    "the sum passes 2^64": [
        (namespace_key(f"namespace-{number}").encode(), encode_row(Namespace(f"namespace-{number}", 4)))
        for number in range(12)
    ],
    "the key's length tells key and value apart": [(b"main/slot/1", b"2x")],
    "the same bytes, cut elsewhere": [(b"main/slot/12", b"x")],
    "an unknown kind": [(SETTINGS_KEY.encode(), _SETTINGS), (b"main/pool/p1", b"\xc3\x01later\x00v9\x02")],
    "an empty value": [(b"main/slot/1", b"")],
    "keys that are no UTF-8": [(b"\xff", b"x"), (b"\xfe", b"x")],
    "a key beyond ASCII": [(namespace_key("键").encode(), encode_row(Namespace("键", 1)))],
}


def table_digest_cases() -> list[dict[str, Any]]:
    """The contents of ``table_digests.json``."""
    cases = []
    for name, rows in _TABLES.items():
        digest = 0
        for key, value in rows:
            digest = add_hashes(digest, row_hash(key, value))
        cases.append(
            {
                "name": name,
                "rows": [
                    {"key": text_of(key), "value": text_of(value), "share": format_digest(row_hash(key, value))}
                    for key, value in rows
                ],
                "row_count": len(rows),
                "digest": format_digest(digest),
            }
        )
    return cases
