"""Follows the table ``decisions`` and writes what its decisions changed, each of them once.

No checkpoint says how far it is: each table's own last commit does, as the version of this writer, which is the seq of
the decision up to which the table is written. A pair of tables, changes and present rows, is written in this order; so
after a crash between the two commits the changes are computed anew, from the rows before them, and found written.
Without its tables everything is made anew from ``decisions``, whatever Kafka still has.
"""

import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, Protocol

import pyarrow.compute as pc
from deltalake import DeltaTable
from pyarrow.dataset import Dataset

from controlplane.core.log.events import Event
from controlplane.core.values.canonical import from_canonical
from controlplane.errors import LogContinuityError
from streaming.changes.row_changes import BUNDLES, SLOTS, Decided, Subject, TableRow, intent_answers, node_changes
from streaming.changes.written_rows import written_by
from streaming.contracts.changes import INTENT_ANSWERS_TABLE, NODE_CHANGES_TABLE
from streaming.contracts.records import DECISIONS_TABLE
from streaming.contracts.table import BUCKET_COLUMN, TableContract
from streaming.error_texts import HOW_TO_MEND
from streaming.storage import StoragePath
from streaming.tables.table_writer import TableWriter

APP_ID: Final = "controlplane.changes"
"""The name of this writer in the commits of its tables."""
_STEP_DECISIONS: Final = 256
"""How many decisions are read and folded at once: what bounds the memory, beside the greatest decision."""
_LOOK_AHEAD_DECISIONS: Final = 100_000
"""Among how many the next ones are searched: seqs alone are read of these."""
_UNWRITTEN_DECISIONS: Final = 10_000
"""After how many decisions that wrote no row of a table its position is written all the same, for the next start."""
_NONE: Final = -1
"""The position before the first decision."""
_HEAD: Final = ("seq", "term", "epoch", "append_time_ms", "day", "decided_at_ms", "cause_kinds", "causes")


class _Writer(Protocol):
    """Writes what decisions changed into one or two tables."""

    position: int
    """The decision up to which it has seen all."""

    @property
    def behind(self) -> int:
        """The decision behind which it must not lack any: that up to which a table of its own is written."""

    def write(self, decided: Sequence[Decided], end: int) -> None:
        """Write what decisions changed, up to one."""


class ChangesFollower:
    """One run of it; the only writer of its tables.

    Args:
        tables_dir: the folder of the tables, which are there.
    """

    def __init__(self, tables_dir: StoragePath) -> None:
        """Open the tables, and see how far they are."""
        self._decisions = DeltaTable(str(tables_dir / DECISIONS_TABLE.name))
        self._seen_version: int | None = None

        def opened(contract: TableContract) -> TableWriter:
            return TableWriter(tables_dir, contract, APP_ID)

        self._writers: tuple[_Writer, ...] = (
            *(_Pair(each, opened(each.changes_table), opened(each.present_table)) for each in (SLOTS, BUNDLES)),
            _Rows(opened(NODE_CHANGES_TABLE), node_changes),
            _Rows(opened(INTENT_ANSWERS_TABLE), intent_answers),
        )

    def step(self) -> int:
        """Write what the next decisions changed; returns their number, 0 if there are none.

        Raises:
            LogContinuityError: a decision that was not written is missing, or is there more than once.
        """
        self._decisions.update_incremental()
        version = self._decisions.version()
        if version == self._seen_version:
            return 0
        decided = self._next_decisions()
        if not decided:
            self._seen_version = version
            return 0
        end = decided[-1].seq
        for writer in self._writers:
            rest = [each for each in decided if each.seq > writer.position]
            if rest:
                writer.write(rest, end)
        return len(decided)

    def _next_decisions(self) -> list[Decided]:
        position = min(writer.position for writer in self._writers)
        dataset = self._decisions.to_pyarrow_dataset()
        ahead = (pc.field("seq") > position) & (pc.field("seq") <= position + _LOOK_AHEAD_DECISIONS)
        if position < 0:  # the oldest days of the table may have been removed
            ahead = pc.field("seq") > position
        seqs = sorted(dataset.to_table(columns=["seq"], filter=ahead)["seq"].to_pylist())[: _STEP_DECISIONS + 1]
        if not seqs:
            self._refuse_far_gap(dataset, position)
            return []
        # Tables that begin anew take the first one that is there; none of the others may lack what was before it.
        first = min([seqs[0], *(writer.behind + 1 for writer in self._writers if writer.behind != _NONE)])
        for due, seq in zip(range(first, first + len(seqs)), seqs, strict=True):
            if seq != due:
                raise _broken(dataset, due, seq)
        seqs = seqs[:_STEP_DECISIONS]
        within = (pc.field("seq") >= seqs[0]) & (pc.field("seq") <= seqs[-1])
        rows = dataset.to_table(columns=[*_HEAD, "events"], filter=within).to_pylist()
        return [_decided(row) for row in sorted(rows, key=lambda row: row["seq"])]

    def _refuse_far_gap(self, dataset: Dataset, position: int) -> None:
        later = dataset.to_table(columns=["seq"], filter=pc.field("seq") > position)
        if later.num_rows:
            raise _broken(dataset, position + 1, pc.min(later["seq"]).as_py())


def _broken(dataset: Dataset, due: int, there: int) -> LogContinuityError:
    """The error where another decision than the one that is due comes next in the table."""
    name = DECISIONS_TABLE.name
    if pc.min(dataset.to_table(columns=["seq"])["seq"]).as_py() > due:
        return LogContinuityError(
            f"the table {name} begins with decision {there}, but tables of changes are written up to {due - 1}: what "
            "was decided between is unknown. Move the folders of the tables of changes and of present rows away, all "
            f"six, and they are made anew from decision {there} on; {HOW_TO_MEND}"
        )
    fault = f"no decision {due}, but {there}" if there > due else f"decision {there} more than once"
    return LogContinuityError(
        f"the table {name} has {fault}: what was changed is unknown. Move the folder of {name} and its checkpoint "
        f"away, and it is filled again from what Kafka has; {HOW_TO_MEND}"
    )


def _decided(row: TableRow) -> Decided:
    events = from_canonical(tuple[Event, ...], json.loads(row.pop("events")))
    return Decided(row["seq"], row, written_by(events))


class _Rows:
    """Writes a table whose rows follow from one decision each."""

    def __init__(self, table: TableWriter, rows_of: Callable[[Decided], Iterable[TableRow]]) -> None:
        self._table = table
        self.position = _position(table)
        self._rows_of = rows_of

    @property
    def behind(self) -> int:
        """See :meth:`_Writer.behind`."""
        return self.position

    def write(self, decided: Sequence[Decided], end: int) -> None:
        """See :meth:`_Writer.write`."""
        rows = [row for decision in decided for row in self._rows_of(decision)]
        if rows or end - _position(self._table) >= _UNWRITTEN_DECISIONS:
            self._table.append(rows, end)
        self.position = end


class _Pair:
    """Writes a table of changes, and then the one of present rows."""

    def __init__(self, subject: Subject[Any, Any], changes: TableWriter, present: TableWriter) -> None:
        self._changes = changes
        self._present = present
        self.position = _position(present)
        self._changes_position = _position(changes)
        if self._changes_position < self.position:  # their folder was removed: both are made anew
            present.replace((), _NONE)
            self.position = _NONE
        self._subject = subject
        self._bucket_count = present.bucket_count

    @property
    def behind(self) -> int:
        """See :meth:`_Writer.behind`; present rows that are gone are made anew, and their changes may be there."""
        return self._changes_position if self.position == _NONE else self.position

    def write(self, decided: Sequence[Decided], end: int) -> None:
        """See :meth:`_Writer.write`."""
        subject = self._subject
        keys = {key for decision in decided for key in subject.written(decision.written)}
        buckets = {subject.bucket(key, self._bucket_count) for key in keys}
        folded = subject.fold(decided, self._before(keys, buckets), self._bucket_count)
        unwritten = end - _position(self._present) >= _UNWRITTEN_DECISIONS
        if end > self._changes_position and (keys or unwritten):
            new = (row for row in folded.changes if row["seq"] > self._changes_position)
            self._changes.append(new, end)
            self._changes_position = end
        if keys or unwritten:
            self._present.merge_rows(subject.key, folded.present, buckets, end)
        self.position = end

    def _before(self, keys: set[Any], buckets: set[int]) -> dict[Any, TableRow]:
        if not keys:
            return {}
        name = self._subject.key
        there = pc.field(BUCKET_COLUMN).isin(sorted(buckets)) & pc.field(name).isin(sorted(keys))
        return {row[name]: row for row in self._present.rows(there).to_pylist()}


def _position(table: TableWriter) -> int:
    version = table.written_version
    return _NONE if version is None else version
