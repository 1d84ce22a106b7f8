"""The samples of a batch without those of incarnations that were replaced."""

from collections.abc import Sequence
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from controlplane.core.bundles.load.incarnations import Cutoff
from controlplane.core.bundles.load.position_columns import PositionColumns, are_behind
from controlplane.core.bundles.load.reported_state import Position

_NOTHING_COUNTS: Final = Position(-1, -1, -1)
"""Stands before every report."""
_SEPARATOR: Final = "\x00"
"""Between a node's id and an incarnation, which is digits: so no two incarnations have one name."""


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
    places = samples.select(Position._fields).take(pa.array(rows))
    counts[rows] = are_behind(PositionColumns(*ends.T), PositionColumns(*(column.to_numpy() for column in places)))
    return samples.filter(pa.array(counts))
