"""The newest decision in the table of decisions, found by the statistics of its files, without Spark."""

from typing import Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable

from controlplane.core.values.identifiers import Seq
from streaming.contracts.records import DECISIONS_TABLE
from streaming.storage import StoragePath

_GREATEST_SEQ: Final = "max.seq"


class NewestDecision(NamedTuple):
    """The last decision of a log, as far as the table has it."""

    log_id: str
    seq: Seq


def newest_decision(tables_dir: StoragePath) -> NewestDecision | None:
    """The newest decision in the table; None if it is empty.

    Args:
        tables_dir: the folder of the tables, which are there.
    """
    table = DeltaTable(str(tables_dir / DECISIONS_TABLE.name))
    actions = pa.table(table.get_add_actions(flatten=True))
    # Files without statistics are read whole.
    greatest_seq = pc.max(actions[_GREATEST_SEQ]).as_py() if _GREATEST_SEQ in actions.column_names else None
    there = None if greatest_seq is None else pc.field("seq") >= greatest_seq
    rows = table.to_pyarrow_dataset().to_table(columns=["log_id", "seq"], filter=there).to_pylist()
    if not rows:
        return None
    newest = max(rows, key=lambda row: row["seq"])
    return NewestDecision(newest["log_id"], Seq(newest["seq"]))
