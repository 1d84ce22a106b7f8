"""Bundles that executors read from the table: the same sums, choices and counts as with all of them in memory."""

import random
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from controlplane.core.bundles.load.averages import UNSEEN_BUNDLE, MessageLoad
from controlplane.core.bundles.load.reported_state import BundleState, NodeState, Position
from controlplane.core.bundles.reports import BundleLoad
from controlplane.core.bundles.splitting.limits import SplitLimits
from streaming.load.bucket_files import BUNDLE_SCHEMA, StoredBuckets
from streaming.load.stored_bundles import StoredBundles
from tests.helpers.plain_load import PlainBundles, bundle_row
from tests.helpers.written_files import written
from tests.streaming.load.test_candidates import MIB, NEWEST, NOW_MS, node

GRACE_MS = 1_000
TIME_MS, PARTITION, OFFSET = NEWEST
OTHERS = (
    Position(TIME_MS, PARTITION, OFFSET - 1),
    Position(TIME_MS - 1, PARTITION, OFFSET + 1),
    Position(TIME_MS, PARTITION + 1, 0),
    Position(TIME_MS, PARTITION - 1, OFFSET + 1),
    Position(TIME_MS + 1, PARTITION - 1, 0),
    Position(TIME_MS - 1, PARTITION + 1, OFFSET + 1),
)
"""Before or behind the newest report of its node."""


def random_bundles(source: random.Random, count: int) -> list[BundleState]:
    """Bundles of 8 nodes: some are not in their node's newest report, some have moved lately."""
    made = []
    for number in range(count):
        loads = [MessageLoad(*(source.uniform(0, 10 * MIB) for _ in range(4))) for _ in range(3)]
        averages = UNSEEN_BUNDLE.add(loads[0]).add(loads[1]).add(loads[2])
        bundle_id = f"{source.choice(['a', 'b/c', 'pulsar/n1:1'])}/{number:08x}"
        newest = BundleLoad(bundle_id, *loads[2], source.choice([1, 5, 2_000]), source.choice([1, 900]), 500, 1)
        position = source.choice([NEWEST, NEWEST, *OTHERS])
        moved_ms = source.choice([None, None, NOW_MS - 1, NOW_MS - GRACE_MS])
        made.append(BundleState(bundle_id, f"n{source.randrange(8)}", position, 1, moved_ms, newest, averages, {3: 17}))
    return made


def both(
    spark: SparkSession, folder: Path, bundles: Sequence[BundleState], nodes: Sequence[NodeState]
) -> tuple[StoredBundles, PlainBundles]:
    """The same bundles in the files of three buckets, one of which has two and one of which has none, and in memory."""
    rows = [dict(zip(BUNDLE_SCHEMA.names, bundle_row(each), strict=True)) for each in bundles]
    parts = [pa.Table.from_pylist(rows[number::3], BUNDLE_SCHEMA) for number in range(3)]
    paths = [written(folder, part, bucket=bucket).path for part, bucket in zip(parts, (4, 4, 5), strict=True)]
    buckets = StoredBuckets(spark, folder, {4: paths[:2], 5: paths[2:], 6: []})
    return StoredBundles(buckets, nodes, NOW_MS, GRACE_MS), PlainBundles(bundles, nodes, NOW_MS, GRACE_MS)


@pytest.mark.parametrize(("seed", "groups_each_task"), [(0, 1), (1, 4)], ids=["groups of nodes", "a node each"])
def test_tables_answer_as_memory_does(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int, groups_each_task: int
) -> None:
    """Sums are equal to the bit; a node does not count, and its bundles do not."""
    monkeypatch.setattr("streaming.load.stored_bundles._GROUPS_EACH_TASK", groups_each_task)
    source = random.Random(seed)
    nodes = [node(f"n{number}", 0.5) for number in range(7)]
    stored, plain = both(spark, tmp_path, random_bundles(source, 300), nodes)
    assert stored.sums() == plain.sums()
    targets = {"n1": 1.0, "n2": 30 * MIB, "n3": 1e12}
    chosen = list(plain.busiest(targets))
    assert len(chosen) > 10
    assert sorted(stored.busiest(targets)) == sorted(chosen)
    for limits in (
        SplitLimits(),
        SplitLimits(max_topics=10, max_sessions=0),
        SplitLimits(max_sessions=0, limits_sessions_below_one=True),
        SplitLimits(max_message_rate_per_s=11.5 * MIB, max_bandwidth_mib_per_s=1_000),
        SplitLimits(max_bandwidth_mib_per_s=12, min_topics=0),
    ):
        expected, counts = plain.exceeding(limits)
        found, found_counts = stored.exceeding(limits)
        assert sorted(found) == sorted(expected)
        assert found
        assert found_counts == {each.namespace: counts[each.namespace] for each in expected}

    beyond_all = SplitLimits(
        max_topics=10**9, max_sessions=10**9, max_message_rate_per_s=10**9, max_bandwidth_mib_per_s=10**9
    )
    assert stored.exceeding(beyond_all) == ([], {})


def test_a_node_without_bundles_has_no_sums(spark: SparkSession, tmp_path: Path) -> None:
    """Nor bundles to shed or to split."""
    stored, _ = both(spark, tmp_path, random_bundles(random.Random(1), 3), [node("idle", 0.1)])
    assert stored.sums() == {}
    assert stored.busiest({"idle": 1.0}) == []
    assert stored.exceeding(SplitLimits()) == ([], {})
