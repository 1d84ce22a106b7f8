"""The tables of a folder as a log, for commands that read one."""

from collections.abc import Iterator
from contextlib import contextmanager

from controlplane.adapters.system_clock import SystemClock
from controlplane.cli.common.extras import needs_extra
from controlplane.inspection.source import LogSource
from streaming.storage import StoragePath
from streaming.tables.warehouse import cluster_of, refuse_without_tables


def newest_seq(tables_dir: StoragePath) -> int:
    """The seq of the newest decision in the tables of a folder; 0 if there is none."""
    from streaming.tables.newest_decision import newest_decision

    newest = newest_decision(tables_dir)
    return 0 if newest is None else newest.seq


@contextmanager
def reading_tables(tables_dir: StoragePath, cluster: str) -> Iterator[LogSource]:
    """The log that the pipeline has written to a folder, as it is now.

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
    source = LogSource(TableLogReader(tables_dir), SystemClock())
    try:
        yield source
    finally:
        source.close()
