"""The table of decisions written without Spark, as its stream writes it: a file for each batch."""

from collections.abc import Sequence

from controlplane.codec.decisions import encode_decision
from controlplane.core.log.decision import Decision
from streaming.contracts.records import DECISIONS_TABLE
from streaming.records.decision_rows import decision_rows
from streaming.records.decode import RawRow
from streaming.storage import StoragePath
from streaming.tables.table_writer import TableWriter

APPENDED_EVERY_MS = 1_000
"""The append time of the record at offset n is n times as much."""


def recorded(whole: Sequence[Decision]) -> list[RawRow]:
    """The decisions as records of the log."""
    parts = [part for decision in whole for part in encode_decision(decision)]
    return [RawRow(0, offset, APPENDED_EVERY_MS * offset, None, part) for offset, part in enumerate(parts)]


class DecisionTable:
    """The table ``decisions`` of a folder of tables.

    Args:
        tables_dir: the folder, with its empty tables.
        decisions: what will be in it.
    """

    def __init__(self, tables_dir: StoragePath, decisions: Sequence[Decision]) -> None:
        """Open the table."""
        self._table = TableWriter(tables_dir, DECISIONS_TABLE, "test")
        names = DECISIONS_TABLE.columns
        self._rows = [dict(zip(names, row, strict=True)) for row in decision_rows(recorded(decisions))]
        self.written = 0

    def add(self, count: int) -> None:
        """Write the next decisions, as one batch."""
        rows = self._rows[self.written : self.written + count]
        self.written += len(rows)
        if rows:
            self._table.append(rows, self.written)
