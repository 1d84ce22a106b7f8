"""Rows of Arrow as bytes, which Spark moves and groups without knowing what is in them.

A row of Spark's own for each of them cost it more than all that Python does with them:
docs/decisions/0042-samples-travel-in-blocks.md and 0043 have the figures.
"""

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa

from controlplane.core.bundles.load.sample_fold import Numbers


def packed(rows: pa.Table) -> bytes:
    """The rows as a stream of Arrow."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as stream:
        stream.write_table(rows)
    return bytes(sink.getvalue())


def unpacked(streams: Iterable[pa.Buffer | bytes]) -> pa.Table:
    """The rows of all streams, one stream after the other.

    Args:
        streams: as :func:`packed` returns them, of one schema; at least one.
    """
    return pa.concat_tables([pa.ipc.open_stream(stream).read_all() for stream in streams])


def packed_groups(rows: pa.Table, groups: Numbers) -> Iterator[tuple[int, bytes]]:
    """Each group that has rows, and its rows packed, in their order.

    Args:
        rows: of several groups.
        groups: the number of each row's group.
    """
    sorted_rows = rows.take(pa.array(np.argsort(groups, kind="stable")))
    present, counts = np.unique(groups, return_counts=True)
    firsts = np.cumsum(counts) - counts
    for group, first, count in zip(present.tolist(), firsts.tolist(), counts.tolist(), strict=True):
        yield group, packed(sorted_rows.slice(first, count))
