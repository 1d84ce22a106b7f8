"""Search of decisions by number, slot or node, with the rows of the slot table that they changed."""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from controlplane.core.log.decision import Decision
from controlplane.core.log.state import State
from controlplane.core.values.events import nodes_of
from controlplane.inspection.readers import LoggedDecision
from controlplane.inspection.row_history import RowChange, RowHistory


class FoundDecision(NamedTuple):
    """A decision with those of its changed rows that match the search."""

    logged: LoggedDecision
    rows: tuple[RowChange, ...]


@dataclass(frozen=True, slots=True)
class LogFilter:
    """A search for decisions and rows; None matches any.

    Attributes:
        seq: the decision with this number.
        epoch: decisions after which the table is at this epoch.
        slot_id: decisions that changed the row of this slot, and only this row.
        node_id: decisions with a cause or an event about this node, or that changed rows with this node before or
            after; of the rows only these.
    """

    seq: int | None = None
    epoch: int | None = None
    slot_id: int | None = None
    node_id: str | None = None

    @property
    def is_set(self) -> bool:
        """Whether the search has any condition."""
        return self != LogFilter()

    @property
    def in_words(self) -> str:
        """The condition, as the continuation of 'no decision'."""
        asked = {
            f"of seq {self.seq}": self.seq,
            f"of epoch {self.epoch}": self.epoch,
            f"that changed the row of slot {self.slot_id}": self.slot_id,
            f"about node {self.node_id!r}": self.node_id,
        }
        return " and ".join(words for words, value in asked.items() if value is not None)

    def rows_of(self, changes: Iterable[RowChange]) -> tuple[RowChange, ...]:
        """The rows of a decision that match."""
        return tuple(
            change
            for change in changes
            if self.slot_id in (None, change.after.slot_id)
            and (self.node_id is None or self.node_id in (*change.before.replicas, *change.after.replicas))
        )

    def wants(self, decision: Decision, rows: tuple[RowChange, ...]) -> bool:
        """Whether a decision matches; ``rows`` are those of :meth:`rows_of`."""
        if self.seq not in (None, decision.seq) or self.epoch not in (None, decision.epoch):
            return False
        if self.slot_id is not None:
            return bool(rows)
        if rows or self.node_id is None or self.node_id in {cause.subject for cause in decision.causes}:
            return True
        return any(self.node_id in nodes_of(event) for event in decision.events)


def find_decisions(
    decisions: Iterable[LoggedDecision], wanted: LogFilter, count: int
) -> tuple[list[FoundDecision], State]:
    """The last ``count`` decisions of a whole log that match, oldest first, and the state at its end.

    Raises:
        LogContinuityError: the log is not one chain.
    """
    history = RowHistory()
    found: deque[FoundDecision] = deque(maxlen=count)
    for logged in decisions:
        rows = wanted.rows_of(history.take(logged.decision))
        if wanted.wants(logged.decision, rows):
            found.append(FoundDecision(logged, rows))
    return list(found), history.state
