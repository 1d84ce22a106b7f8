"""The statements that make the tables and views known to a catalog: of Spark, of Hive, of Unity."""

from collections.abc import Iterator

from streaming.contracts.catalog import ALL_TABLES
from streaming.contracts.views import ALL_VIEWS
from streaming.storage import StoragePath


def statements(warehouse_dir: StoragePath, schema: str) -> Iterator[str]:
    """Statements of SQL, in the order in which they have to be carried out. Carried out again they change nothing.

    Columns, comments and properties are the tables' own: a catalog reads them where the tables are.

    Args:
        warehouse_dir: the folder of the tables.
        schema: the schema (database) that gets them, with its catalog if it needs one: ``main.controlplane``.
    """
    yield f"CREATE SCHEMA IF NOT EXISTS {schema}"
    yield f"USE {schema}"
    for table in ALL_TABLES:
        location = (warehouse_dir.absolute() / table.name).as_uri().replace("'", "\\'")
        yield f"CREATE TABLE IF NOT EXISTS {table.name} USING DELTA LOCATION '{location}'"
    for view in ALL_VIEWS:
        yield f"CREATE OR REPLACE VIEW {view.name} AS\n{view.query.rstrip()}"
