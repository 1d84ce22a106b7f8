"""The samples of a batch on their way to their buckets: packed in blocks, a row of Spark for thousands of samples.

A bucket is a fixed share of all bundles, by the hash of their ids. A block holds samples of one bucket as a stream of
Arrow. Spark moves and sorts blocks without knowing what is in them: a row for each sample cost it more than all that
Python does with it.
"""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_type

from controlplane.core.bundles.reports import BundleLoad
from streaming.contracts.columns import spark_type
from streaming.load.buckets import bucket_places
from streaming.load.packed_rows import packed_groups, unpacked

PLACE_COLUMNS: Final = ("partition", "offset", "append_time_ms")
"""The place of a sample's report in the log."""
SAMPLE_SCHEMA: Final = pa.schema(
    [
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("append_time_ms", pa.int64()),
        ("node_id", pa.string()),
        ("incarnation", pa.int64()),
        *((name, to_arrow_type(spark_type(hint))) for name, hint in BundleLoad.__annotations__.items()),
    ]
)
"""A sample: a bundle of a report, with the place and the sender of the report."""


class Block(NamedTuple):
    """Samples of one bucket.

    Attributes:
        bucket: the bucket's number.
        samples: rows of :data:`SAMPLE_SCHEMA` as a stream of Arrow.
    """

    bucket: int
    samples: bytes


def blocks_of(samples: pa.Table, numbers: Sequence[int]) -> Iterator[Block]:
    """Pack samples: one block for each bucket that has some, in the samples' order.

    Args:
        samples: rows of :data:`SAMPLE_SCHEMA`.
        numbers: those of the table's buckets.
    """
    places = bucket_places(samples["bundle_id"], len(numbers))
    for place, block in packed_groups(samples, places):
        yield Block(numbers[place], block)


def samples_in(blocks: pa.ChunkedArray) -> pa.Table:
    """The samples in blocks, of which there is one at least, one block after the other."""
    return unpacked(block.as_buffer() for block in blocks)
