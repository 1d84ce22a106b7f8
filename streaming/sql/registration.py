"""Entering the tables and views into a catalog that other sessions share: Hive's, or another that Spark is given."""

import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from controlplane.errors import PrerequisiteError, UserError
from streaming.config import DELTA_CATALOG
from streaming.error_texts import root_reason
from streaming.sql.ddl import statements, table_location
from streaming.sql.spark import sentence_of
from streaming.storage import StoragePath
from streaming.tables.tables_folder import table_names

HIVE_CATALOG: Final[Mapping[str, str]] = {"spark.sql.catalogImplementation": "hive"}
"""The setting of a session whose catalog outlives it; which metastore that is, Spark's other settings say."""
_METASTORE_SETTINGS: Final = (
    "hive.metastore.uris",
    "javax.jdo.option.ConnectionURL",
    "hive.metastore.client.factory.class",
)
"""Each names a metastore; without any, Hive makes one in the working directory, which no other session looks for."""
_CATALOG: Final = re.compile(r"spark\.sql\.catalog\.\w+")
_LOCATION: Final = re.compile(r"^Location: (.+)$", re.MULTILINE)


class Registered(NamedTuple):
    """What a schema has after a registration.

    Attributes:
        added: the tables that it did not have before, sorted.
        kept: those that it had, sorted.
    """

    added: tuple[str, ...]
    kept: tuple[str, ...]


def refuse_without_metastore(session: SparkSession) -> None:
    """Check that what is registered would be found again.

    Raises:
        PrerequisiteError: neither a metastore nor another catalog is configured.
    """
    if any(_hive_setting(session, name) for name in _METASTORE_SETTINGS):
        return
    given = session.sparkContext.getConf().getAll()
    if not any(_CATALOG.fullmatch(name) and value != DELTA_CATALOG for name, value in given):
        raise PrerequisiteError(
            "no metastore is configured, so no other session would find what is registered: give "
            "--conf spark.hadoop.hive.metastore.uris=thrift://HOST:9083, or "
            "--conf spark.hadoop.javax.jdo.option.ConnectionURL=jdbc:..., or name it in spark-defaults.conf or in "
            "hive-site.xml in the folder SPARK_CONF_DIR"
        )


def register(session: SparkSession, tables_dir: StoragePath, schema: str) -> Registered:
    """Enter the tables of a folder and the views over them; what the schema has already stays as it is.

    Args:
        session: its catalog is written; see :data:`HIVE_CATALOG`.
        tables_dir: the folder of the tables.
        schema: the schema that gets them; it is created if it is missing.

    Raises:
        UserError: the schema has a table of the same name that lies elsewhere. Nothing was entered.
        PrerequisiteError: the catalog cannot be reached, or refuses a statement.
    """
    create_schema, *others = statements(tables_dir, schema)
    _run(session, create_schema)
    there = _locations(session, schema)
    names = table_names(tables_dir)
    for name in names:
        ours = table_location(tables_dir, name)
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
        if "HiveMetaStoreClient" in str(error):
            address = _hive_setting(session, "hive.metastore.uris")
            at = f" at {address}" if address else ""
            message = (
                f"the metastore{at} does not answer: {root_reason(error)}; see that it runs, and that this machine "
            )
            raise PrerequisiteError(f"{message}reaches it by this address") from error
        message = f"the catalog did not carry out {statement.partition(chr(10))[0]!r}: {sentence_of(error)}"
        raise PrerequisiteError(message) from error


def _hive_setting(session: SparkSession, name: str) -> str | None:
    """A setting of Hive's, from Spark's own settings, under either name, or from ``hive-site.xml``."""
    given = session.sparkContext.getConf().get(name)
    if given:
        return given
    jvm: Any = session._jvm  # noqa: SLF001 - pyspark has no other way
    context: Any = session.sparkContext._jsc  # noqa: SLF001
    settings = jvm.org.apache.hadoop.conf.Configuration(context.hadoopConfiguration())
    settings.addResource("hive-site.xml")
    value: str | None = settings.get(name)
    return value


def _place(uri: str) -> tuple[str, str, str]:
    """The parts of a URI, which ``file:/a`` and ``file:///a/`` share."""
    scheme, host, path, _, _ = urlsplit(uri)
    return scheme, host, path.rstrip("/")
