"""Bundles that have ended, whose rows ``bundle_load`` forgets once no report names them any more.

Ends are looked up in ``bundle_changes`` in the order of decisions. Up to which decision that is done stands in the
commits of ``bundle_load``, as an application transaction of Delta: in the one that removes rows, and in that of each
batch. So it goes on from there after any stop, however long. What was done behind it is done again without harm: a row
that is gone is not written again.
"""

import functools
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession

from streaming.broker_clocks import CLOCK_ALLOWANCE_MS
from streaming.contracts.changes import BUNDLE_CHANGES_TABLE, BUNDLES_TABLE
from streaming.contracts.table import BUCKET_COLUMN
from streaming.load.bucket_files import StoredBuckets, write_bucket
from streaming.storage import StoragePath
from streaming.tables.stored_table import StoredTable
from streaming.tables.table_files import WRITTEN_TYPE, WrittenFile, written_files
from streaming.tables.table_writer import TableWriter

REST_MS: Final = 600_000
"""For how long a bundle has to have ended, and no report to have named it, until its row is forgotten."""
_ENDED_SEQ: Final = "controlplane.bundle_load.ended_seq"
"""The name under which the last decision of which all ends are handled stands in the commits of ``bundle_load``."""
_NONE: Final = -1
"""Before the first decision."""
_STEP_DECISIONS: Final = 10_000
"""Among how many decisions that changed bundles ends are looked up at once: what bounds a step after a long stop."""


class GoneBundles:
    """The bundles that decisions have ended, as far as their rows are still to be forgotten.

    Args:
        tables_dir: the folder of the tables.
        table: ``bundle_load``, as its writer sees it.
    """

    def __init__(self, tables_dir: StoragePath, table: TableWriter) -> None:
        """See how far the table is."""
        self._changes = StoredTable(tables_dir, BUNDLE_CHANGES_TABLE)
        self._bundles = StoredTable(tables_dir, BUNDLES_TABLE)
        self._table = table
        handled_seq = table.position(_ENDED_SEQ)
        self._handled_seq = _NONE if handled_seq is None else handled_seq

    @property
    def position(self) -> Mapping[str, int]:
        """How far it is, for a commit of the table."""
        return {_ENDED_SEQ: self._handled_seq}

    def forget(self, session: SparkSession, now_ms: int, version: int) -> None:
        """Remove the rows of the next bundles that have ended, in one commit with how far that is.

        Args:
            session: has the executors.
            now_ms: a log time.
            version: the writer's.
        """
        gone, handled_seq = self._next(now_ms)
        files = []
        if gone:
            buckets = StoredBuckets(session, self._table.folder, self._table.files_of_buckets())
            files = files_without(buckets, gone, now_ms)
        self._handled_seq = handled_seq
        if files:
            self._table.replace_bucket_files(files, version, self.position)

    def _next(self, now_ms: int) -> tuple[frozenset[str], int]:
        """The bundles whose rows are to be looked for, and the decision up to which that is for the last time.

        They are looked for at each evaluation until no late report can name them.
        """
        is_next = pc.field("seq") > self._handled_seq
        seqs = np.unique(self._changes.rows(is_next, ["seq"])["seq"].to_numpy())[:_STEP_DECISIONS]
        if not len(seqs):
            return frozenset(), self._handled_seq
        within = is_next & (pc.field("seq") <= int(seqs[-1]))
        columns = ["seq", "append_time_ms", "ended", "bundle_id"]
        changes = self._changes.rows(within, columns).sort_by("seq")
        # A decision is no younger than those behind it, also if the broker's clock was ahead when it was appended.
        time_ms = np.minimum.accumulate(changes["append_time_ms"].to_numpy()[::-1])[::-1]
        ended = changes["ended"].to_numpy()
        waiting = changes["seq"].to_numpy()[ended & (now_ms - time_ms < 2 * REST_MS)]
        handled_seq = int(waiting[0]) - 1 if len(waiting) else int(seqs[-1])
        due = set(changes["bundle_id"].filter(pa.array(ended & (now_ms - time_ms >= REST_MS))).to_pylist())
        if not due:
            return frozenset(), handled_seq
        again = self._bundles.rows(pc.field("bundle_id").isin(sorted(due)), ["bundle_id"])["bundle_id"].to_pylist()
        return frozenset(due.difference(again)), handled_seq


def files_without(buckets: StoredBuckets, bundle_ids: Collection[str], now_ms: int) -> list[WrittenFile]:
    """Write the buckets that have rows of these bundles, without those rows.

    Args:
        buckets: those of ``bundle_load``.
        bundle_ids: the bundles.
        now_ms: the time; a report of the last ten minutes keeps a row, unless it is dated ahead.
    """
    kept_ms = range(now_ms - REST_MS, now_ms + CLOCK_ALLOWANCE_MS + 1)
    write = functools.partial(_write_without, folder=buckets.folder, bundle_ids=sorted(bundle_ids), kept_ms=kept_ms)
    return written_files(buckets.map(write, WRITTEN_TYPE))


def _write_without(
    rows: pa.Table, folder: StoragePath, bundle_ids: Sequence[str], kept_ms: range
) -> Iterator[pa.RecordBatch]:
    time_ms = rows["report_time_ms"]
    is_silent = pc.or_(pc.less(time_ms, kept_ms.start), pc.greater_equal(time_ms, kept_ms.stop))
    is_gone = pc.and_(pc.is_in(rows["bundle_id"], pa.array(bundle_ids, pa.string())), is_silent)
    if pc.any(is_gone).as_py():
        yield write_bucket(folder, rows[BUCKET_COLUMN][0], rows.filter(pc.invert(is_gone)))
