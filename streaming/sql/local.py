"""The engine that answers at once, without Java: DuckDB over the tables' files.

The tables are opened by deltalake and read through Arrow, so DuckDB needs no extension. Two things keep it from
changing anything. Of the nodes that its parser makes of a statement only those that read are let through. And the
database is in memory, shut off from files and networks once it is set up; it knows the tables as views.
"""

import json
import re
from typing import Any, Final

import duckdb
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from controlplane.errors import UserError
from streaming.contracts.views import View
from streaming.error_texts import first_line
from streaming.sql.answers import QueryResult, SqlEngine, plain, refused
from streaming.storage import StoragePath
from streaming.tables.tables_folder import table_names

_SETTINGS: Final = (
    "SET TimeZone = 'UTC'",
    # Names in statements are tables, never Python's variables, and nothing is fetched at run time.
    "SET python_enable_replacements = false",
    "SET autoinstall_known_extensions = false",
    "SET autoload_known_extensions = false",
    # By default what does not fit is spilled to .tmp in the working directory, and statements may read and write there.
    "SET temp_directory = ''",
    "SET enable_external_access = false",
    "SET lock_configuration = true",
)
_READS: Final = frozenset({"RECURSIVE_CTE_NODE", "SELECT_NODE", "SET_OPERATION_NODE"})
"""The nodes that read. In a statement that is a SELECT the body of a WITH may be COPY, INSERT, UPDATE or DELETE."""
_TERMINAL_CODES: Final = re.compile(r"\x1b\[[\d;]*m")


class LocalEngine(SqlEngine):
    """DuckDB in this process.

    Args:
        tables_dir: the folder of the tables.
    """

    def __init__(self, tables_dir: StoragePath) -> None:
        """Set up the database."""
        super().__init__(table_names(tables_dir))
        self._tables_dir = tables_dir
        self._database = duckdb.connect(":memory:")
        for setting in _SETTINGS:
            self._database.execute(setting)

    def run(self, statement: str) -> QueryResult:
        """See :meth:`streaming.sql.answers.SqlEngine.run`.

        Raises:
            UserError: the statement is no query, or invalid, or names a table that cannot be read.
        """
        try:
            query = self._query(statement)
            self._open_named(statement)
            found = self._database.execute(query)
            columns = tuple(column[0] for column in found.description or ())
            rows = tuple(tuple(plain(value) for value in row) for row in found.fetchall())
        except duckdb.Error as error:
            raise self._failed(_sentence(error)) from error
        return QueryResult(columns, rows)

    def close(self) -> None:
        """See :meth:`streaming.sql.answers.SqlEngine.close`."""
        self._database.close()

    def _query(self, statement: str) -> duckdb.Statement:
        """The statement, parsed, if all that it does is to read."""
        parsed = self._database.extract_statements(statement)
        if len(parsed) != 1:
            message = f"a STATEMENT has to be one statement, not {len(parsed)}: give each as an argument of its own"
            raise UserError(message)
        kind = parsed[0].type
        if kind == duckdb.StatementType.MULTI:
            raise UserError(
                "PIVOT without the values of its column is refused, because DuckDB makes a type of them first: "
                "name the values, as in PIVOT decisions ON term IN (1, 2) USING count(*)"
            )
        if kind != duckdb.StatementType.SELECT:
            raise refused(kind.name)
        ((tree,),) = self._database.execute("select json_serialize_sql(?)", [statement]).fetchall()
        for node in sorted(_nodes(json.loads(tree)) - _READS):
            raise refused(node)
        return parsed[0]

    def _open(self, name: str) -> None:
        try:
            dataset = DeltaTable(str(self._tables_dir / name)).to_pyarrow_dataset()
        except DeltaError as error:
            raise UserError(f"the table {name} cannot be read: {first_line(error)}") from error
        self._database.register(name, dataset)

    def _define(self, view: View) -> None:
        self._database.execute(f"create view {view.name} as {view.query}")


def _nodes(tree: Any) -> set[str]:  # noqa: ANN401 - parsed JSON
    """The kinds of the query nodes in a parsed statement."""
    if isinstance(tree, list):
        return {node for item in tree for node in _nodes(item)}
    if not isinstance(tree, dict):
        return set()
    kind = tree.get("type")
    own = {kind} if isinstance(kind, str) and kind.endswith("_NODE") else set()
    return own.union(*map(_nodes, tree.values()))


def _sentence(error: duckdb.Error) -> str:
    """What DuckDB says up to its picture of the place, on one line."""
    return " ".join(_TERMINAL_CODES.sub("", str(error)).partition("\n\n")[0].split())
