"""Load reports to columns, in batches of Arrow on executors, with the codec and the checks that the leader uses.

Each report is decoded once. History, dead letters, the fold and the nodes' rows read the result.
"""

import functools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, cast

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DoubleType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
)

from controlplane.codec.framing import Framing, framing_with
from controlplane.codec.inputs import decode_input
from controlplane.config import LOAD_REPORTS
from controlplane.core.bundles.load.averages import NO_LOAD, MessageLoad, message_load
from controlplane.core.bundles.load.plausible import Implausible, implausible_load, implausible_node
from controlplane.core.bundles.load.resource_usage import ResourceWeights, weighted_usage
from controlplane.core.bundles.load.sample_fold import are_plausible
from controlplane.core.bundles.load.view import NodeLoad
from controlplane.core.bundles.reports import BundleLoad, LoadReport
from controlplane.errors import InvalidInputError
from streaming.decode import REFUSAL_TYPE, RawRow
from streaming.table_contracts import LOAD_REPORT_COLUMNS, MESSAGE_LOAD_TYPE

_RAW_COLUMNS: Final = ("partition", "offset", "append_time_ms", "key", "value", "is_append_time")
_WRONG_TYPE: Final = StructType(
    [
        StructField("node_id", StringType()),
        StructField("bundle_id", StringType()),
        StructField("name", StringType()),
        StructField("value", DoubleType()),
        StructField("limit", DoubleType()),
    ]
)
JUDGED_TYPE: Final = StructType(
    [
        StructField("weighted_usage", DoubleType()),
        StructField("reported", MESSAGE_LOAD_TYPE),
        StructField("is_plausible", BooleanType()),
        StructField("wrong", ArrayType(_WRONG_TYPE)),
    ]
)
"""What the core says of a report: see :class:`Judged`."""
DECODED_TYPE: Final = StructType(
    [
        StructField("partition", IntegerType()),
        StructField("offset", LongType()),
        StructField("append_time_ms", LongType()),
        StructField("value", BinaryType()),
        StructField("refusal", REFUSAL_TYPE),
        StructField("payload", LOAD_REPORT_COLUMNS.struct),
        StructField("judged", JUDGED_TYPE),
    ]
)
_ARROW: Final = to_arrow_schema(DECODED_TYPE)
_BUNDLES_AT: Final = _ARROW.field("payload").type.get_field_index("bundles")


class Judged(NamedTuple):
    """What the core says of a report.

    Attributes:
        weighted_usage: of its resources, 1.0 for 100 percent.
        reported: the sums over its bundles with figures that can be true.
        is_plausible: whether its resources and these sums can be true: otherwise the node's row stays as it is.
        wrong: every figure that cannot be true.
    """

    weighted_usage: float
    reported: MessageLoad
    is_plausible: bool
    wrong: Sequence[Implausible]


def decoded_reports(records: DataFrame, schema_ids: Mapping[int, str], weights: ResourceWeights) -> DataFrame:
    """The records of ``load-reports`` with the columns of :data:`DECODED_TYPE`.

    Either ``refusal`` and ``value`` are there, or ``payload`` and ``judged``.

    Args:
        records: as :func:`streaming.sources.read_stream` returns them.
        schema_ids: as :class:`controlplane.config.KafkaConfig` has them.
        weights: of the resources.
    """
    decode = functools.partial(_decode_all, schema_ids=tuple(schema_ids.items()), weights=weights)
    return records.select(*_RAW_COLUMNS).mapInArrow(decode, DECODED_TYPE)


def judged(report: LoadReport, weights: ResourceWeights) -> Judged:
    """What the core says of a report. Its bundles' figures are summed in the order of the bundles' ids."""
    wrong: list[Implausible] = []
    reported = NO_LOAD
    loads = [message_load(bundle) for bundle in report.bundles]
    if not _all_plausible(loads):
        found = [(bundle.bundle_id, implausible_load(load)) for bundle, load in zip(report.bundles, loads, strict=True)]
        wrong += [Implausible(report.node_id, bundle_id, *each) for bundle_id, each in found if each is not None]
    refused = {each.bundle_id for each in wrong}
    for bundle_id, load in sorted(zip((each.bundle_id for each in report.bundles), loads, strict=True)):
        if bundle_id not in refused:
            reported = reported.plus(load)
    resources = (report.cpu, report.memory, report.direct_memory, report.bandwidth_in, report.bandwidth_out)
    of_node = implausible_node(NodeLoad(report.node_id, *resources, traffic=reported))
    if of_node is not None:
        wrong.append(Implausible(report.node_id, "", *of_node))
    return Judged(weighted_usage(report, weights), reported, of_node is None, wrong)


def _all_plausible(loads: Sequence[MessageLoad]) -> bool:
    return not loads or bool(are_plausible(np.array(loads).T).all())


def _decode_all(
    batches: Iterable[pa.RecordBatch], schema_ids: tuple[tuple[int, str], ...], weights: ResourceWeights
) -> Iterator[pa.RecordBatch]:
    framing = framing_with(dict(schema_ids))
    for batch in batches:
        yield decode_batch(batch, framing, weights)


def decode_batch(batch: pa.RecordBatch, framing: Framing, weights: ResourceWeights) -> pa.RecordBatch:
    """One batch of raw records, decoded; see :func:`decoded_reports`."""
    refusals: list[tuple[str, str] | None] = []
    values: list[bytes | None] = []
    reports: list[LoadReport | None] = []
    columns = [batch.column(name) for name in _RAW_COLUMNS]
    for raw in map(RawRow._make, zip(*(column.to_pylist() for column in columns), strict=True)):
        try:
            report = cast("LoadReport", decode_input(LOAD_REPORTS, raw, framing).payload)
        except InvalidInputError as refused:
            refusals.append((refused.reason, refused.detail))
            values.append(raw.value)
            reports.append(None)
        else:
            refusals.append(None)
            values.append(None)
            reports.append(report)
    judgements = [None if report is None else judged(report, weights) for report in reports]
    return pa.RecordBatch.from_arrays(
        [
            *columns[:3],
            pa.array(values, _ARROW.field("value").type),
            pa.array(refusals, _ARROW.field("refusal").type),
            _payloads(reports),
            pa.array(judgements, _ARROW.field("judged").type),
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
