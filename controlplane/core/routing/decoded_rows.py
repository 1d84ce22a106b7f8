"""The rows of the routing table that a reader has decoded so far. They need not be a whole table."""

from typing import Any, TypeVar, cast

from controlplane.core.cluster.rows import SETTINGS_ID, SETTINGS_ROWS, TableSettings
from controlplane.core.routing.rows import KINDS, ROW_KINDS, TableRow, UnreadableRow, key_of, split_key
from controlplane.core.slots.rows import SLOT_ROWS
from controlplane.core.slots.table import Slot
from controlplane.core.values.identifiers import Epoch
from controlplane.core.values.row_kind import AnyRowKind, RowKind
from controlplane.errors import InvariantViolationError

IdT = TypeVar("IdT")
RowT = TypeVar("RowT")


class DecodedRows:
    """The last row of each key, by kind. Methods return copies, so that a table that was shown never changes.

    Attributes:
        unreadable: keys of known kinds whose live records this version cannot read as rows, with the reason.
    """

    def __init__(self) -> None:
        """Create an empty collection."""
        self.unreadable: dict[str, str] = {}
        self._rows: dict[AnyRowKind, dict[Any, TableRow]] = {kind: {} for kind in ROW_KINDS}
        self._changed_kinds: set[AnyRowKind] = set()

    def put(self, name: str, row: TableRow | UnreadableRow | None) -> None:
        """Set the row of a key; None removes it. Keys of unknown kinds are ignored."""
        kind_name, text = split_key(name)
        kind = KINDS.get(kind_name)
        if kind is None:
            return
        self._changed_kinds.add(kind)
        self.unreadable.pop(name, None)
        identifier = kind.id_in_key(text)
        if row is not None and not isinstance(row, UnreadableRow):
            if key_of(row) != name:
                row = UnreadableRow(f"the row belongs under {key_of(row)!r:.80}")
            elif identifier is None:
                row = UnreadableRow(f"no {kind.name} has such a number")
            else:
                self._rows[kind][identifier] = row
                return
        self._rows[kind].pop(identifier, None)
        if row is not None:
            self.unreadable[name] = row.problem

    def take_changed_kinds(self) -> set[AnyRowKind]:
        """The kinds of the rows that changed since the last call."""
        changed, self._changed_kinds = self._changed_kinds, set()
        return changed

    @property
    def settings(self) -> TableSettings | None:
        """The settings row; None without one."""
        return self._live(SETTINGS_ROWS).get(SETTINGS_ID)

    def slots(self, count: int) -> tuple[Slot, ...]:
        """The slots 0 to ``count`` - 1. A slot without a row has no replicas.

        Raises:
            InvariantViolationError: there is a row of a slot beyond ``count``.
        """
        live = self._live(SLOT_ROWS)
        beyond = [slot_id for slot_id in live if not 0 <= slot_id < count]
        if beyond:
            message = f"routing-table has a row for slot {min(beyond)}, but only {count} slots"
            raise InvariantViolationError(message)
        return tuple(live.get(slot_id) or Slot(slot_id, None, (), Epoch(0)) for slot_id in range(count))

    def of(self, kind: RowKind[Any, IdT, RowT]) -> dict[IdT, RowT]:
        """The rows of a kind by identifier, ascending."""
        return dict(sorted(self._live(kind).items()))

    def _live(self, kind: RowKind[Any, IdT, RowT]) -> dict[IdT, RowT]:
        return cast("dict[IdT, RowT]", self._rows[kind])
