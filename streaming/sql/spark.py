"""The engine for Spark's dialect, and for tables that only Spark reads. Its session takes 5 to 20 s to start."""

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from streaming.contracts.catalog import ALL_TABLES
from streaming.contracts.views import View
from streaming.sql import spark_tables
from streaming.sql.answers import QueryResult, SqlEngine, plain
from streaming.sql.spark_plans import require_query, shut_off
from streaming.storage import StoragePath
from streaming.tables.tables_folder import table_names


class SparkEngine(SqlEngine):
    """Spark SQL in a session.

    Args:
        session: reads Delta. It is the engine's, and ends with it.
        tables_dir: the folder of the tables.
    """

    def __init__(self, session: SparkSession, tables_dir: StoragePath) -> None:
        """Shut the session off from everything but the tables."""
        there = table_names(tables_dir)
        self._contracts = {table.name: table for table in ALL_TABLES if table.name in there}
        super().__init__(self._contracts)
        self._session = session
        self._tables_dir = tables_dir
        shut_off(session)

    def run(self, statement: str) -> QueryResult:
        """See :meth:`streaming.sql.answers.SqlEngine.run`.

        Raises:
            UserError: the statement is no query, or invalid.
        """
        try:
            require_query(self._session, statement)
            self._open_named(statement)
            found = self._session.sql(statement)
            rows = tuple(tuple(plain(value) for value in row) for row in found.collect())
        except PySparkException as error:
            raise self._failed(sentence_of(error)) from error
        return QueryResult(tuple(found.columns), rows)

    def close(self) -> None:
        """See :meth:`streaming.sql.answers.SqlEngine.close`."""
        self._session.stop()

    def _open(self, name: str) -> None:
        spark_tables.read(self._session, self._tables_dir, self._contracts[name]).createOrReplaceTempView(name)

    def _define(self, view: View) -> None:
        self._session.sql(view.query).createOrReplaceTempView(view.name)


def sentence_of(error: PySparkException) -> str:
    """What Spark says up to its picture of the plan, on one line."""
    return str(error.getMessage() or error).strip().partition("\n")[0]
