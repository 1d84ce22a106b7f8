"""Samples added up by bundle, node, partition and window, and written as rows of ``bundle_load_history``.

One task does it for a step, part by part of the files. Rows may be added up later as well, so the sums are written and
begun anew whenever they have become many: the memory depends neither on the bundles nor on the length of the step.
"""

import functools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import LongType, StructField, StructType

from controlplane.core.bundles.load.averages import MessageLoad
from controlplane.core.bundles.load.offset_cutoffs import NodeIncarnation, NodePlace
from controlplane.core.bundles.load.sample_fold import are_plausible
from streaming.bundle_columns import loads_of, namespaces_of
from streaming.contracts.loads import BUNDLE_LOAD_HISTORY_TABLE
from streaming.load_history.report_files import VALUES_AT_ONCE, in_one_task, offsets_of
from streaming.storage import StoragePath
from streaming.tables.day_files import DayFiles, without_day
from streaming.tables.table_files import WRITTEN_TYPE, WrittenFile, read_in_parts

_SAMPLES_AT_ONCE: Final = 500_000
"""How many samples are added up at once."""
_KEPT_SUMS: Final = 300_000
"""How many sums are kept before they are written."""
_HEADS: Final = ("partition", "offset", "append_time_ms", "node_id", "incarnation")
_COUNTS: Final = ("topic_count", "producer_count", "consumer_count")
_COLUMNS: Final = frozenset([*_HEADS, *(f"bundles.{name}" for name in ("bundle_id", *MessageLoad._fields, *_COUNTS))])
_ROWS: Final = without_day(BUNDLE_LOAD_HISTORY_TABLE)
_RESULT_TYPE: Final = StructType([StructField("report_count", LongType()), StructField("file", WRITTEN_TYPE)])
"""One row says how many reports were read; the others, which files were written."""
_RESULT: Final = to_arrow_schema(_RESULT_TYPE)
_GROUP: Final = ["bundle_id", "reporter"]
_ADDED: Final = {
    "first_offset": "min",
    "sample_count": "sum",
    **{f"sum.{name}": "sum" for name in MessageLoad._fields},
    **{f"max.{name}": "max" for name in MessageLoad._fields},
    "topic_count": "max",
    "session_count": "max",
}
"""How the columns of two sums of the same group become one."""


class Chosen(NamedTuple):
    """Which reports are added up.

    Attributes:
        positions: of each partition the first offset; 0 for one that is not named.
        ends: of each partition the offset behind the last one.
        cutoffs: the offset from which the reports of an incarnation do not count; one that is not named counts.
    """

    positions: Mapping[int, int]
    ends: Mapping[int, int]
    cutoffs: Mapping[NodeIncarnation, int]


class WrittenSums(NamedTuple):
    """What a step has written.

    Attributes:
        files: of ``bundle_load_history``.
        report_count: how many reports were read, with those that do not count.
    """

    files: Sequence[WrittenFile]
    report_count: int


def write_sums(
    session: SparkSession,
    source: StoragePath,
    paths: Sequence[str],
    chosen: Chosen,
    target: StoragePath,
    window_ms: int,
) -> WrittenSums:
    """Add up the chosen reports in files, and write what comes of it.

    Args:
        session: has the executors.
        source: the folder of ``load_reports``.
        paths: its files.
        chosen: the reports.
        target: the folder of ``bundle_load_history``.
        window_ms: the length of windows.
    """
    add = functools.partial(_added_up, source=source, chosen=chosen, target=target, window_ms=window_ms)
    rows = in_one_task(session, paths).mapInArrow(add, _RESULT_TYPE).collect()
    files = [WrittenFile(*row["file"]) for row in rows if row["file"] is not None]
    return WrittenSums(files, sum(row["report_count"] for row in rows if row["report_count"] is not None))


def _added_up(
    batches: Iterable[pa.RecordBatch], source: StoragePath, chosen: Chosen, target: StoragePath, window_ms: int
) -> Iterator[pa.RecordBatch]:
    sums = _Sums(target, window_ms)
    report_count = 0
    for batch in batches:
        for path in batch.column(0).to_pylist():
            for part in read_in_parts(source, path, _COLUMNS, VALUES_AT_ONCE):
                reports = _of_step(part, chosen)
                report_count += reports.num_rows
                sums.add(_counting(reports, chosen.cutoffs))
    results = [{"report_count": report_count}, *({"file": file._asdict()} for file in sums.close())]
    yield pa.RecordBatch.from_pylist(results, schema=_RESULT)


def _of_step(reports: pa.Table, chosen: Chosen) -> pa.Table:
    offset, partition = reports["offset"].to_numpy(), reports["partition"]
    is_chosen = (offset >= offsets_of(chosen.positions, partition, 0)) & (
        offset < offsets_of(chosen.ends, partition, 0)
    )
    return reports if is_chosen.all() else reports.filter(pa.array(is_chosen))


def _counting(reports: pa.Table, cutoffs: Mapping[NodeIncarnation, int]) -> pa.Table:
    """Without reports of replaced incarnations: these are few, so they are looked for by their nodes first."""
    nodes = pa.array(sorted({each.place.node_id for each in cutoffs}), pa.string())
    suspects = np.flatnonzero(pc.is_in(reports["node_id"], nodes).to_numpy())
    if not len(suspects):
        return reports
    counts = np.ones(reports.num_rows, np.bool_)
    names = ("partition", "node_id", "incarnation", "offset")
    some = reports.select(names).take(pa.array(suspects))
    for number, row in zip(suspects.tolist(), some.to_pylist(), strict=True):
        end = cutoffs.get(NodeIncarnation(NodePlace(row["partition"], row["node_id"]), row["incarnation"]))
        counts[number] = end is None or row["offset"] < end
    return reports.filter(pa.array(counts))


class _Sums:
    """The sums of a task, and the files into which it writes them."""

    def __init__(self, folder: StoragePath, window_ms: int) -> None:
        self._folder = folder
        self._window_ms = window_ms
        self._files: list[WrittenFile] = []
        self._begin()

    def _begin(self) -> None:
        self._numbers: dict[tuple[int, str, int], int] = {}
        self._waiting: list[pa.Table] = []
        self._waiting_count = 0
        self._sums: pa.Table | None = None

    def add(self, reports: pa.Table) -> None:
        """Add the samples of reports that count."""
        samples = self._samples(reports)
        self._waiting.append(samples)
        self._waiting_count += samples.num_rows
        if self._waiting_count >= _SAMPLES_AT_ONCE:
            self._add_up()
            if self._sums is not None and self._sums.num_rows >= _KEPT_SUMS:
                self._write()

    def close(self) -> list[WrittenFile]:
        """Write what is left; returns every file."""
        self._add_up()
        self._write()
        return self._files

    def _samples(self, reports: pa.Table) -> pa.Table:
        """A row for each bundle whose figures can be true, as if it were a sum."""
        rows = reports.combine_chunks()
        bundles = rows["bundles"].combine_chunks()
        lengths = bundles.value_lengths().to_numpy()
        samples = bundles.flatten()
        loads = loads_of(samples)
        load = {name: pc.struct_field(samples, name) for name in MessageLoad._fields}
        table = pa.table(
            {
                "bundle_id": pc.struct_field(samples, "bundle_id"),
                "reporter": np.repeat(self._reporters(rows), lengths),
                "first_offset": np.repeat(rows["offset"].to_numpy(), lengths),
                "sample_count": np.ones(len(samples), np.int64),
                **{f"sum.{name}": values for name, values in load.items()},
                **{f"max.{name}": values for name, values in load.items()},
                "topic_count": pc.struct_field(samples, "topic_count"),
                "session_count": pc.add(*(pc.struct_field(samples, name) for name in _COUNTS[1:])),
            }
        )
        plausible = are_plausible(loads)
        return table if plausible.all() else table.filter(pa.array(plausible))

    def _reporters(self, reports: pa.Table) -> np.ndarray:
        """The number of each report's node, partition and window."""
        windows = reports["append_time_ms"].to_numpy() // self._window_ms * self._window_ms
        places = (reports["partition"].to_pylist(), reports["node_id"].to_pylist(), windows.tolist())
        numbers = self._numbers
        return np.array([numbers.setdefault(key, len(numbers)) for key in zip(*places, strict=True)], np.int32)

    def _add_up(self) -> None:
        parts = [*([] if self._sums is None else [self._sums]), *self._waiting]
        self._waiting, self._waiting_count = [], 0
        if not parts:
            return
        grouped = pa.concat_tables(parts).group_by(_GROUP, use_threads=False).aggregate(list(_ADDED.items()))
        self._sums = grouped.rename_columns({f"{name}_{how}": name for name, how in _ADDED.items()})

    def _write(self) -> None:
        """Write the sums, a file for each day, and begin anew."""
        if self._sums is not None and self._sums.num_rows:
            files = DayFiles(self._folder, BUNDLE_LOAD_HISTORY_TABLE, dated_by="window_start_ms")
            files.write(self._rows(self._sums))
            self._files += files.close()
        self._begin()

    def _rows(self, sums: pa.Table) -> pa.Table:
        partitions, node_ids, starts_ms = zip(*self._numbers, strict=True)
        number = sums["reporter"].combine_chunks()

        def of_reporter(values: Iterable[object], kind: pa.DataType) -> pa.ChunkedArray:
            return pa.chunked_array([pa.array(list(values), kind)]).take(number)

        columns = {
            "bundle_id": sums["bundle_id"],
            "window_start_ms": of_reporter(starts_ms, pa.int64()),
            "node_id": of_reporter(node_ids, pa.string()),
            "namespace": namespaces_of(sums["bundle_id"]),
            "window_ms": pa.repeat(self._window_ms, sums.num_rows),
            "partition": of_reporter(partitions, pa.int32()),
            "sums": _structs(sums, "sum", "sums"),
            "maxima": _structs(sums, "max", "maxima"),
        }
        return pa.table([columns[name] if name in columns else sums[name] for name in _ROWS.names], schema=_ROWS)


def _structs(sums: pa.Table, how: str, name: str) -> pa.Array:
    fields = [sums[f"{how}.{field}"].combine_chunks() for field in MessageLoad._fields]
    return pa.StructArray.from_arrays(fields, fields=list(_ROWS.field(name).type))
