"""The cluster of the tables in a folder: the pipeline stores its name, and queries read it, without Spark."""

from pathlib import Path

from controlplane.errors import PrerequisiteError

_OWNER_FILE = "cluster"


def cluster_of(warehouse_dir: Path) -> str | None:
    """The name of the cluster whose tables these are; None if the folder does not have it."""
    try:
        return (warehouse_dir / _OWNER_FILE).read_text(encoding="utf-8").strip() or None
    except OSError:
        return None


def claim(warehouse_dir: Path, cluster: str) -> None:
    """Store the name of the cluster. A folder without a name becomes this cluster's.

    Raises:
        PrerequisiteError: the tables are those of another cluster, or the folder cannot be written.
    """
    owner = cluster_of(warehouse_dir)
    if owner not in (None, cluster):
        message = (
            f"the tables in {warehouse_dir} are those of cluster {owner}: give {cluster} a folder of its own, or, "
            f"if that name was a mistake, remove the file {warehouse_dir / _OWNER_FILE}"
        )
        raise PrerequisiteError(message)
    try:
        warehouse_dir.mkdir(parents=True, exist_ok=True)
        if owner is None:
            (warehouse_dir / _OWNER_FILE).write_text(f"{cluster}\n", encoding="utf-8")
    except OSError as error:
        message = f"the folder of the tables, {warehouse_dir}, cannot be made: {error}"
        raise PrerequisiteError(message) from error
