"""What every engine answers: plain values, refusals and errors of one form."""

import math
import re
from collections.abc import Collection
from datetime import date, datetime
from typing import Final, NamedTuple, Protocol

from controlplane.core.values.canonical import CanonicalValue
from controlplane.errors import UserError

NEWEST_SEQ: Final = "select max(seq) from decisions"
"""How far the tables are. It is answered if there is the table of decisions."""


class QueryResult(NamedTuple):
    """The result of a statement: column names, and rows of plain values (dates as ISO text, bytes as hexadecimal)."""

    columns: tuple[str, ...]
    rows: tuple[tuple[CanonicalValue, ...], ...]


class SqlEngine(Protocol):
    """Answers queries of the tables of one folder, each known by its name.

    A query is a statement that reads. A table stays as it was when a query first named it.
    """

    def newest_seq(self) -> int | None:
        """The seq of the newest decision in the tables; None if there is none yet."""
        ...

    def run(self, statement: str) -> QueryResult:
        """Answer one query.

        Raises:
            UserError: the statement is no query, or invalid; the message says what is wrong with it.
        """
        ...

    def close(self) -> None:
        """Release what the engine holds."""
        ...


def plain(value: object) -> CanonicalValue:
    """A value of an engine in a form that prints and that JSON knows."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)  # JSON has no word for it
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, tuple) and hasattr(value, "__fields__"):  # a row of Spark
        return {name: plain(item) for name, item in zip(value.__fields__, value, strict=True)}
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, bytes | bytearray):
        return bytes(value).hex()
    if isinstance(value, datetime | date):
        return value.isoformat()
    return str(value)


def named_in(statement: str, tables: Collection[str]) -> tuple[str, ...]:
    """The tables that a statement names, because opening one takes time; all if it names none (``show tables``)."""
    named = tuple(name for name in tables if re.search(rf"\b{re.escape(name)}\b", statement, re.IGNORECASE))
    return named or tuple(tables)


def refused(kind: str) -> UserError:
    """The refusal of a statement that is no query; ``kind`` is the engine's word for what it would do."""
    return UserError(f"{kind} is refused: SELECT, VALUES, SHOW TABLES and DESCRIBE are carried out, and nothing else")


def failed(reason: str, tables: Collection[str]) -> UserError:
    """The error of a statement that an engine cannot carry out, with the engine's first sentence."""
    return UserError(f"the statement failed: {reason} (tables: {', '.join(tables)})")
