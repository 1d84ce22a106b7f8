"""The table of load reports written without Kafka, as its stream's tasks write it, and histories to put into it."""

import random
from collections.abc import Sequence
from itertools import groupby

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema

from controlplane.codec.framing import default_framing
from controlplane.codec.inputs import encode_input
from controlplane.core.bundles.load.reported_state import Position
from controlplane.core.bundles.load.resource_usage import ResourceWeights
from controlplane.core.bundles.load.view import Resources
from controlplane.core.bundles.reports import BundleLoad, LoadReport, ResourceUsage
from streaming.contracts.records import LOAD_REPORTS_TABLE
from streaming.load.decoding import decode_batch
from streaming.records.decode import RawRow
from streaming.storage import StoragePath
from streaming.tables.table_files import TableFileWriter
from streaming.tables.table_writer import TableWriter
from tests.helpers.placed_report import PlacedReport

_SCHEMA = to_arrow_schema(LOAD_REPORTS_TABLE.schema)
_DAY_MS = 86_400_000


class ReportTable:
    """The table ``load_reports`` of a folder of tables.

    Args:
        tables_dir: the folder, with its tables.
    """

    def __init__(self, tables_dir: StoragePath) -> None:
        """Open the table."""
        self._table = TableWriter(tables_dir, LOAD_REPORTS_TABLE, "test")
        self._batches = self._table.written_version or 0

    def add(self, reports: Sequence[PlacedReport], task_count: int = 1, *, has_statistics: bool = True) -> None:
        """Write reports as one batch: of each task, which has some of the partitions, a file for each day."""

        def place(report: PlacedReport) -> tuple[int, int]:
            return report.position.partition % task_count, _day(report)

        files = []
        for (_, day), of_day in groupby(sorted(reports, key=place), key=place):
            name = str(pa.scalar(day, pa.date32()).as_py())
            writer = TableFileWriter(self._table.folder, "day", name, _SCHEMA)
            writer.write(_rows(list(of_day)))
            written = writer.close()
            files.append(written if has_statistics else written._replace(statistics="{}"))
        self._batches += 1
        self._table.append_files(files, self._batches)


def _day(report: PlacedReport) -> int:
    return report.position.append_time_ms // _DAY_MS


def _rows(reports: Sequence[PlacedReport]) -> pa.Table:
    types = (pa.int32(), pa.int64(), pa.int64(), pa.binary(), pa.binary(), pa.bool_())
    raw = [
        RawRow(
            each.position.partition,
            each.position.offset,
            each.position.append_time_ms,
            each.node_id.encode(),
            encode_input(_report(each)),
        )
        for each in reports
    ]
    arrays = [pa.array(list(values), kind) for values, kind in zip(zip(*raw, strict=True), types, strict=True)]
    batch = pa.RecordBatch.from_arrays(arrays, names=list(RawRow._fields))
    decoded = decode_batch(batch, default_framing(), ResourceWeights())
    assert decoded.reports.num_rows == len(reports)
    return decoded.reports


def _report(placed: PlacedReport) -> LoadReport:
    return LoadReport(
        placed.node_id, placed.incarnation, 0, *placed.resources, (), placed.version, 0, tuple(placed.bundles), ()
    )


def random_reports(source: random.Random, count: int, window_ms: int) -> list[PlacedReport]:
    """Reports of six nodes in three partitions, of which one begins late, in the order in which they are appended.

    Processes are replaced and go on reporting, figures cannot be true at times, and the clocks of brokers step back.
    """
    time_ms = 3 * _DAY_MS - 4 * window_ms
    ends = [0, 0, 0]
    latest = [1] * 6
    found = []
    for number in range(count):
        time_ms += source.choice([0, 1, window_ms // 20, window_ms // 5])
        node = source.randrange(6)
        partition = node % 3
        if partition == 2 and number < count // 2:
            continue
        latest[node] += source.random() < 0.1
        back_ms = source.choice([0] * 9 + [source.randrange(2 * window_ms)])
        position = Position(time_ms - back_ms, partition, ends[partition])
        ends[partition] += source.choice([1, 1, 1, 3])
        incarnation = max(1, latest[node] - source.choice([0] * 5 + [1, 2]))
        bundle_ids = source.sample([f"tenant/kv/0x{index}0000000_0x{index + 1}0000000" for index in range(8)], 3)
        bundles = [_bundle(source, bundle_id) for bundle_id in bundle_ids[: source.randint(0, 3)]]
        resources = Resources(*(_usage(source) for _ in Resources._fields))
        found.append(PlacedReport(position, f"n{node}", incarnation, resources, "1", bundles))
    return found


def _bundle(source: random.Random, bundle_id: str) -> BundleLoad:
    """Whole numbers: their sums are the same in any order."""
    figures = [float(source.randrange(1_000_000)) for _ in range(4)]
    if source.random() < 0.1:
        figures[source.randrange(4)] = 1e300
    counts = [source.randrange(2_000) for _ in range(4)]
    return BundleLoad._make((bundle_id, *figures, *counts))


def _usage(source: random.Random) -> ResourceUsage:
    known = ResourceUsage(source.choice([*map(float, range(40)), 1e300]), 100.0)
    return source.choice([known, ResourceUsage(-1.0, -1.0)])
