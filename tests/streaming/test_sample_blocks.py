"""Blocks of samples: each sample is in the block of its bucket, where Spark's expression has always put it."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the usual name

from controlplane.core.bundles.load.incarnations import Cutoff
from controlplane.core.bundles.load.reported_state import Position
from streaming.load.before_cutoffs import before_cutoffs
from streaming.load.sample_blocks import Block, blocks_of, bucket_places, samples_in
from tests.helpers.load_logs import report, sample_table
from tests.helpers.pipeline_world import bundle_load

BUNDLE_IDS = st.text(max_size=40)


def packed(blocks: list[Block]) -> pa.ChunkedArray:
    """Blocks as a task gets them."""
    return pa.chunked_array([[block.samples for block in blocks]], pa.binary())


@given(st.lists(BUNDLE_IDS, min_size=1, max_size=60), st.lists(st.integers(0, 99), min_size=1, max_size=5, unique=True))
def test_each_sample_is_in_the_block_of_its_bucket(bundle_ids: list[str], numbers: list[int]) -> None:
    """None is lost or changed, those of a bucket keep their order, and a bucket without samples has no block."""
    samples = sample_table([report("n", number, [bundle_load(each)]) for number, each in enumerate(bundle_ids)])
    places = bucket_places(samples["bundle_id"], len(numbers)).tolist()
    blocks = list(blocks_of(samples, numbers))
    assert sorted(block.bucket for block in blocks) == sorted({numbers[place] for place in places})
    for block in blocks:
        rows = [row for row, place in zip(samples.to_pylist(), places, strict=True) if numbers[place] == block.bucket]
        assert samples_in(packed([block])).to_pylist() == rows
    assert samples_in(packed(blocks)).num_rows == len(bundle_ids)


def test_nothing_is_no_block() -> None:
    """A batch without usable reports."""
    assert list(blocks_of(sample_table([]), [1, 2])) == []
    assert samples_in(packed([])).equals(sample_table([]))


def test_processes_are_told_apart_by_node_and_incarnation() -> None:
    """Of ``n1`` in its 11th life nothing counts; ``n11`` in its first one, which reads alike, has no cutoff."""
    reports = [
        report(node_id, number, [bundle_load("a/b")], incarnation=incarnation)
        for number, (node_id, incarnation) in enumerate([("n1", 11), ("n11", 1), ("n1", 1), ("n1", 11), ("n1", 1)])
    ]
    ends = [Cutoff("n1", 11, None), Cutoff("n1", 1, Position(104, 0, 3))]
    assert before_cutoffs(sample_table(reports), ends)["offset"].to_pylist() == [1, 2]


@pytest.mark.spark
def test_buckets_are_those_of_sparks_expression(spark: SparkSession) -> None:
    """Tables of earlier versions were divided by it; a bundle that moved to another bucket would have two rows."""
    letters = "abcdefghijklmnopqrstuvwxyz/_0x\u00e9\u4e2d\U0001f600"
    bundle_ids = ["", *(letters[: number % 33] + str(number) * (number % 7) for number in range(2_000))]
    for count in (1, 16, 1_000):
        place = F.pmod(F.xxhash64("bundle_id"), F.lit(count)).cast("int")
        rows = spark.createDataFrame([(each,) for each in bundle_ids], "bundle_id string").select(place).collect()
        assert bucket_places(pa.chunked_array([bundle_ids]), count).tolist() == [row[0] for row in rows]
