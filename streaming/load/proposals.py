"""Which candidates were proposed before."""

from collections.abc import Sequence

import pyarrow.compute as pc

from streaming.config import LoadRuleConfig
from streaming.contracts.days import day_of_ms
from streaming.load.candidates import ShedRow, SplitRow
from streaming.tables.table_writer import TableWriter


def proposed_before(
    table: TableWriter, rows: Sequence[SplitRow] | Sequence[ShedRow], rules: LoadRuleConfig
) -> frozenset[str]:
    """The ids of those candidates that are in the table. An id names the report on which the candidate rests.

    No evaluation before that report can have proposed it, so older days are not read. A report that was dated ahead can
    have been proposed before its own time, but not longer ago than a report counts.
    """
    oldest_ms = min(min(row.window_end_ms, row.evaluated_ms - rules.report_lifetime_ms) for row in rows)
    oldest_day = day_of_ms(oldest_ms - rules.evaluation_interval_ms)
    there = (pc.field("day") >= oldest_day) & pc.field("candidate_id").isin([row.candidate_id for row in rows])
    return frozenset(table.rows(there, ["candidate_id"])["candidate_id"].to_pylist())
