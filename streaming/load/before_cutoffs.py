"""The samples of a batch without those of processes that were replaced."""

from collections.abc import Sequence
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the usual name

from controlplane.core.bundles.load.incarnations import Cutoff
from controlplane.core.bundles.load.reported_state import Position

_CUTOFF: Final = "node_id string, incarnation long, end struct<append_time_ms: long, partition: int, offset: long>"


def before_cutoffs(samples: DataFrame, cutoffs: Sequence[Cutoff]) -> DataFrame:
    """The samples of reports that stand before the cutoff of their incarnation, or have none."""
    if not cutoffs:
        return samples
    ends = samples.sparkSession.createDataFrame(list(cutoffs), _CUTOFF)
    keys = [samples[name] == ends[name] for name in ("node_id", "incarnation")]
    with_ends = samples.join(F.broadcast(ends), keys, "left")
    is_before = F.struct(*Position._fields) < F.col("end")
    return with_ends.where(ends["node_id"].isNull() | is_before).select(samples["*"])
