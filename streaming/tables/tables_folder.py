"""The folder of the tables, as it is seen without Spark: which tables are there, and of which cluster."""

from typing import Final

from controlplane.errors import PrerequisiteError
from streaming.storage import StoragePath

_OWNER_FILE: Final = "cluster"


def table_names(tables_dir: StoragePath) -> tuple[str, ...]:
    """The tables that a pipeline has created in a folder, by their names, sorted."""
    if not tables_dir.is_dir():
        return ()
    folders = [each for each in tables_dir.iterdir() if not each.name.startswith("_")]
    return tuple(sorted(each.name for each in folders if (each / "_delta_log").is_dir()))


def refuse_without_tables(tables_dir: StoragePath, cluster: str) -> None:
    """Check that there are tables to query.

    Raises:
        PrerequisiteError: the folder has no tables of this cluster, or cannot be read.
    """
    owner = cluster_of(tables_dir)
    if not table_names(tables_dir) or owner not in (None, cluster):
        others = f" (those in it are of cluster {owner})" if owner not in (None, cluster) else ""
        raise PrerequisiteError(
            f"no tables of cluster {cluster} in {tables_dir}{others}: run 'controlplane pipeline run', or name "
            "the folder in which it writes with --tables-dir"
        )


def cluster_of(tables_dir: StoragePath) -> str | None:
    """The name of the cluster whose tables these are; None if the folder does not have it.

    Raises:
        PrerequisiteError: it cannot be read.
    """
    try:
        return (tables_dir / _OWNER_FILE).read_text(encoding="utf-8").strip() or None
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise PrerequisiteError(f"the folder of the tables, {tables_dir}, cannot be read: {error}") from error


def name_cluster(tables_dir: StoragePath, cluster: str) -> None:
    """Store the name of the cluster. A folder without a name becomes this cluster's.

    Raises:
        PrerequisiteError: the tables are those of another cluster, or the folder cannot be written.
    """
    owner = cluster_of(tables_dir)
    if owner not in (None, cluster):
        message = (
            f"the tables in {tables_dir} are those of cluster {owner}: give {cluster} a folder of its own, or, "
            f"if that name was a mistake, remove the file {tables_dir / _OWNER_FILE}"
        )
        raise PrerequisiteError(message)
    try:
        tables_dir.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        message = f"the folder of the tables, {tables_dir}, cannot be made: {error}"
        raise PrerequisiteError(message) from error
    if owner is not None:
        return
    try:
        (tables_dir / _OWNER_FILE).write_text(f"{cluster}\n", encoding="utf-8")
    except OSError as error:
        message = f"the folder of the tables, {tables_dir}, cannot be written: {error}"
        raise PrerequisiteError(message) from error
