"""Any rows of the table ``membership``, for tests that need rows and do not mind which."""

from datetime import UTC, date, datetime
from pathlib import Path

from streaming.contracts.records import MEMBERSHIP_TABLE
from streaming.tables.table_writer import TableWriter


def add_membership_rows(tables_dir: Path, count: int, version: int = 1, day: date | None = None) -> None:
    """Add rows of a day, by default today, to the table, in a commit of their own."""
    empty = {field.name: "text" if field.dataType.typeName() == "string" else None for field in MEMBERSHIP_TABLE.fields}
    row = {**empty, "append_time_ms": 1, "day": day or datetime.now(UTC).date()}
    rows = [{**row, "partition": number, "offset": number} for number in range(count)]
    TableWriter(tables_dir, MEMBERSHIP_TABLE, "test").append(rows, version)
