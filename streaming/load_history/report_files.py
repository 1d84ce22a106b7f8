"""The files of ``load_reports`` that a step reads: by one task, in parts, from each partition's next offset on."""

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

VALUES_AT_ONCE: Final = 200_000
"""How many samples are read at once."""


def in_one_task(session: SparkSession, paths: Sequence[str]) -> DataFrame:
    """The paths of files, for one task in their order: the streams keep the other cores."""
    return session.createDataFrame([(path,) for path in paths], "path string").coalesce(1)


def offsets_of(positions: Mapping[int, int], partition: pa.ChunkedArray, default: int) -> np.ndarray:
    """For each report the offset that its partition has in ``positions``."""
    numbers = partition.to_numpy()
    known, places = np.unique(numbers, return_inverse=True)
    return np.array([positions.get(each, default) for each in known.tolist()], np.int64)[places]
