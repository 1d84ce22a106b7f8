"""The rows of the routing table that a reader has decoded so far, whole table or not."""

from typing import Final

from controlplane.core.bundles.bundle import Bundle, Namespace
from controlplane.core.cluster.rows import TableSettings
from controlplane.core.membership.rows import NodeRow
from controlplane.core.routing.rows import KINDS, SETTINGS_KEY, Row, UnreadableRow, key_of, split_key
from controlplane.core.slots.table import Slot
from controlplane.core.values.identifiers import Epoch, NamespaceName, NodeId, SlotId
from controlplane.errors import InvariantViolationError

_MOST_DIGITS: Final = 10
"""Of a slot's number: there are far fewer slots, and Python refuses to read numbers of thousands of digits."""


class DecodedRows:
    """The last row of each key, by kind. What it gives away is a copy: a table that was shown never changes.

    Attributes:
        settings: the settings row; None without one.
        unreadable: keys of known kinds whose live records are no row that this version can read, with the reason.
    """

    def __init__(self) -> None:
        """No row."""
        self.settings: TableSettings | None = None
        self.unreadable: dict[str, str] = {}
        self._slots: dict[SlotId, Slot] = {}
        self._nodes: dict[NodeId, NodeRow] = {}
        self._bundles: dict[str, Bundle] = {}
        self._namespaces: dict[NamespaceName, Namespace] = {}
        self._changed_kinds: set[str] = set()

    def put(self, name: str, row: Row | UnreadableRow | None) -> None:
        """Take what stands under a key now; None removes it. Keys of unknown kinds hold nothing."""
        kind, identifier = split_key(name)
        if kind not in KINDS:
            return
        self._changed_kinds.add(kind)
        if row is not None and not isinstance(row, UnreadableRow):
            problem = _misplaced(name, identifier, row)
            if not problem:
                self.unreadable.pop(name, None)
                self._put(row)
                return
            row = UnreadableRow(problem)
        self._remove(name, kind, identifier)
        if row is not None:
            self.unreadable[name] = row.problem

    def take_changed_kinds(self) -> set[str]:
        """The kinds of the rows that were put since the last call."""
        changed, self._changed_kinds = self._changed_kinds, set()
        return changed

    def slots(self, count: int) -> tuple[Slot, ...]:
        """One slot for each number below ``count``; those without a row have no replicas.

        Raises:
            InvariantViolationError: there is a row for a slot beyond the count.
        """
        beyond = [slot_id for slot_id in self._slots if not 0 <= slot_id < count]
        if beyond:
            message = f"routing-table has a row for slot {min(beyond)}, but only {count} slots"
            raise InvariantViolationError(message)
        return tuple(self._slots.get(slot_id) or Slot(slot_id, None, (), Epoch(0)) for slot_id in range(count))

    def nodes(self) -> dict[NodeId, NodeRow]:
        """By name."""
        return dict(sorted(self._nodes.items()))

    def bundles(self) -> dict[str, Bundle]:
        """By bundle id."""
        return dict(sorted(self._bundles.items()))

    def namespaces(self) -> dict[NamespaceName, Namespace]:
        """By name."""
        return dict(sorted(self._namespaces.items()))

    def _put(self, row: Row) -> None:
        match row:
            case Slot(slot_id=slot_id):
                self._slots[slot_id] = row
            case NodeRow(node_id=node_id):
                self._nodes[node_id] = row
            case Bundle():
                self._bundles[row.bundle_id] = row
            case Namespace(name=name):
                self._namespaces[name] = row
            case TableSettings():
                self.settings = row

    def _remove(self, name: str, kind: str, identifier: str) -> None:
        self.unreadable.pop(name, None)
        match kind:
            case "slot":
                slot_id = _slot_id(identifier)
                if slot_id is not None:
                    self._slots.pop(slot_id, None)
            case "node":
                self._nodes.pop(identifier, None)
            case "bundle":
                self._bundles.pop(identifier, None)
            case "namespace":
                self._namespaces.pop(identifier, None)
            case _:
                if name == SETTINGS_KEY:
                    self.settings = None


def _misplaced(name: str, identifier: str, row: Row) -> str:
    """Why a row does not belong under a key; empty if it does."""
    if key_of(row) != name:
        return f"the row belongs under {key_of(row)!r:.80}"
    return "no slot has such a number" if isinstance(row, Slot) and _slot_id(identifier) is None else ""


def _slot_id(identifier: str) -> SlotId | None:
    """The slot of a key; None where no slot's row has such a key: int() takes "05" and other scripts' digits, too."""
    if len(identifier) > _MOST_DIGITS or not identifier.isdecimal():
        return None
    number = SlotId(int(identifier))
    return number if str(number) == identifier else None
