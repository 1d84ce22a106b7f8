"""Which candidates were proposed before."""

from collections.abc import Sequence

import pyarrow.compute as pc

from streaming.load.candidates import ShedRow, SplitRow, day_of_ms
from streaming.tables.driver_tables import DriverTable


def proposed_before(
    table: DriverTable, rows: Sequence[SplitRow] | Sequence[ShedRow], evaluation_interval_ms: int
) -> frozenset[str]:
    """The ids of those candidates that are in the table. An id names the report on which the candidate rests.

    No evaluation before that report can have proposed it, so older days are not read.
    """
    oldest_day = day_of_ms(min(row.window_end_ms for row in rows) - evaluation_interval_ms)
    there = (pc.field("day") >= oldest_day) & pc.field("candidate_id").isin([row.candidate_id for row in rows])
    return frozenset(table.rows(there, ["candidate_id"])["candidate_id"].to_pylist())
