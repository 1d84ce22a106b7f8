"""The tables of a folder as a log, for commands that read one."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from controlplane.adapters.system_clock import SystemClock
from controlplane.cli.common.extras import needs_extra
from controlplane.inspection.source import LogSource
from streaming.storage import StoragePath
from streaming.tables.tables_folder import cluster_of, refuse_without_tables

if TYPE_CHECKING:
    from streaming.records.table_log import HeldDecisions


@dataclass(frozen=True, slots=True)
class TableSource(LogSource):
    """A log that is read from tables.

    Attributes:
        held: the decisions in the tables, also those that were not read.
    """

    held: "HeldDecisions" = field(kw_only=True)


@contextmanager
def reading_tables(tables_dir: StoragePath, cluster: str) -> Iterator[tuple[TableSource, TableSource]]:
    """The log that the pipeline has written to a folder, as it is now, for two queries at a time.

    Args:
        tables_dir: the folder.
        cluster: the name of the cluster, unless the folder has one.

    Raises:
        PrerequisiteError: there are no tables.
        MissingExtraError: what reads them is not installed.
    """
    with needs_extra("pipeline", "reading the tables", {"deltalake", "pyarrow", "pyspark"}):
        from streaming.records.table_log import TableLogReader
    refuse_without_tables(tables_dir, cluster_of(tables_dir) or cluster)
    reader = TableLogReader(tables_dir)
    first, second = (TableSource(each, SystemClock(), held=reader.held) for each in (reader, reader.beside()))
    with closing(first), closing(second):
        yield first, second
