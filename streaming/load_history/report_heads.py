"""A first look at the reports of a step, on an executor: where they end, and which incarnations sent them.

Files are read one after the other by one task, in parts; what is kept of them is a row for each file and partition,
and one for each incarnation.
"""

import functools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Row, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import IntegerType, LongType, StringType, StructField, StructType

from controlplane.core.bundles.load.averages import MessageLoad
from controlplane.core.bundles.load.offset_cutoffs import NodeIncarnation, NodePlace
from controlplane.core.bundles.load.report_columns import are_plausible_reports
from controlplane.core.bundles.load.sample_fold import Choice
from controlplane.core.bundles.load.view import Resources
from streaming.bundle_columns import loads_of
from streaming.load_history.report_files import VALUES_AT_ONCE, in_one_task, offsets_of
from streaming.storage import StoragePath
from streaming.tables.table_files import read_in_parts

_PLACE: Final = ("partition", "offset")
_RESOURCES: Final = tuple(f"{name}.{value}" for name in Resources._fields for value in ("usage", "limit"))
_COLUMNS: Final = frozenset(
    [
        *_PLACE,
        "append_time_ms",
        "node_id",
        "incarnation",
        *_RESOURCES,
        *(f"bundles.{name}" for name in MessageLoad._fields),
    ]
)
_HEADS_TYPE: Final = StructType(
    [
        StructField("path", StringType()),
        StructField("partition", IntegerType()),
        StructField("first_offset", LongType()),
        StructField("last_offset", LongType()),
        StructField("held_offset", LongType()),
        StructField("node_id", StringType()),
        StructField("incarnation", LongType()),
    ]
)
"""A row is one of two: what a file (``path``) has of a partition, or an incarnation (``node_id``)."""
_ARROW: Final = to_arrow_schema(_HEADS_TYPE)
_INCARNATION: Final = ["partition", "node_id", "incarnation"]


class FilePart(NamedTuple):
    """What a file has of a partition, of reports that are not written yet.

    Attributes:
        path: the file.
        partition: the partition.
        first_offset: the least offset.
        last_offset: the greatest offset.
        held_offset: the least offset of a report that is waited for, of a window that has not ended; None if there is
            none.
    """

    path: str
    partition: int
    first_offset: int
    last_offset: int
    held_offset: int | None


class ReportHeads(NamedTuple):
    """The reports that are not written yet.

    Attributes:
        parts: of files.
        first_offsets: of each incarnation, the first report whose figures of the node can be true; None if there is
            none.
    """

    parts: Sequence[FilePart]
    first_offsets: Mapping[NodeIncarnation, int | None]


def read_heads(
    session: SparkSession, folder: StoragePath, paths: Sequence[str], positions: Mapping[int, int], held_ms: range
) -> ReportHeads:
    """Look at the reports in files.

    Args:
        session: has the executors.
        folder: that of ``load_reports``.
        paths: the files.
        positions: of each partition the next offset; all of a partition that is not named are read.
        held_ms: the append times of reports that are waited for, because their window has not ended.
    """
    read = functools.partial(_heads, folder=folder, positions=dict(positions), held_ms=held_ms)
    rows = in_one_task(session, paths).mapInArrow(read, _HEADS_TYPE).collect()
    return ReportHeads(
        _file_parts(rows),
        {
            NodeIncarnation(NodePlace(row["partition"], row["node_id"]), row["incarnation"]): row["first_offset"]
            for row in rows
            if row["node_id"] is not None
        },
    )


def read_held(
    session: SparkSession, folder: StoragePath, paths: Sequence[str], positions: Mapping[int, int]
) -> list[FilePart]:
    """Look for the first reports in files whose reports are all of windows that have not ended.

    Args:
        session: has the executors.
        folder: that of ``load_reports``.
        paths: the files, which may be none.
        positions: of each partition the next offset; all of a partition that is not named are read.
    """
    if not paths:
        return []
    read = functools.partial(_held, folder=folder, positions=dict(positions))
    return _file_parts(in_one_task(session, paths).mapInArrow(read, _HEADS_TYPE).collect())


def _file_parts(rows: Iterable[Row]) -> list[FilePart]:
    return [FilePart(*(row[name] for name in FilePart._fields)) for row in rows if row["path"] is not None]


def _heads(
    batches: Iterable[pa.RecordBatch], folder: StoragePath, positions: Mapping[int, int], held_ms: range
) -> Iterator[pa.RecordBatch]:
    incarnations = _ARROW.empty_table().select([*_INCARNATION, "first_offset"])
    for path in _paths(batches):
        places = read_in_parts(folder, path, _PLACE, VALUES_AT_ONCE)
        if not any(_are_next(part, positions).any() for part in places):
            continue
        heads = [
            _judged(part.filter(pa.array(_are_next(part, positions))), held_ms)
            for part in read_in_parts(folder, path, _COLUMNS, VALUES_AT_ONCE)
        ]
        reports = pa.concat_tables(heads)
        yield from _rows(_parts(reports, path))
        incarnations = _first_offsets(pa.concat_tables([incarnations, reports.select(incarnations.schema.names)]))
    yield from _rows(incarnations)


def _held(
    batches: Iterable[pa.RecordBatch], folder: StoragePath, positions: Mapping[int, int]
) -> Iterator[pa.RecordBatch]:
    for path in _paths(batches):
        for part in read_in_parts(folder, path, _PLACE, VALUES_AT_ONCE):
            reports = part.filter(pa.array(_are_next(part, positions)))
            yield from _rows(_parts(reports.append_column("held_offset", reports["offset"]), path))


def _paths(batches: Iterable[pa.RecordBatch]) -> Iterator[str]:
    for batch in batches:
        yield from batch.column(0).to_pylist()


def _are_next(reports: pa.Table, positions: Mapping[int, int]) -> Choice:
    return np.asarray(reports["offset"].to_numpy() >= offsets_of(positions, reports["partition"], 0))


def _judged(reports: pa.Table, held_ms: range) -> pa.Table:
    """Without the figures; ``first_offset`` is the offset if those of the node can be true, ``held_offset`` if held."""
    nothing = pa.scalar(None, pa.int64())
    offset = reports["offset"]
    time_ms = reports["append_time_ms"]
    is_held = pc.and_(pc.greater_equal(time_ms, held_ms.start), pc.less(time_ms, held_ms.stop))
    return pa.table(
        {
            **{name: reports[name] for name in _INCARNATION},
            "offset": offset,
            "first_offset": pc.if_else(pa.array(_are_plausible(reports)), offset, nothing),
            "held_offset": pc.if_else(is_held, offset, nothing),
        }
    )


def _are_plausible(reports: pa.Table) -> Choice:
    rows = reports.combine_chunks()
    resources = [rows[name].combine_chunks() for name in Resources._fields]
    bundles = rows["bundles"].combine_chunks()
    usage, limit = (
        np.stack([pc.struct_field(each, value).to_numpy(zero_copy_only=False) for each in resources])
        for value in ("usage", "limit")
    )
    return are_plausible_reports(usage, limit, bundles.value_lengths().to_numpy(), loads_of(bundles.flatten()))


def _parts(reports: pa.Table, path: str) -> pa.Table:
    found = [("offset", "min"), ("offset", "max"), ("held_offset", "min")]
    names = {"offset_min": "first_offset", "offset_max": "last_offset", "held_offset_min": "held_offset"}
    named = reports.group_by("partition", use_threads=False).aggregate(found).rename_columns(names)
    return named.append_column("path", pa.repeat(path, named.num_rows))


def _first_offsets(reports: pa.Table) -> pa.Table:
    grouped = reports.group_by(_INCARNATION, use_threads=False).aggregate([("first_offset", "min")])
    return grouped.rename_columns({"first_offset_min": "first_offset"})


def _rows(found: pa.Table) -> Iterator[pa.RecordBatch]:
    columns = [
        found[field.name].cast(field.type) if field.name in found.schema.names else pa.nulls(found.num_rows, field.type)
        for field in _ARROW
    ]
    yield from pa.table(columns, schema=_ARROW).to_batches()
