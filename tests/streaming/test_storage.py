"""Places of tables by their names; and what a folder and a prefix of an object store have in common."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from controlplane.errors import ConfigurationError, PrerequisiteError
from streaming.storage import ObjectPath, StoragePath, storage_path
from streaming.tables.tables_folder import cluster_of, name_cluster, refuse_without_tables, table_names
from tests.helpers.s3_server import s3_server


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("/shared/delta", Path("/shared/delta")),
        ("delta", Path("delta")),
        ("file:///shared/delta", Path("/shared/delta")),
        ("file:/shared/delta", Path("/shared/delta")),
        ("s3a://bucket/eu/delta/", ObjectPath("bucket", "eu/delta")),
        ("s3://bucket", ObjectPath("bucket", "")),
    ],
)
def test_a_place_is_a_path_or_a_uri(text: str, place: StoragePath) -> None:
    """S3 by either of its schemes."""
    assert storage_path(text) == place


@pytest.mark.parametrize("text", ["hdfs://host/delta", "s3a:///delta", "gs://bucket/delta", "file://host/delta"])
def test_other_schemes_are_refused(text: str) -> None:
    """With what is taken in their place."""
    with pytest.raises(ConfigurationError, match="is no place for tables: give a path, or s3a://BUCKET/PREFIX"):
        storage_path(text)


def test_what_is_below_a_prefix() -> None:
    """As with paths; the URI is Hadoop's."""
    bucket = ObjectPath("bucket", "")
    below = bucket / "eu" / "delta"
    assert (str(bucket), str(below), below.name) == ("s3a://bucket", "s3a://bucket/eu/delta", "delta")
    assert below.absolute() == below


@pytest.fixture(params=["folder", "object store"])
def place(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[StoragePath]:
    """A place in which nothing is yet."""
    if request.param == "folder":
        yield tmp_path / "eu" / "delta"
        return
    with s3_server(tmp_path, "tables") as environment:
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        yield ObjectPath("tables", "eu/delta")


@pytest.mark.slow
def test_a_folder_and_a_prefix_are_used_alike(place: StoragePath) -> None:
    """What is not there yet, what is written, and what is found again."""
    assert not place.exists()
    assert not place.is_dir()
    assert table_names(place) == ()
    assert cluster_of(place) is None
    name_cluster(place, "eu")
    assert cluster_of(place) == "eu"
    assert place.is_dir()
    assert (place / "cluster").exists()
    assert not (place / "cluster").is_dir()
    with pytest.raises(PrerequisiteError, match="are those of cluster eu: give us a folder of its own"):
        name_cluster(place, "us")
    with pytest.raises(PrerequisiteError, match="no tables of cluster eu in "):
        refuse_without_tables(place, "eu")
    for folder in ("decisions", "_claim"):
        below = place / folder / "_delta_log"
        below.mkdir(parents=True)
        (below / "0.json").write_text("{}", encoding="utf-8")
    assert table_names(place) == ("decisions",)
    assert sorted(each.name for each in place.iterdir()) == ["_claim", "cluster", "decisions"]
