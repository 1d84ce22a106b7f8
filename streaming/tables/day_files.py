"""Files of tables of history: each task of a batch writes its rows, a file for each day, and names them to the driver.

A task that is repeated writes others. The driver commits those of the tasks that ended.
"""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import LongType, StringType, StructField, StructType

from streaming.contracts.days import DAY_MS, day_of_ms
from streaming.contracts.table import DAY_COLUMN, TableContract
from streaming.storage import StoragePath
from streaming.tables.table_files import WRITTEN_TYPE, TableFileWriter, WrittenFile, file_rows

TASK_RESULT_TYPE: Final = StructType(
    [StructField("table", StringType()), StructField("file", WRITTEN_TYPE), StructField("passed_over", LongType())]
)
"""What a task returns: a row for each file, with its table, and one with the number of records that it passed over."""
_TASK_RESULT_SCHEMA: Final = to_arrow_schema(TASK_RESULT_TYPE)


def without_day(contract: TableContract) -> pa.Schema:
    """The columns of a table of history but the day, which :class:`DayFiles` adds."""
    schema = to_arrow_schema(contract.schema)
    return schema.remove(schema.get_field_index(DAY_COLUMN))


class DayFiles:
    """What one task writes of one table.

    Args:
        folder: the table's.
        contract: the table's.
        dated_by: the column of milliseconds since 1970 that determines the day.
    """

    def __init__(self, folder: StoragePath, contract: TableContract, dated_by: str = "append_time_ms") -> None:
        self._folder = folder
        self._schema = to_arrow_schema(contract.schema)
        self._dated_by = dated_by
        self._writers: dict[int, TableFileWriter] = {}

    def write(self, rows: pa.Table) -> None:
        """Add rows, which have the table's columns; the day may be left out."""
        days = rows[self._dated_by].to_numpy() // DAY_MS
        for day in np.unique(days).tolist():
            if day not in self._writers:
                name = day_of_ms(day * DAY_MS).isoformat()
                self._writers[day] = TableFileWriter(self._folder, DAY_COLUMN, name, self._schema)
            self._writers[day].write(rows.filter(pa.array(days == day)))

    def close(self) -> list[WrittenFile]:
        """End the files."""
        return [writer.close() for writer in self._writers.values()]


class BatchFiles(NamedTuple):
    """What all tasks of a batch have written.

    Attributes:
        files: by the name of their table.
        passed_over: the number of records that became no row.
    """

    files: Mapping[str, Sequence[WrittenFile]]
    passed_over: int


def task_result(files: Mapping[str, Sequence[WrittenFile]], passed_over: int) -> pa.RecordBatch:
    """The rows of :data:`TASK_RESULT_TYPE`, which a task returns at its end."""
    names = [table for table, written in files.items() for _ in written]
    structs = file_rows(file for written in files.values() for file in written).to_struct_array()
    of_files = pa.RecordBatch.from_arrays(
        [pa.array(names, pa.string()), structs, pa.nulls(len(names), pa.int64())], schema=_TASK_RESULT_SCHEMA
    )
    count = pa.RecordBatch.from_pylist([{"passed_over": passed_over}], schema=_TASK_RESULT_SCHEMA)
    return pa.concat_batches([of_files, count])


def batch_files(task_results: DataFrame) -> BatchFiles:
    """Carry a batch out: every task writes its files."""
    files: dict[str, list[WrittenFile]] = {}
    passed_over = 0
    for row in task_results.collect():
        if row["file"] is None:
            passed_over += row["passed_over"]
        else:
            files.setdefault(row["table"], []).append(WrittenFile(*row["file"]))
    return BatchFiles(files, passed_over)
