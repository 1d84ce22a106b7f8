"""What the driver is told of a batch of load reports."""

from dataclasses import replace
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from controlplane.codec.inputs import encode_input
from controlplane.core.bundles.load.incarnations import cutoffs, newest_nodes
from controlplane.core.bundles.load.reported_state import Position
from controlplane.core.bundles.load.resource_usage import ResourceWeights
from streaming.load.batch_summary import summary_of
from streaming.load.decoding import decoded_reports
from streaming.records.decode import RawRow
from tests.helpers.pipeline_world import load_report
from tests.helpers.raw_batches import RAW


def decoded(session: SparkSession, folder: Path, *placed: tuple[int, int, int, int]) -> DataFrame:
    """Reports of the node of each partition: partition, offset, append time and incarnation."""
    rows = []
    for partition, offset, time_ms, incarnation in placed:
        report = replace(load_report(f"n{partition}", cpu_percent=offset), incarnation=incarnation)
        rows.append(tuple(RawRow(partition, offset, time_ms, report.node_id.encode(), encode_input(report))))
    return decoded_reports(session.createDataFrame(rows, RAW), {}, ResourceWeights(), folder, (0, 1))


def test_offsets_tell_the_order_of_a_nodes_reports(spark: SparkSession, tmp_path: Path) -> None:
    """The clock of a broker went back within the batch."""
    batch = decoded(spark, tmp_path, (0, 3, 1_009, 1), (0, 4, 1_002, 2), (0, 5, 1_001, 2), (1, 3, 1_004, 1))
    summary = summary_of(batch, 2_000)
    newest = {node.node_id: (node.incarnation, node.position) for node in newest_nodes(summary.incarnations)}
    assert newest == {"n0": (2, Position(1_001, 0, 5)), "n1": (1, Position(1_004, 1, 3))}
    assert [tuple(each) for each in cutoffs(summary.incarnations, {})] == [("n0", 1, Position(1_002, 0, 4))]


def test_reports_that_are_dated_ahead_do_not_tell_the_time(spark: SparkSession, tmp_path: Path) -> None:
    """The others of their partition do; how far ahead they are is told by partition."""
    placed = [(0, 3, 9_000, 1), (0, 4, 1_001, 1), (1, 3, 1_002, 1), (1, 4, 1_000, 1)]
    some, none = (summary_of(decoded(spark, tmp_path, *placed), latest_ms) for latest_ms in (1_001, 999))
    assert (some.newest_ms, some.log_time_ms) == ({0: 9_000, 1: 1_002}, 1_001)
    assert (none.newest_ms, none.log_time_ms) == ({0: 9_000, 1: 1_002}, None)
