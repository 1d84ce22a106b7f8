"""Finding schemas: file names, fingerprints and versions."""

import json
import shutil
from pathlib import Path

import pytest

from controlplane.codec.schema_store import (
    SchemaStore,
    SchemaVersion,
    default_store,
    parse_schema_text,
)
from controlplane.errors import PrerequisiteError
from controlplane.resources import resource_path

TICK = json.loads(default_store().current("Tick").text)


def test_fingerprint_is_the_one_of_the_avro_specification() -> None:
    """CRC-64-AVRO of the parsing canonical form, checked against Java Avro's value for this schema."""
    text = '{"type": "record", "name": "Sample", "namespace": "controlplane", "doc": "x", "fields": []}'
    assert parse_schema_text(text, SchemaVersion("Sample", 1)).fingerprint.hex() == "d255101970ebaa3b"


def test_every_file_is_found_by_its_fingerprint() -> None:
    """A reader knows nothing but the fingerprint of a record's schema."""
    for schema in default_store().all():
        assert default_store().by_fingerprint(schema.fingerprint) is schema
    assert default_store().by_fingerprint(bytes(8)) is None


def test_the_greatest_version_is_the_current_one(tmp_path: Path) -> None:
    """Version 10 follows 9: versions are numbers, not texts."""
    for version in (1, 2, 9, 10):
        grown = {**TICK, "fields": [*TICK["fields"], {"name": f"added_in_{version}", "type": "long", "default": 0}]}
        (tmp_path / f"Tick.v{version}.avsc").write_text(json.dumps(grown), encoding="utf-8")
    store = SchemaStore.load(tmp_path)
    assert store.current("Tick").id == ("Tick", 10)
    assert str(store.current("Tick").id) == "Tick.v10"
    assert store.names() == ("Tick",)
    assert store.by_version(SchemaVersion("Tick", 2)) is not None
    assert store.by_version(SchemaVersion("Tick", 3)) is None


def test_two_versions_that_look_alike_in_the_log_are_refused(tmp_path: Path) -> None:
    """A version that differs in documentation only has the same fingerprint: nobody could tell them apart."""
    for version in (1, 2):
        text = json.dumps({**TICK, "doc": f"Version {version}."})
        (tmp_path / f"Tick.v{version}.avsc").write_text(text, encoding="utf-8")
    with pytest.raises(PrerequisiteError, match=r"Tick\.v1 and Tick\.v2"):
        SchemaStore.load(tmp_path)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("Tick.avsc", json.dumps(TICK), "is not named"),
        ("Tock.v1.avsc", json.dumps(TICK), "does not define"),
        ("Tick.v1.avsc", "{", "not an Avro schema"),
        (
            "Tick.v1.avsc",
            '{"type": "record", "name": "controlplane.Tick", "fields": [{"name": "a", "type": "b"}]}',
            "not an Avro schema",
        ),
        ("Tick.v1.avsc", '"string"', "does not define"),
    ],
)
def test_a_file_that_is_no_schema_is_named(tmp_path: Path, name: str, text: str, message: str) -> None:
    """A broken installation says which file is broken, at the start and not at the first record."""
    (tmp_path / name).write_text(text, encoding="utf-8")
    with pytest.raises(PrerequisiteError, match=message):
        SchemaStore.load(tmp_path)


def test_a_folder_without_schemas_is_an_incomplete_installation(tmp_path: Path) -> None:
    """No schema at all would refuse every record one by one: say it at once."""
    with pytest.raises(PrerequisiteError, match="incomplete"):
        SchemaStore.load(tmp_path)


def test_each_file_is_usable_alone(tmp_path: Path) -> None:
    """Every Avro library parses one file at a time: no file may lean on another one's named types."""
    for path in sorted(resource_path("schemas").glob("*.avsc")):
        alone = tmp_path / path.stem
        alone.mkdir()
        shutil.copy(path, alone)
        assert len(SchemaStore.load(alone).all()) == 1
