"""Buckets of ``bundle_load``: a bundle stays in the one that Spark's expression gave it, and tasks get as many each."""

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the usual name

from streaming.load.buckets import bucket_numbers, bucket_places


def test_buckets_are_those_of_sparks_expression(spark: SparkSession) -> None:
    """Tables of earlier versions were divided by it; a bundle that moved to another bucket would have two rows."""
    letters = "abcdefghijklmnopqrstuvwxyz/_0x\u00e9\u4e2d\U0001f600"
    bundle_ids = ["", *(letters[: number % 33] + str(number) * (number % 7) for number in range(2_000))]
    for count in (1, 16, 1_000):
        place = F.pmod(F.xxhash64("bundle_id"), F.lit(count)).cast("int")
        rows = spark.createDataFrame([(each,) for each in bundle_ids], "bundle_id string").select(place).collect()
        assert bucket_places(pa.chunked_array([bundle_ids]), count).tolist() == [row[0] for row in rows]


@pytest.mark.parametrize("count", [1, 2, 16, 24])
def test_every_task_gets_as_many_buckets(spark: SparkSession, count: int) -> None:
    """Whichever number of tasks divides the number of buckets."""
    numbers = bucket_numbers(spark, count)
    assert len(set(numbers)) == count
    buckets = spark.createDataFrame([(number,) for number in numbers], "bucket int")
    for tasks in (each for each in (1, 2, 4, 8, 12) if count % each == 0):
        placed = buckets.repartition(tasks, "bucket").groupBy(F.spark_partition_id()).count().collect()
        assert sorted(row["count"] for row in placed) == [count // tasks] * tasks
