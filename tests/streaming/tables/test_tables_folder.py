"""Of which cluster the tables in a folder are."""

from pathlib import Path

import pytest

from controlplane.errors import PrerequisiteError
from streaming.storage import ObjectPath
from streaming.tables.tables_folder import name_cluster
from tests.helpers.s3_server import s3_server


@pytest.mark.slow
def test_a_store_that_refuses_is_no_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A bucket that is not there: the tables are not taken for new ones."""
    with s3_server(tmp_path, "tables") as environment:
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        with pytest.raises(PrerequisiteError, match="s3a://elsewhere/delta"):
            name_cluster(ObjectPath("elsewhere", "delta"), "eu")


def test_a_folder_that_cannot_be_written_is_not_said_to_be_missing(tmp_path: Path) -> None:
    """The link leads nowhere, so that the file cannot be written, also by an administrator."""
    (tmp_path / "cluster").symlink_to(tmp_path / "nowhere" / "cluster")
    with pytest.raises(PrerequisiteError, match="cannot be written: "):
        name_cluster(tmp_path, "eu")
