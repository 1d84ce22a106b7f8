"""Bundles that have ended, whose rows ``bundle_load`` forgets once no report names them any more."""

import functools
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame

from streaming.contracts.changes import BUNDLE_CHANGES_TABLE, BUNDLES_TABLE
from streaming.load.bucket_files import read_buckets, write_bucket
from streaming.storage import StoragePath
from streaming.tables.driver_tables import DriverTable
from streaming.tables.table_files import WRITTEN_TYPE, WrittenFile

_LOOK_BACK_MS: Final = 86_400_000
"""How long after its end a bundle may be forgotten: the pipeline may have been down for a time."""
REST_MS: Final = 600_000
"""For how long a bundle has to have ended, and no report to have named it, until its row is forgotten."""


class GoneBundles:
    """The bundles that decisions have ended, as far as their rows are still to be forgotten.

    Args:
        warehouse_dir: the folder of the tables.
    """

    def __init__(self, warehouse_dir: StoragePath) -> None:
        self._changes = DriverTable(warehouse_dir, BUNDLE_CHANGES_TABLE, "")
        self._bundles = DriverTable(warehouse_dir, BUNDLES_TABLE, "")
        self._looked_for: set[tuple[str, int]] = set()

    def to_forget(self, now_ms: int) -> frozenset[str]:
        """Those whose rows are to be looked for at a log time; at each one, until no late report can name them."""
        is_end = pc.field("ended") & (pc.field("append_time_ms") >= now_ms - _LOOK_BACK_MS)
        changes = self._changes.rows(is_end, ["bundle_id", "append_time_ms"])
        ended_ms = {row["bundle_id"]: row["append_time_ms"] for row in changes.sort_by("append_time_ms").to_pylist()}
        self._looked_for &= ended_ms.items()
        ends = ended_ms.items() - self._looked_for
        due = {name for name, at_ms in ends if now_ms - at_ms >= REST_MS}
        if not due:
            return frozenset()
        again = self._bundles.rows(pc.field("bundle_id").isin(sorted(due)), ["bundle_id"])["bundle_id"].to_pylist()
        self._looked_for |= {(name, at_ms) for name, at_ms in ends if now_ms - at_ms >= 2 * REST_MS}
        return frozenset(due.difference(again))


def files_without(
    buckets: DataFrame, folder: StoragePath, bundle_ids: Collection[str], before_ms: int
) -> list[WrittenFile]:
    """Write the buckets that have rows of these bundles, without those rows.

    Args:
        buckets: as :func:`streaming.load.bucket_files.bucket_files` makes them.
        folder: that of ``bundle_load``.
        bundle_ids: the bundles.
        before_ms: append time from which on a report keeps a row.
    """
    write = functools.partial(_write_without, folder=folder, bundle_ids=sorted(bundle_ids), before_ms=before_ms)
    return [WrittenFile(*row) for row in buckets.mapInArrow(write, WRITTEN_TYPE).collect()]


def _write_without(
    batches: Iterable[pa.RecordBatch], folder: StoragePath, bundle_ids: Sequence[str], before_ms: int
) -> Iterator[pa.RecordBatch]:
    names = pa.array(bundle_ids, pa.string())
    for bucket, rows in read_buckets(batches, folder):
        is_gone = pc.and_(pc.is_in(rows["bundle_id"], names), pc.less(rows["report_time_ms"], before_ms))
        if pc.any(is_gone).as_py():
            yield write_bucket(folder, bucket, rows.filter(pc.invert(is_gone)))
