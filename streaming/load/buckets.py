"""The buckets of ``bundle_load``: which one a bundle belongs to, and their numbers in the table.

Both may never change for a table: a bundle in another bucket than before would have two rows. The tables of present
slots and bundles are divided in a way of their own (:mod:`streaming.changes.row_changes`).
"""

from typing import Final

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the usual name
from xxhash import xxh64_intdigest

from controlplane.core.bundles.load.sample_fold import Numbers
from controlplane.errors import InvariantViolationError

_SEED_OF_SPARK: Final = 42
_TRIED_FOR_EACH: Final = 64
"""How many numbers are tried for each bucket: none with its remainder among them is one case in 10^27."""


def bucket_places(bundle_ids: pa.ChunkedArray, count: int) -> Numbers:
    """For each id the place of its bucket among so many, which may never change for a table.

    It is what Spark's expression ``pmod(xxhash64(bundle_id), count)`` gives, by which tables were divided at first.
    """
    encoded = bundle_ids.combine_chunks().dictionary_encode()
    hashes = [xxh64_intdigest(bundle_id.encode(), _SEED_OF_SPARK) for bundle_id in encoded.dictionary.to_pylist()]
    # Spark's hashes are signed, and its remainder is that of Python: never negative.
    places = np.array(hashes, np.uint64).view(np.int64) % count
    return np.asarray(places[encoded.indices.to_numpy()])


def bucket_numbers(session: SparkSession, count: int) -> tuple[int, ...]:
    """The numbers of a table's buckets.

    Spark gives a group to a task by the hash of its key. The k-th number is the least one whose hash leaves k, so that
    each task of a number that divides ``count`` gets as many buckets as any other. With 0, 1, 2, ... one of two tasks
    would get both of two buckets.
    """
    numbers = session.range(_TRIED_FOR_EACH * count).select(F.col("id").cast("int").alias("number"))
    remainder = F.pmod(F.hash("number"), F.lit(count)).alias("remainder")
    rows = numbers.groupBy(remainder).agg(F.min("number").alias("number")).orderBy("remainder").collect()
    if len(rows) != count:
        raise InvariantViolationError(f"{count} buckets have no numbers below {_TRIED_FOR_EACH * count}")
    return tuple(row["number"] for row in rows)
