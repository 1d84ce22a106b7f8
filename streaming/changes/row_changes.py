"""Rows of the tables of changes, and the present rows after them. A row is a dict of the columns of its table."""

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Generic, NamedTuple, TypeAlias, TypeVar

import xxhash

from controlplane.core.bundles.bundle import Bundle
from controlplane.core.bundles.names import namespace_of
from controlplane.core.slots.table import Slot
from controlplane.core.values.identifiers import SlotId
from streaming.changes.written_rows import WrittenRows
from streaming.contracts.changes import BUNDLE_CHANGES_TABLE, BUNDLES_TABLE, SLOT_CHANGES_TABLE, SLOTS_TABLE
from streaming.contracts.table import BUCKET_COLUMN, TableContract

TableRow: TypeAlias = dict[str, Any]
Key = TypeVar("Key", bound=Hashable)
Written = TypeVar("Written")

_WHEN: Final = ("seq", "append_time_ms", "epoch")


class Decided(NamedTuple):
    """A decision of the table ``decisions``.

    Attributes:
        seq: its number.
        columns: what every row of a table of changes has of it.
        written: what its events write.
    """

    seq: int
    columns: TableRow
    written: WrittenRows


class FoldedRows(NamedTuple, Generic[Key]):
    """What decisions changed.

    Attributes:
        changes: the rows of changes, in order.
        present: the present row of each key that changed; None: there is none any more.
    """

    changes: list[TableRow]
    present: dict[Key, TableRow | None]


@dataclass(frozen=True, slots=True)
class Subject(Generic[Key, Written]):
    """What has one present row for each key, and a row of changes for each row that a decision writes.

    Attributes:
        changes_table: the table of its changes.
        present_table: the table of its present rows.
        key: the column that names it.
        written: its rows that a decision wrote, by key; None: it ends.
        values: the columns of a written row, beside its key.
        compared: the columns of which a change has the values before and after it.
        bucket: the number of a key's bucket among so many.
    """

    changes_table: TableContract
    present_table: TableContract
    key: str
    written: Callable[[WrittenRows], Mapping[Key, Written | None]]
    values: Callable[[Written], TableRow]
    compared: tuple[str, ...]
    bucket: Callable[[Key, int], int]

    def fold(self, decided: Iterable[Decided], before: Mapping[Key, TableRow], bucket_count: int) -> FoldedRows[Key]:
        """What decisions changed, one after the other.

        Args:
            decided: decisions in order.
            before: the present rows before them, of every key that they write and that has one.
            bucket_count: into how many buckets the present rows are divided.
        """
        changes: list[TableRow] = []
        present: dict[Key, TableRow | None] = {}
        for decision in decided:
            for key, row in self.written(decision.written).items():
                former = present[key] if key in present else before.get(key)
                values = None if row is None else self.values(row)
                changes.append(self._change(decision, key, former, values))
                present[key] = None if values is None else self._present(decision, key, values, bucket_count)
        return FoldedRows(changes, present)

    def _change(self, decision: Decided, key: Key, former: TableRow | None, values: TableRow | None) -> TableRow:
        known = former or {}
        compared = {f"from_{name}": known.get(name) for name in self.compared}
        compared |= {f"to_{name}": None if values is None else values[name] for name in self.compared}
        others = {name: value for name, value in (values or {}).items() if name not in self.compared}
        names = self.named(key)
        since = {"from_seq": known.get("seq"), "from_ms": known.get("append_time_ms")}
        ended = {"ended": values is None} if "ended" in self.changes_table.columns else {}
        return {self.key: key, **names, **decision.columns, **ended, **others, **compared, **since}

    def _present(self, decision: Decided, key: Key, values: TableRow, bucket_count: int) -> TableRow:
        when = {name: decision.columns[name] for name in _WHEN}
        return {self.key: key, **self.named(key), BUCKET_COLUMN: self.bucket(key, bucket_count), **when, **values}

    def named(self, key: Key) -> TableRow:
        """What a key says beside itself: the namespace of a bundle."""
        return {"namespace": namespace_of(str(key))} if "namespace" in self.present_table.columns else {}


def _slot_values(row: Slot) -> TableRow:
    return {"leader": row.leader, "followers": list(row.followers), "leader_epoch": row.leader_epoch}


def _slot_bucket(slot_id: SlotId, count: int) -> int:
    return slot_id % count


def _bundle_values(row: Bundle) -> TableRow:
    return {
        "state": row.ownership_state.value,
        "owner": row.owner,
        "serving_node": row.serving_node,
        "owner_epoch": row.owner_epoch,
        "next_owner": row.next_owner,
        "former_owner": row.former_owner,
        "version": row.version,
        "is_forced": row.is_forced,
        "parent": row.parent,
    }


def _bundle_bucket(bundle_id: str, count: int) -> int:
    return xxhash.xxh64_intdigest(bundle_id.encode()) % count


SLOTS: Final[Subject[SlotId, Slot]] = Subject(
    changes_table=SLOT_CHANGES_TABLE,
    present_table=SLOTS_TABLE,
    key="slot_id",
    written=lambda rows: rows.slots,
    values=_slot_values,
    compared=("leader", "followers", "leader_epoch"),
    bucket=_slot_bucket,
)
BUNDLES: Final[Subject[str, Bundle]] = Subject(
    changes_table=BUNDLE_CHANGES_TABLE,
    present_table=BUNDLES_TABLE,
    key="bundle_id",
    written=lambda rows: rows.bundles,
    values=_bundle_values,
    compared=("state", "owner", "serving_node", "owner_epoch"),
    bucket=_bundle_bucket,
)


def node_changes(decision: Decided) -> list[TableRow]:
    """The rows of ``node_changes`` of a decision."""
    return [{**decision.columns, **change._asdict()} for change in decision.written.nodes]


def intent_answers(decision: Decided) -> list[TableRow]:
    """The rows of ``intent_answers`` of a decision."""
    return [
        {
            **decision.columns,
            "intent_id": answer.intent_id,
            "kind": answer.kind,
            "principal": answer.principal,
            "outcome": answer.outcome.value,
            "detail": answer.detail,
        }
        for answer in decision.written.answers
    ]
