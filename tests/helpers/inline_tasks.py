"""Tasks of Spark carried out in the test's own thread: for many histories, where a session would take minutes."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import Row
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType


class InlineTasks:
    """What a follower needs of a session."""

    def createDataFrame(self, rows: Iterable[tuple[Any, ...]], schema: str) -> "InlineFrame":  # noqa: N802 - Spark's name
        """Rows of one text column."""
        name, _, kind = schema.partition(" ")
        assert kind == "string"
        return InlineFrame(pa.table({name: pa.array([value for (value,) in rows], pa.string())}))


class InlineFrame:
    """One partition."""

    def __init__(self, rows: pa.Table) -> None:
        """Take the rows."""
        self._rows = rows

    def coalesce(self, count: int) -> "InlineFrame":
        """It is one partition."""
        assert count == 1
        return self

    def mapInArrow(  # noqa: N802 - Spark's name
        self, task: Callable[[Iterator[pa.RecordBatch]], Iterable[pa.RecordBatch]], schema: StructType
    ) -> "InlineFrame":
        """Carry out a task, with three rows in a batch."""
        expected = to_arrow_schema(schema)
        made = [pa.Table.from_batches([batch]) for batch in task(iter(self._rows.to_batches(max_chunksize=3)))]
        rows = [table.select(expected.names).cast(expected) for table in made]
        return InlineFrame(pa.concat_tables([expected.empty_table(), *rows]))

    def collect(self) -> Sequence[Row]:
        """The rows."""
        return [_row(values) for values in self._rows.to_pylist()]


def _row(values: dict[str, Any]) -> Row:
    return Row(**{name: _row(value) if isinstance(value, dict) else value for name, value in values.items()})
