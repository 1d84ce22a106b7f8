"""The samples of a bucket folded into its rows of ``bundle_load``, as columns of Arrow; runs on executors.

A bucket is a partition of the table. What is done here is the translation: ids to numbers and back. The fold is the
core's.
"""

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import to_arrow_schema

from controlplane.core.bundles.load.averages import MessageLoad
from controlplane.core.bundles.load.incarnations import Cutoff
from controlplane.core.bundles.load.sample_fold import (
    NONE,
    AverageColumns,
    BundleColumns,
    FoldedOffsets,
    Loads,
    Numbers,
    SampleColumns,
    are_plausible,
    fold_samples,
    unseen_bundles,
)
from controlplane.core.bundles.reports import BundleLoad
from streaming.bundle_columns import namespaces_of
from streaming.contracts.table import BUCKET_COLUMN
from streaming.load.before_cutoffs import before_cutoffs
from streaming.load.bucket_files import BUNDLE_SCHEMA, read_bucket, write_bucket
from streaming.load.sample_blocks import samples_in
from streaming.storage import StoragePath
from streaming.tables.table_files import WRITTEN_TYPE, WrittenFile, written_files
from streaming.worker_setup import set_up_worker

_WRITTEN_SCHEMA: Final = to_arrow_schema(WRITTEN_TYPE)
_FIGURES: Final = BundleLoad._fields[1:]
_POSITION: Final = {"report_time_ms": "append_time_ms", "report_partition": "partition", "report_offset": "offset"}
"""Columns of a row, and those of the sample from which they come."""


def folded_files(
    blocks: DataFrame, folder: StoragePath, stored: Mapping[int, Sequence[str]], cutoffs: Sequence[Cutoff]
) -> list[WrittenFile]:
    """Write the rows of every bucket that has samples which count, after them; one file each.

    Args:
        blocks: those of a batch, as :func:`streaming.load.decoded_rows.block_rows` returns them.
        folder: that of ``bundle_load``.
        stored: the files of each bucket before them.
        cutoffs: of the incarnations of which not every report of the batch counts.
    """
    before = dict(stored)

    def fold(of_bucket: pa.Table) -> pa.Table:
        set_up_worker()
        samples = before_cutoffs(samples_in(of_bucket["samples"]), cutoffs)
        written = [_fold_into_file(samples, of_bucket["bucket"][0], folder, before)] if samples.num_rows else []
        return pa.Table.from_batches(written, _WRITTEN_SCHEMA)

    return written_files(blocks.groupBy("bucket").applyInArrow(fold, WRITTEN_TYPE))


def _fold_into_file(
    samples: pa.Table, bucket: pa.Scalar, folder: StoragePath, stored: Mapping[int, Sequence[str]]
) -> pa.RecordBatch:
    before = read_bucket(folder, stored.get(bucket.as_py(), ()), bucket)
    return write_bucket(folder, bucket, fold_bucket(before, samples, bucket.as_py()))


def fold_bucket(stored: pa.Table, samples: pa.Table, bucket: int) -> pa.Table:
    """The rows of one bucket after its samples, of which there is one at least.

    Samples that cannot be true are passed over.

    Args:
        stored: its rows before.
        samples: rows of :data:`streaming.load.sample_blocks.SAMPLE_SCHEMA`.
        bucket: its number.
    """
    samples = samples.filter(pa.array(are_plausible(_loads(samples))))
    bundle_ids, bundle = _numbered(stored["bundle_id"], samples["bundle_id"])
    node_ids, node = _numbered(stored["node_id"], samples["node_id"])
    stored_count = stored.num_rows
    result = fold_samples(
        _bundles(stored, node[:stored_count], len(bundle_ids)),
        _offsets(stored["folded_offsets"]),
        SampleColumns(
            bundle[stored_count:],
            node[stored_count:],
            _numbers(samples["append_time_ms"]),
            _numbers(samples["partition"]),
            _numbers(samples["offset"]),
            _loads(samples),
        ),
    )
    # A bundle without a row has a sample that counts: nothing of it was folded before.
    newest = np.where(result.newest == NONE, np.arange(len(bundle_ids)), stored_count + result.newest)
    columns = {
        "bundle_id": bundle_ids,
        BUCKET_COLUMN: pa.array(np.full(len(bundle_ids), bucket, np.int32)),
        "namespace": namespaces_of(bundle_ids),
        "node_id": node_ids.take(pa.array(result.bundles.node)),
        **{name: _newest(stored[name], samples[source], newest) for name, source in _POSITION.items()},
        "first_report_time_ms": pa.array(result.bundles.first_report_time_ms),
        "moved_at_ms": pa.array(result.bundles.moved_at_ms, mask=result.bundles.moved_at_ms == NONE),
        **{name: _newest(stored[name], samples[name], newest) for name in _FIGURES},
        "short_term": _average_structs(result.bundles.short_term, "short_term"),
        "long_term": _average_structs(result.bundles.long_term, "long_term"),
        "folded_offsets": _offset_maps(result.folded, len(bundle_ids)),
    }
    return pa.table([columns[name] for name in BUNDLE_SCHEMA.names], schema=BUNDLE_SCHEMA)


def _numbered(stored: pa.ChunkedArray, sampled: pa.ChunkedArray) -> tuple[pa.Array, Numbers]:
    """The different names in the order in which they appear, and each row's number among them."""
    names = pa.chunked_array([*stored.chunks, *sampled.chunks], pa.string())
    encoded = names.combine_chunks().dictionary_encode()
    return encoded.dictionary, _numbers(encoded.indices)


def _bundles(stored: pa.Table, node: Numbers, count: int) -> BundleColumns:
    """What is stored, followed by bundles that have no row yet."""
    known, made = stored.num_rows, unseen_bundles(count)
    made.node[:known] = node
    made.first_report_time_ms[:known] = _numbers(stored["first_report_time_ms"])
    made.moved_at_ms[:known] = _numbers(pc.fill_null(stored["moved_at_ms"], NONE))
    for name, average in (("short_term", made.short_term), ("long_term", made.long_term)):
        rows = stored[name].combine_chunks()
        average.sample_count[:known] = _numbers(pc.struct_field(rows, "sample_count"))
        for place, field in enumerate(MessageLoad._fields):
            average.load[place, :known] = pc.struct_field(rows, field).to_numpy(zero_copy_only=False)
    return made


def _offsets(stored: pa.ChunkedArray) -> FoldedOffsets:
    maps = stored.combine_chunks()
    ends = maps.offsets.to_numpy()
    entries = slice(ends[0], ends[-1])
    bundle = np.repeat(np.arange(len(maps)), np.diff(ends))
    return FoldedOffsets(bundle, _numbers(maps.keys[entries]), _numbers(maps.items[entries]))


def _loads(samples: pa.Table) -> Loads:
    return np.stack([samples[name].to_numpy() for name in MessageLoad._fields])


def _numbers(values: pa.Array | pa.ChunkedArray) -> Numbers:
    return np.asarray(
        values.to_numpy(zero_copy_only=False) if isinstance(values, pa.Array) else values.to_numpy(), np.int64
    )


def _newest(stored: pa.ChunkedArray, sampled: pa.ChunkedArray, places: Numbers) -> pa.ChunkedArray:
    """Of each bundle the value at its place, where those of the samples follow those that are stored."""
    return pa.chunked_array([*stored.chunks, *sampled.chunks], stored.type).take(pa.array(places))


def _average_structs(averages: AverageColumns, name: str) -> pa.StructArray:
    arrays = [pa.array(averages.sample_count), *(pa.array(mean) for mean in averages.load)]
    return pa.StructArray.from_arrays(arrays, fields=list(BUNDLE_SCHEMA.field(name).type))


def _offset_maps(folded: FoldedOffsets, count: int) -> pa.MapArray:
    ends = np.searchsorted(folded.bundle, np.arange(count + 1)).astype(np.int32)
    kind = BUNDLE_SCHEMA.field("folded_offsets").type
    return pa.MapArray.from_arrays(
        pa.array(ends), pa.array(folded.partition.astype(np.int32)), pa.array(folded.offset), type=kind
    )
