"""The statements that make the tables and views known to a catalog: of Spark, of Hive, of Unity."""

from collections.abc import Iterator
from pathlib import Path

from streaming.contracts.catalog import ALL_TABLES
from streaming.contracts.views import ALL_VIEWS
from streaming.storage import StoragePath
from streaming.tables.tables_folder import table_names


def statements(tables_dir: StoragePath, schema: str) -> Iterator[str]:
    """Statements of SQL, in the order in which they have to be carried out. Carried out again they change nothing.

    Columns, comments and properties are the tables' own: a catalog reads them where the tables are.

    Args:
        tables_dir: the folder of the tables. Those that are there are made known, and the views that read only them.
        schema: the schema (database) that gets them, with its catalog if it needs one: ``main.controlplane``.
    """
    yield f"CREATE SCHEMA IF NOT EXISTS {schema}"
    yield f"USE {schema}"
    known = {*table_names(tables_dir)}
    for table in ALL_TABLES:
        if table.name in known:
            location = table_location(tables_dir, table.name).replace("\\", r"\\").replace("'", r"\'")
            yield f"CREATE TABLE IF NOT EXISTS {table.name} USING DELTA LOCATION '{location}'"
    for view in ALL_VIEWS:
        if known >= {*view.tables}:
            known.add(view.name)
            yield f"CREATE OR REPLACE VIEW {view.name} AS\n{view.query.rstrip()}"


def table_location(tables_dir: StoragePath, table_name: str) -> str:
    """Where a table is, as Spark writes URIs: characters such as spaces stand for themselves, and so does ``%``."""
    place = tables_dir.absolute() / table_name
    return f"file:{place}" if isinstance(place, Path) else str(place)
