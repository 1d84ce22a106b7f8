"""What a commit says of a file's columns, so that readers pass over files that can hold no row they ask for."""

import json
from collections.abc import Iterable
from typing import Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from controlplane.errors import InvariantViolationError

_TEXT_CHARACTERS: Final = 32
"""How much of a text statistics keep, as Delta's own writers do it."""
_GREATEST_CHARACTER: Final = "\U0010ffff"

_Bound: TypeAlias = int | str


class FileStatistics:
    """Row count, and for each of some columns its bounds and the number of nulls, of rows as they are written.

    Every one of these columns has bounds if it has values. delta-rs takes a missing bound for one that no row meets,
    and would pass over the file.

    Args:
        columns: integers and texts.

    Raises:
        InvariantViolationError: a column is of another type.
    """

    def __init__(self, columns: Iterable[pa.Field]) -> None:
        self._row_count = 0
        self._null_counts: dict[str, int] = {}
        self._least: dict[str, _Bound] = {}
        self._greatest: dict[str, _Bound] = {}
        for column in columns:
            if not (pa.types.is_integer(column.type) or pa.types.is_string(column.type)):
                message = f"the column {column.name} is of the type {column.type}, of which no statistics are made"
                raise InvariantViolationError(f"{message}: let integers and texts be the table's first columns")
            self._null_counts[column.name] = 0

    def add(self, rows: pa.Table) -> None:
        """Count rows, which have these columns."""
        self._row_count += rows.num_rows
        for name in self._null_counts:
            self._null_counts[name] += rows[name].null_count
            bounds = pc.min_max(rows[name])
            least, greatest = bounds["min"].as_py(), bounds["max"].as_py()
            if least is not None:
                least, greatest = _at_most(least), _at_least(greatest)
                self._least[name] = min(self._least.get(name, least), least, key=_rank)
                self._greatest[name] = max(self._greatest.get(name, greatest), greatest, key=_rank)

    def as_json(self) -> str:
        """Delta's form, as a commit holds it."""
        statistics = {
            "numRecords": self._row_count,
            "minValues": self._least,
            "maxValues": self._greatest,
            "nullCount": self._null_counts,
        }
        # Characters stand for themselves: delta-rs takes two escapes that are one character for another character.
        return json.dumps(statistics, ensure_ascii=False)


def _at_most(bound: _Bound) -> _Bound:
    """The beginning of a text, which is not greater."""
    return bound[:_TEXT_CHARACTERS] if isinstance(bound, str) else bound


def _at_least(bound: _Bound) -> _Bound:
    """The beginning of a text, and as many of the greatest character as make it greater than the text."""
    if not isinstance(bound, str) or len(bound) <= _TEXT_CHARACTERS:
        return bound
    rest = bound[_TEXT_CHARACTERS:]
    repeated = len(rest) - len(rest.lstrip(_GREATEST_CHARACTER))
    return bound[:_TEXT_CHARACTERS] + (repeated + 1) * _GREATEST_CHARACTER


def _rank(bound: _Bound) -> int | bytes:
    """The order in which readers compare: texts by their bytes."""
    return bound.encode() if isinstance(bound, str) else bound
