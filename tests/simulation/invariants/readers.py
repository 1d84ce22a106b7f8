"""The tables that readers show: never an older epoch than before, never two different tables of one epoch."""

from collections.abc import Mapping

from controlplane.core.log.row_changes import rows_of
from controlplane.core.log.state import State
from controlplane.core.routing.replica import RoutingTable
from controlplane.core.routing.rows import TableRow, key_of
from controlplane.core.values.identifiers import Epoch, Term
from tests.helpers.shown_rows import shown_rows
from tests.simulation.invariants.verdicts import Verdicts

FORWARD = "no reader's (term, epoch) falls"
ALIKE = "readers with the same epoch have the same digest"
COMMITTED = "readers show what the log says of their epoch"


class ReaderWatch:
    """Looks at the tables of clients and nodes after each of their turns."""

    def __init__(self, verdicts: Verdicts) -> None:
        """Begin without tables."""
        self._verdicts = verdicts
        self._shown: dict[str, tuple[object, RoutingTable]] = {}
        self._digests: dict[Epoch, tuple[Term, str]] = {}
        self._rows: dict[Epoch, Mapping[str, TableRow]] = {}

    def look(self, name: str, process: object, table: RoutingTable | None, log: Mapping[Epoch, State]) -> None:
        """A process shows this table; ``log`` has the state at every committed epoch."""
        before_process, before = self._shown.get(name, (None, None))
        if table is None or table is before:
            return
        self._shown[name] = process, table
        number = table.term, table.epoch
        if before is not None and before_process is process:
            former = before.term, before.epoch
            self._verdicts.judge(FORWARD, number >= former, f"{name} goes from {former} to {number}")
        known = self._digests.setdefault(table.epoch, (table.term, table.digest))
        self._verdicts.judge(
            ALIKE, known == (table.term, table.digest), f"{name} has another table of epoch {table.epoch} than others"
        )
        committed = self._rows.get(table.epoch)
        if committed is None and table.epoch in log:
            committed = self._rows[table.epoch] = rows_of(log[table.epoch])
        self._verdicts.judge(
            COMMITTED, committed == _rows_in(table), f"{name} shows another epoch {table.epoch} than the log"
        )


def _rows_in(table: RoutingTable) -> dict[str, TableRow]:
    return {key_of(row): row for row in shown_rows(table)}
