"""Load reports taken apart on executors, in batches of Arrow, with the codec and the checks that the leader uses.

Each report is decoded once. Its row of ``load_reports`` goes into a file at once. On to Spark go a row about it, and
the samples of its bundles in blocks (:mod:`streaming.load.sample_blocks`).
"""

import functools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import to_arrow_schema

from controlplane.codec.framing import Framing
from controlplane.config import LOAD_REPORTS
from controlplane.core.bundles.load.report_columns import figures_of_reports
from controlplane.core.bundles.load.resource_usage import ResourceWeights
from controlplane.core.bundles.load.view import Resources
from controlplane.core.bundles.reports import BundleLoad, LoadReport
from streaming.bundle_columns import loads_of
from streaming.contracts.records import LOAD_REPORT_COLUMNS, LOAD_REPORTS_TABLE
from streaming.load.decoded_rows import DECODED_TYPE
from streaming.load.sample_blocks import PLACE_COLUMNS, SAMPLE_SCHEMA, Block, blocks_of
from streaming.records.decode import RawRow, decode_payload, framing_of
from streaming.records.record_rows import raw_records
from streaming.storage import StoragePath
from streaming.tables.day_files import DayFiles
from streaming.tables.table_files import WrittenFile, file_rows
from streaming.worker_setup import set_up_worker

_ARROW: Final = to_arrow_schema(DECODED_TYPE)
_REPORT_ROW: Final = to_arrow_schema(LOAD_REPORTS_TABLE.schema)
_PAYLOAD: Final = pa.struct([_REPORT_ROW.field(name) for name in LOAD_REPORT_COLUMNS.struct.fieldNames()])
_BUNDLES_AT: Final = _PAYLOAD.get_field_index("bundles")


class DecodedBatch(NamedTuple):
    """A batch of records, taken apart.

    Attributes:
        records: a row for each record.
        samples: a row of :data:`streaming.load.sample_blocks.SAMPLE_SCHEMA` for each bundle of the usable ones.
        reports: the usable ones as rows of ``load_reports``, without the day.
    """

    records: pa.RecordBatch
    samples: pa.Table
    reports: pa.Table


def decoded_reports(
    records: DataFrame,
    schema_ids: Mapping[int, str],
    weights: ResourceWeights,
    reports_folder: StoragePath,
    buckets: Sequence[int],
) -> DataFrame:
    """The records of ``load-reports`` with the columns of :data:`streaming.load.decoded_rows.DECODED_TYPE`.

    Each task writes its part of ``load_reports``, and tells of the files last. A task that is repeated writes others.

    Args:
        records: as :func:`streaming.sources.read_stream` returns them.
        schema_ids: as :class:`controlplane.config.KafkaConfig` has them.
        weights: of the resources.
        reports_folder: the folder of ``load_reports``.
        buckets: the numbers of the buckets of ``bundle_load``.
    """
    decode = functools.partial(
        _decode_all,
        schema_ids=tuple(schema_ids.items()),
        weights=weights,
        reports_folder=reports_folder,
        buckets=tuple(buckets),
    )
    return records.select(*RawRow._fields).mapInArrow(decode, DECODED_TYPE)


def _decode_all(
    batches: Iterable[pa.RecordBatch],
    schema_ids: tuple[tuple[int, str], ...],
    weights: ResourceWeights,
    reports_folder: StoragePath,
    buckets: tuple[int, ...],
) -> Iterator[pa.RecordBatch]:
    set_up_worker()
    framing = framing_of(schema_ids)
    files = DayFiles(reports_folder, LOAD_REPORTS_TABLE)
    for batch in batches:
        decoded = decode_batch(batch, framing, weights)
        files.write(decoded.reports)
        yield decoded.records
        yield _blocks(list(blocks_of(decoded.samples, buckets)))
    yield _files(files.close())


def decode_batch(batch: pa.RecordBatch, framing: Framing, weights: ResourceWeights) -> DecodedBatch:
    """One batch of raw records, decoded."""
    records = raw_records(batch)
    decoded = [decode_payload(LOAD_REPORTS, record, framing) for record in records]
    found: list[LoadReport | None] = [report for _, report in decoded]
    reports = [report for report in found if report is not None]
    usable = pa.array([number for number, report in enumerate(found) if report is not None], pa.int64())
    place = [batch.column(name) for name in PLACE_COLUMNS]
    bundles = _bundles([report.bundles for report in reports])
    figures = iter(figures_of_reports(reports, loads_of(bundles.flatten()), weights))
    return DecodedBatch(
        _rows(
            batch.num_rows,
            **dict(zip(PLACE_COLUMNS, place, strict=True)),
            refusal=[refusal for refusal, _ in decoded],
            value=[record.value if report is None else None for record, report in zip(records, found, strict=True)],
            node_id=[None if report is None else report.node_id for report in found],
            incarnation=[None if report is None else report.incarnation for report in found],
            version=[None if report is None else report.version for report in found],
            resources=[None if report is None else _resources(report) for report in found],
            figures=[None if report is None else next(figures) for report in found],
        ),
        _samples(reports, bundles, [column.take(usable) for column in place]),
        _report_rows(reports, bundles, [column.take(usable) for column in place]),
    )


def _resources(report: LoadReport) -> Resources:
    return Resources(*(getattr(report, name) for name in Resources._fields))


def _rows(count: int, **columns: Any) -> pa.RecordBatch:  # noqa: ANN401 - arrays, or values of any type
    """Rows of which the columns that are not given are null."""
    arrays = []
    for field in _ARROW:
        values = columns.get(field.name)
        if values is None:
            arrays.append(pa.nulls(count, field.type))
        else:
            arrays.append(values if isinstance(values, pa.Array) else pa.array(values, field.type))
    return pa.RecordBatch.from_arrays(arrays, schema=_ARROW)


def _files(files: Sequence[WrittenFile]) -> pa.RecordBatch:
    return _rows(len(files), file=file_rows(files).to_struct_array())


def _blocks(blocks: Sequence[Block]) -> pa.RecordBatch:
    return _rows(len(blocks), bucket=[block.bucket for block in blocks], samples=[block.samples for block in blocks])


def _samples(reports: Sequence[LoadReport], bundles: pa.ListArray, place: Sequence[pa.Array]) -> pa.Table:
    of_report = pa.array(np.repeat(np.arange(len(reports)), bundles.value_lengths().to_numpy()))
    of_reports = [
        *place,
        pa.array([report.node_id for report in reports], pa.string()),
        pa.array([report.incarnation for report in reports], pa.int64()),
    ]
    columns = [*(column.take(of_report) for column in of_reports), *bundles.flatten().flatten()]
    return pa.table(columns, schema=SAMPLE_SCHEMA)


def _report_rows(reports: Sequence[LoadReport], bundles: pa.ListArray, place: Sequence[pa.Array]) -> pa.Table:
    rows = [LOAD_REPORT_COLUMNS.row(report) for report in reports]
    payload = {
        field.name: bundles if number == _BUNDLES_AT else pa.array([row[number] for row in rows], field.type)
        for number, field in enumerate(_PAYLOAD)
    }
    return pa.table(
        {"topic": pa.repeat(LOAD_REPORTS, len(reports)), **dict(zip(PLACE_COLUMNS, place, strict=True)), **payload}
    )


def _bundles(bundles: Sequence[Sequence[BundleLoad]]) -> pa.ListArray:
    """The reports' bundles: most of what they hold, and turned into columns as a whole."""
    kind = _PAYLOAD.field(_BUNDLES_AT).type
    ends = np.cumsum([0, *(len(each) for each in bundles)], dtype=np.int32)
    flat = [bundle for each in bundles for bundle in each]
    item = kind.value_type
    by_column: Iterable[Sequence[Any]] = zip(*flat, strict=True) if flat else [()] * item.num_fields
    arrays = [pa.array(values, field.type) for values, field in zip(by_column, item, strict=True)]
    structs = pa.StructArray.from_arrays(arrays, fields=list(item))
    return pa.ListArray.from_arrays(pa.array(ends), structs, type=kind)
