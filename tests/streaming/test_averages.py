"""Spark's fold of load reports against the core's: the same bits, whatever the batches."""

import random
from collections import defaultdict
from collections.abc import Iterator, Sequence

from pyspark.sql import DataFrame, SparkSession

from controlplane.config import LOAD_REPORTS
from controlplane.core.load.averages import (
    NO_LOAD,
    UNSEEN_BUNDLE,
    BundleAverages,
    MessageLoad,
    broker_averages,
    message_load,
)
from controlplane.core.load.resource_usage import ResourceWeights, weighted_usage
from controlplane.core.records import LoadReport
from streaming.decode import INPUT_COLUMNS
from streaming.table_contracts import BROKER_LOAD_TABLE, BUNDLE_LOAD_TABLE, LOAD_REPORTS_TABLE
from streaming.transforms.averages import bundle_samples, folded_bundles
from streaming.transforms.node_load import node_rows
from tests.helpers.pipeline_world import bundle_load, load_report, random_report

Placed = tuple[int, int, int, LoadReport]
"""Append time, partition, offset and the report."""

BUNDLE_IDS = [f"team/{namespace}/0x{index:08x}_0x{index + 1:08x}" for namespace in "ab" for index in range(4)]


def report_rows(session: SparkSession, placed: Sequence[Placed]) -> DataFrame:
    """Rows of ``load_reports``."""
    columns = INPUT_COLUMNS[LOAD_REPORTS]
    rows = [
        (LOAD_REPORTS, partition, offset, time_ms, None, *columns.row(report))
        for time_ms, partition, offset, report in placed
    ]
    return session.createDataFrame(rows, LOAD_REPORTS_TABLE.schema, verifySchema=False).repartition(2)


def empty(session: SparkSession, table: object) -> DataFrame:
    """A table without rows."""
    return session.createDataFrame([], table.schema)


def materialized(session: SparkSession, rows: DataFrame) -> DataFrame:
    """The rows without their history, as a table would give them back."""
    return session.createDataFrame(rows.collect(), rows.schema, verifySchema=False)


def placed_reports(source: random.Random, count: int) -> list[Placed]:
    """Reports of three nodes with overlapping bundles; one node's reports stay in one partition, times may be equal."""
    time_ms = 1_000_000
    offsets: dict[int, int] = defaultdict(int)
    placed = []
    for number in range(count):
        time_ms += source.choice([0, 0, 1, 500])
        node = source.randrange(3)
        partition = node % 2
        placed.append((time_ms, partition, offsets[partition], random_report(source, f"n{node}", BUNDLE_IDS, number)))
        offsets[partition] += source.choice([1, 1, 2])
    return sorted(placed, key=lambda each: each[:3])


def batches_of(placed: Sequence[Placed], source: random.Random) -> Iterator[list[Placed]]:
    """Cut at random places, in log order."""
    rest = list(placed)
    while rest:
        size = source.randint(10, 40)
        yield rest[:size]
        rest = rest[size:]


def folded_by_core(placed: Sequence[Placed]) -> dict[str, BundleAverages]:
    """The averages of every bundle, by the core's functions in log order."""
    averages: dict[str, BundleAverages] = {}
    for *_, report in sorted(placed, key=lambda each: each[:3]):
        for bundle in report.bundles:
            averages[bundle.bundle_id] = averages.get(bundle.bundle_id, UNSEEN_BUNDLE).add(message_load(bundle))
    return averages


def averages_in(row: object) -> BundleAverages:
    """A row of ``bundle_load`` as the core's value."""
    return BundleAverages(
        *(
            type(UNSEEN_BUNDLE.short_term)(rule.max_samples, row[name]["sample_count"], MessageLoad(*row[name][1:]))
            for name, rule in (("short_term", UNSEEN_BUNDLE.short_term), ("long_term", UNSEEN_BUNDLE.long_term))
        )
    )


def test_spark_folds_as_the_core_does(spark: SparkSession) -> None:
    """Random reports in random batches, each folded twice: every average has the core's bits, none is doubled."""
    source = random.Random(1)
    placed = placed_reports(source, 80)
    bundles, nodes = empty(spark, BUNDLE_LOAD_TABLE), empty(spark, BROKER_LOAD_TABLE)
    stored: dict[str, object] = {}
    stored_nodes: dict[str, object] = {}
    for batch in batches_of(placed, source):
        reports = report_rows(spark, batch)
        for _ in range(2):
            folded = folded_bundles(bundle_samples(reports), bundles)
            stored |= {row["bundle_id"]: row for row in folded.collect()}
            bundles = spark.createDataFrame(list(stored.values()), BUNDLE_LOAD_TABLE.schema, verifySchema=False)
        rows = node_rows(reports, bundles, nodes, ResourceWeights(direct_memory=0.5))
        stored_nodes |= {row["node_id"]: row for row in rows.collect()}
        nodes = spark.createDataFrame(list(stored_nodes.values()), BROKER_LOAD_TABLE.schema, verifySchema=False)
    expected = folded_by_core(placed)
    assert {bundle_id: averages_in(row) for bundle_id, row in stored.items()} == expected
    check_nodes(stored_nodes, placed)


def check_nodes(rows: dict[str, object], placed: Sequence[Placed]) -> None:
    """Each node's row tells its newest report, and the sums of its bundles' averages at that time."""
    newest = {
        report.node_id: (time_ms, partition, offset, report)
        for time_ms, partition, offset, report in sorted(placed, key=lambda each: each[:3])
    }
    assert rows.keys() == newest.keys()
    for node_id, (time_ms, partition, offset, report) in newest.items():
        row = rows[node_id]
        assert (row["report_time_ms"], row["report_partition"], row["report_offset"]) == (time_ms, partition, offset)
        assert row["weighted_usage"] == weighted_usage(report, ResourceWeights(direct_memory=0.5))
        by_id = sorted(report.bundles)
        assert row["bundle_ids"] == [bundle.bundle_id for bundle in by_id]
        assert row["bundle_count"] == len(by_id)
        total = NO_LOAD
        for bundle in by_id:
            total = total.plus(message_load(bundle))
        assert MessageLoad(*row["reported"]) == total


def test_node_sums_are_the_cores(spark: SparkSession) -> None:
    """A node's averages are its bundles' averages summed in the order of their ids, bit for bit as in the core."""
    source = random.Random(3)
    placed = placed_reports(source, 60)
    reports = report_rows(spark, placed)
    bundles = folded_bundles(bundle_samples(reports), empty(spark, BUNDLE_LOAD_TABLE))
    rows = node_rows(reports, bundles, empty(spark, BROKER_LOAD_TABLE), ResourceWeights()).collect()
    averages = folded_by_core(placed)
    assert len(rows) == 3
    for row in rows:
        sums = broker_averages(row["bundle_ids"], averages)
        assert (MessageLoad(*row["short_term"]), MessageLoad(*row["long_term"])) == sums


def test_full_averages_forget(spark: SparkSession) -> None:
    """Beyond 10 and 1,000 samples the averages go on as running means, also across batches."""
    bundle_id = BUNDLE_IDS[0]
    placed = [(number, 0, number, load_report("n", [bundle_load(bundle_id, float(number))])) for number in range(1_025)]
    first = folded_bundles(bundle_samples(report_rows(spark, placed[:1_010])), empty(spark, BUNDLE_LOAD_TABLE))
    second = folded_bundles(bundle_samples(report_rows(spark, placed[1_000:])), materialized(spark, first))
    (row,) = second.collect()
    assert averages_in(row) == folded_by_core(placed)[bundle_id]
    assert (row["short_term"]["sample_count"], row["long_term"]["sample_count"]) == (10, 1_000)


def test_row_tells_where_the_bundle_is_and_when_it_moved(spark: SparkSession) -> None:
    """A bundle's row names the last reporter, its newest figures, and since when it has been with another node."""
    bundle_id = BUNDLE_IDS[0]
    told = [("n1", 3), ("n1", 4), ("n2", 5), ("n2", 6)]
    placed = [
        (100 + index, index // 2, index % 2, load_report(node_id, [bundle_load(bundle_id, topics=topics)]))
        for index, (node_id, topics) in enumerate(told)
    ]
    folded = folded_bundles(bundle_samples(report_rows(spark, placed)), empty(spark, BUNDLE_LOAD_TABLE))
    (row,) = folded.collect()
    assert row["namespace"] == "team/a"
    assert (row["node_id"], row["moved_at_ms"], row["topic_count"]) == ("n2", 102, 6)
    assert (row["first_report_time_ms"], row["report_time_ms"]) == (100, 103)
    assert (row["report_partition"], row["report_offset"]) == (1, 1)
    assert row["folded_offsets"] == {0: 1, 1: 1}


def test_bundle_that_never_moved_does_not_rest(spark: SparkSession) -> None:
    """``moved_at_ms`` is null until another node reports the bundle, or a new bundle could not be shed at first."""
    placed = [(number, 0, number, load_report("n1", [bundle_load(BUNDLE_IDS[0])])) for number in range(3)]
    folded = folded_bundles(bundle_samples(report_rows(spark, placed)), empty(spark, BUNDLE_LOAD_TABLE))
    (row,) = folded.collect()
    assert row["moved_at_ms"] is None
