"""The engine for small questions: DuckDB over the tables' files, without Java. It answers at once.

The tables are opened by deltalake and read through Arrow, so DuckDB needs no extension. Two things keep it from
changing anything. Of the kinds of statements only those that read are carried out. And the database itself is in
memory, shut off from files and networks once it is set up; it knows the tables as views.
"""

from pathlib import Path
from typing import Final, Self

import duckdb
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from streaming.sql.answers import NEWEST_SEQ, QueryResult, failed, named_in, plain, refused
from streaming.warehouse import table_names

_SETTINGS: Final = (
    "SET TimeZone = 'UTC'",
    # Names in statements are tables, never Python's variables, and nothing is fetched at run time.
    "SET python_enable_replacements = false",
    "SET autoinstall_known_extensions = false",
    "SET autoload_known_extensions = false",
    "SET enable_external_access = false",
    "SET lock_configuration = true",
)


class LocalEngine:
    """Implements :class:`streaming.sql.answers.SqlEngine`. Not thread-safe.

    Args:
        warehouse_dir: the folder of the tables.
    """

    def __init__(self, warehouse_dir: Path) -> None:
        """Set up the database; tables are opened when a statement names them."""
        self._warehouse_dir = warehouse_dir
        self._tables = table_names(warehouse_dir)
        self._opened: set[str] = set()
        self._database = duckdb.connect(":memory:")
        for setting in _SETTINGS:
            self._database.execute(setting)

    def newest_seq(self) -> int | None:
        """See :meth:`streaming.sql.answers.SqlEngine.newest_seq`."""
        if "decisions" not in self._tables:
            return None
        ((seq,),) = self.run(NEWEST_SEQ).rows
        return seq if isinstance(seq, int) else None

    def run(self, statement: str) -> QueryResult:
        """See :meth:`streaming.sql.answers.SqlEngine.run`.

        Raises:
            UserError: the statement is not a question, or invalid, or names a table that only Spark reads.
        """
        named = named_in(statement, self._tables)
        try:
            parsed = self._database.extract_statements(statement)
            if len(parsed) != 1:
                raise refused(f"a text of {len(parsed)} statements")
            if parsed[0].type != duckdb.StatementType.SELECT:
                raise refused(parsed[0].type.name)
            for name in named:
                self._open(name)
            found = self._database.execute(parsed[0])
            columns = tuple(column[0] for column in found.description or ())
            rows = tuple(tuple(plain(value) for value in row) for row in found.fetchall())
        except duckdb.Error as error:
            raise failed(_sentence(error), named) from error
        except DeltaError as error:
            raise failed(f"{error}; --engine spark may read it", named) from error
        return QueryResult(columns, rows)

    def close(self) -> None:
        """See :meth:`streaming.sql.answers.SqlEngine.close`."""
        self._database.close()

    def __enter__(self) -> Self:
        """Begin."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close."""
        self.close()

    def _open(self, name: str) -> None:
        if name not in self._opened:
            self._database.register(name, DeltaTable(self._warehouse_dir / name).to_pyarrow_dataset())
            self._opened.add(name)


def _sentence(error: duckdb.Error) -> str:
    """What DuckDB says up to its picture of the place, on one line."""
    return " ".join(str(error).partition("\n\n")[0].split())
