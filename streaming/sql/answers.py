"""What every engine answers: plain values, refusals and errors of one form."""

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable
from datetime import date, datetime
from typing import Final, NamedTuple

from controlplane.core.values.canonical import CanonicalValue
from controlplane.errors import UserError
from streaming.contracts.views import ALL_VIEWS, View

_DECISIONS: Final = "decisions"
_NEWEST_SEQ: Final = "select max(seq) from decisions"


class QueryResult(NamedTuple):
    """The result of a statement: column names, and rows of plain values (dates as ISO text, bytes as hexadecimal)."""

    columns: tuple[str, ...]
    rows: tuple[tuple[CanonicalValue, ...], ...]


class SqlEngine(ABC):
    """Answers queries of the tables of one folder and of the views over them, each known by its name. Not thread-safe.

    A query is a statement that reads. A table stays as it was when a query first named it.

    Args:
        tables: the names of the tables that there are.
    """

    def __init__(self, tables: Iterable[str]) -> None:
        """Open no table yet: that takes time, and a query names few."""
        there = list(tables)
        self._views: dict[str, View] = {}
        for view in ALL_VIEWS:
            if {*there} >= {*view.tables}:
                self._views[view.name] = view
                there.append(view.name)
        self._tables = tuple(there)
        self._opened: set[str] = set()

    def newest_seq(self) -> int | None:
        """The seq of the newest decision in the tables; None if there is none yet."""
        if _DECISIONS not in self._tables:
            return None
        ((seq,),) = self.run(_NEWEST_SEQ).rows
        return seq if isinstance(seq, int) else None

    @abstractmethod
    def run(self, statement: str) -> QueryResult:
        """Answer one query.

        Raises:
            UserError: the statement is no query, or invalid, or names a table that cannot be read; the message says
                what is wrong with it.
        """

    @abstractmethod
    def close(self) -> None:
        """Release what the engine holds."""

    @abstractmethod
    def _open(self, name: str) -> None:
        """Let statements know a table by its name."""

    @abstractmethod
    def _define(self, view: View) -> None:
        """Let statements know a view by its name; what it reads is open."""

    def _open_named(self, statement: str) -> None:
        """Open the tables that a statement names and that are not open; all if it names none (``show tables``)."""
        named = [name for name in self._tables if re.search(rf"\b{re.escape(name)}\b", statement, re.IGNORECASE)]
        for name in named or self._tables:
            self._open_once(name)

    def _open_once(self, name: str) -> None:
        if name in self._opened:
            return
        view = self._views.get(name)
        if view is None:
            self._open(name)
        else:
            for read in view.tables:
                self._open_once(read)
            self._define(view)
        self._opened.add(name)

    def _failed(self, reason: str) -> UserError:
        """The error of a statement that the engine cannot carry out, with the engine's first sentence."""
        return UserError(f"the statement failed: {reason} (tables: {', '.join(self._tables)})")


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


def refused(kind: str) -> UserError:
    """The refusal of a statement that is no query; ``kind`` is the engine's word for what it would do."""
    return UserError(f"{kind} is refused: SELECT, VALUES, SHOW TABLES and DESCRIBE are carried out, and nothing else")
