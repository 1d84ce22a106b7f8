"""The samples of a batch without those of processes that were replaced."""

from collections.abc import Sequence
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from controlplane.core.bundles.load.incarnations import Cutoff
from controlplane.core.bundles.load.reported_state import Position
from controlplane.core.bundles.load.sample_fold import Choice

_NOTHING_COUNTS: Final = Position(-1, -1, -1)
"""Stands before every report."""
_SEPARATOR: Final = "\x00"
"""Between a node's id and an incarnation, which is digits: so no two processes have one name."""


def before_cutoffs(samples: pa.Table, cutoffs: Sequence[Cutoff]) -> pa.Table:
    """The samples of reports that stand before the cutoff of their incarnation, or have none.

    Args:
        samples: rows of :data:`streaming.load.sample_blocks.SAMPLE_SCHEMA`.
        cutoffs: those of the batch.
    """
    if not cutoffs:
        return samples
    limited = pa.array([f"{each.node_id}{_SEPARATOR}{each.incarnation}" for each in cutoffs], pa.string())
    incarnation = samples["incarnation"].cast(pa.string())
    found = pc.index_in(pc.binary_join_element_wise(samples["node_id"], incarnation, _SEPARATOR), limited)
    rows = np.flatnonzero(found.is_valid().to_numpy())
    ends = np.array([each.end or _NOTHING_COUNTS for each in cutoffs], np.int64)[found.drop_null().to_numpy()]
    counts = np.ones(samples.num_rows, np.bool_)
    counts[rows] = _are_before(samples.take(pa.array(rows)), ends)
    return samples.filter(pa.array(counts))


def _are_before(samples: pa.Table, ends: np.ndarray) -> Choice:
    """Whether each sample's report stands before its end, as :meth:`Position.is_behind` has it."""
    time_ms, partition, offset = (samples[column].to_numpy() for column in Position._fields)
    end_ms, end_partition, end_offset = ends.T
    # Two partitions have no common offsets, so these are not compared.
    is_earlier = (time_ms < end_ms) | ((time_ms == end_ms) & (partition < end_partition))
    return np.asarray(np.where(partition == end_partition, offset < end_offset, is_earlier))
