"""Load reports to columns, in batches of Arrow on executors, with the codec and the checks that the leader uses.

Each report is decoded once. History, dead letters, the fold and the nodes' rows read the result.
"""

import functools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import BinaryType, IntegerType, LongType, StructField, StructType

from controlplane.codec.framing import Framing
from controlplane.config import LOAD_REPORTS
from controlplane.core.bundles.load.report_figures import ReportFigures, report_figures
from controlplane.core.bundles.load.resource_usage import ResourceWeights
from controlplane.core.bundles.reports import BundleLoad, LoadReport
from streaming.columns import spark_type
from streaming.contracts.records import LOAD_REPORT_COLUMNS
from streaming.decode import REFUSAL_TYPE, RawRow, decode_payload, framing_of

DECODED_TYPE: Final = StructType(
    [
        StructField("partition", IntegerType()),
        StructField("offset", LongType()),
        StructField("append_time_ms", LongType()),
        StructField("value", BinaryType()),
        StructField("refusal", REFUSAL_TYPE),
        StructField("payload", LOAD_REPORT_COLUMNS.struct),
        StructField("figures", spark_type(ReportFigures)),
    ]
)
_ARROW: Final = to_arrow_schema(DECODED_TYPE)
_BUNDLES_AT: Final = _ARROW.field("payload").type.get_field_index("bundles")


def decoded_reports(records: DataFrame, schema_ids: Mapping[int, str], weights: ResourceWeights) -> DataFrame:
    """The records of ``load-reports`` with the columns of :data:`DECODED_TYPE`.

    Either ``refusal`` and ``value`` are there, or ``payload`` and ``figures``.

    Args:
        records: as :func:`streaming.sources.read_stream` returns them.
        schema_ids: as :class:`controlplane.config.KafkaConfig` has them.
        weights: of the resources.
    """
    decode = functools.partial(_decode_all, schema_ids=tuple(schema_ids.items()), weights=weights)
    return records.select(*RawRow._fields).mapInArrow(decode, DECODED_TYPE)


def _decode_all(
    batches: Iterable[pa.RecordBatch], schema_ids: tuple[tuple[int, str], ...], weights: ResourceWeights
) -> Iterator[pa.RecordBatch]:
    framing = framing_of(schema_ids)
    for batch in batches:
        yield decode_batch(batch, framing, weights)


def decode_batch(batch: pa.RecordBatch, framing: Framing, weights: ResourceWeights) -> pa.RecordBatch:
    """One batch of raw records, decoded; see :func:`decoded_reports`."""
    columns = [batch.column(name) for name in RawRow._fields]
    records = [RawRow(*values) for values in zip(*(column.to_pylist() for column in columns), strict=True)]
    decoded = [decode_payload(LOAD_REPORTS, record, framing) for record in records]
    reports: list[LoadReport | None] = [report for _, report in decoded]
    figures = [None if report is None else report_figures(report, weights) for report in reports]
    refused = [record.value if report is None else None for record, report in zip(records, reports, strict=True)]
    return pa.RecordBatch.from_arrays(
        [
            *columns[:3],
            pa.array(refused, _ARROW.field("value").type),
            pa.array([refusal for refusal, _ in decoded], _ARROW.field("refusal").type),
            _payloads(reports),
            pa.array(figures, _ARROW.field("figures").type),
        ],
        schema=_ARROW,
    )


def _payloads(reports: Sequence[LoadReport | None]) -> pa.StructArray:
    """The reports' columns. Bundles are most of them, and are turned into columns as a whole."""
    rows = [None if report is None else LOAD_REPORT_COLUMNS.row(report) for report in reports]
    kind = _ARROW.field("payload").type
    arrays = []
    for place in range(kind.num_fields):
        if place == _BUNDLES_AT:
            arrays.append(_bundles([() if report is None else report.bundles for report in reports]))
        else:
            arrays.append(pa.array([None if row is None else row[place] for row in rows], kind.field(place).type))
    is_missing = pa.array([report is None for report in reports])
    return pa.StructArray.from_arrays(arrays, fields=list(kind), mask=is_missing)


def _bundles(bundles: Sequence[Sequence[BundleLoad]]) -> pa.ListArray:
    kind = _ARROW.field("payload").type.field(_BUNDLES_AT).type
    ends = np.cumsum([0, *(len(each) for each in bundles)], dtype=np.int32)
    flat = [bundle for each in bundles for bundle in each]
    item = kind.value_type
    by_column: Iterable[Sequence[Any]] = zip(*flat, strict=True) if flat else [()] * item.num_fields
    arrays = [pa.array(values, field.type) for values, field in zip(by_column, item, strict=True)]
    structs = pa.StructArray.from_arrays(arrays, fields=list(item))
    return pa.ListArray.from_arrays(pa.array(ends), structs, type=kind)
