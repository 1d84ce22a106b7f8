"""Blocks of samples: each sample is in the block of its bucket, where Spark's expression has always put it."""

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from streaming.load.buckets import bucket_places
from streaming.load.sample_blocks import Block, blocks_of, samples_in
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
