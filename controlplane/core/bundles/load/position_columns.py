"""Places of many reports as columns, and their order."""

from typing import NamedTuple

import numpy as np

from controlplane.core.bundles.load.sample_fold import Choice, Numbers


class PositionColumns(NamedTuple):
    """The fields of :class:`controlplane.core.bundles.load.reported_state.Position`, a value for each report."""

    append_time_ms: Numbers
    partition: Numbers
    offset: Numbers


def are_behind(these: PositionColumns, others: PositionColumns) -> Choice:
    """Whether each of these stands behind the other one in its row.

    As :meth:`controlplane.core.bundles.load.reported_state.Position.is_behind` has it.
    """
    is_later = (these.append_time_ms > others.append_time_ms) | (
        (these.append_time_ms == others.append_time_ms) & (these.partition > others.partition)
    )
    # Two partitions have no common offsets, so these are compared only within one.
    return np.where(these.partition == others.partition, these.offset > others.offset, is_later)
