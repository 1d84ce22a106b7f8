"""Entering the tables and views into a catalog that other sessions share: Hive's, or another that Spark is given."""

import re
from collections.abc import Mapping
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from controlplane.errors import PrerequisiteError, UserError
from streaming.sql.ddl import statements, table_location
from streaming.storage import StoragePath
from streaming.tables.warehouse import table_names

HIVE_CATALOG: Final[Mapping[str, str]] = {"spark.sql.catalogImplementation": "hive"}
"""The setting of a session whose catalog outlives it; which metastore that is, Spark's other settings say."""
_LOCATION: Final = re.compile(r"^Location: (.+)$", re.MULTILINE)


class Registered(NamedTuple):
    """What a schema has after a registration.

    Attributes:
        added: the tables that it did not have before, sorted.
        kept: those that it had, sorted.
    """

    added: tuple[str, ...]
    kept: tuple[str, ...]


def register(session: SparkSession, warehouse_dir: StoragePath, schema: str) -> Registered:
    """Enter the tables of a folder and the views over them; what the schema has already stays as it is.

    Args:
        session: its catalog is written; see :data:`HIVE_CATALOG`.
        warehouse_dir: the folder of the tables.
        schema: the schema that gets them; it is created if it is missing.

    Raises:
        UserError: the schema has a table of the same name that lies elsewhere. Nothing was entered.
        PrerequisiteError: the catalog cannot be reached, or refuses a statement.
    """
    create_schema, *others = statements(warehouse_dir, schema)
    _run(session, create_schema)
    there = _locations(session, schema)
    names = table_names(warehouse_dir)
    for name in names:
        ours = table_location(warehouse_dir, name)
        if name in there and _place(there[name]) != _place(ours):
            raise UserError(
                f"the catalog has {schema}.{name} at {there[name]}, and not at {ours}: give another --schema, or, if "
                f"that entry is of no use, remove it with DROP TABLE {schema}.{name}, which keeps its files"
            )
    for statement in others:
        _run(session, statement)
    return Registered(
        added=tuple(name for name in names if name not in there), kept=tuple(name for name in names if name in there)
    )


def _locations(session: SparkSession, schema: str) -> dict[str, str]:
    """Where the schema's tables are, by their names. Views are left out; a table need not be there any more."""
    found = {}
    for row in _run(session, f"SHOW TABLE EXTENDED IN {schema} LIKE '*'").collect():
        location = _LOCATION.search(row["information"])
        if location:
            found[row["tableName"]] = location[1]
    return found


def _run(session: SparkSession, statement: str) -> DataFrame:
    try:
        return session.sql(statement)
    except PySparkException as error:
        reason = str(error.getMessage() or error).strip().partition("\n")[0]
        message = f"the catalog did not carry out {statement.partition(chr(10))[0]!r}: {reason}"
        raise PrerequisiteError(message) from error


def _place(uri: str) -> tuple[str, str, str]:
    """The parts of a URI, which ``file:/a`` and ``file:///a/`` share."""
    scheme, host, path, _, _ = urlsplit(uri)
    return scheme, host, path.rstrip("/")
