"""The rows of the routing table, their keys, and the epoch marker.

The topic ``routing-table`` is compacted: the last value of a key is the row, and a tombstone removes it. Keys have the
form ``<table>/<kind>/<id>``; only the id may contain a slash. The epoch marker closes an epoch and is not a row.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, TypeAlias

from controlplane.core.bundles.bundle import Bundle, Namespace
from controlplane.core.bundles.rows import BUNDLE_ROWS, NAMESPACE_ROWS
from controlplane.core.cluster.rows import SETTINGS_ID, SETTINGS_ROWS, TableSettings
from controlplane.core.membership.rows import NODE_ROWS, NodeRow
from controlplane.core.slots.rows import SLOT_ROWS
from controlplane.core.slots.table import Slot
from controlplane.core.values.canonical import union_member
from controlplane.core.values.identifiers import Epoch, Seq, Term
from controlplane.core.values.row_kind import TABLE_ID, AnyRowKind

MARKER_KEY: Final = f"{TABLE_ID}/epoch/marker"


@union_member
@dataclass(frozen=True, slots=True)
class EpochMarker:
    """The record that closes an epoch. A reader shows the table of the epoch if its rows have this digest.

    Attributes:
        term: term of the leader that committed the epoch.
        epoch: the epoch.
        seq: seq of the decision in the same transaction.
        log_id: id of the decision log.
        row_count: number of live rows, without the marker.
        cause: cause of the change, for display.
        digest: sum of :func:`controlplane.core.values.digests.row_hash` over the live rows; 16 hexadecimal digits.
    """

    term: Term
    epoch: Epoch
    seq: Seq
    log_id: str
    row_count: int
    cause: str
    digest: str


@dataclass(frozen=True, slots=True)
class UnreadableRow:
    """A live record that this version cannot read as a row. It counts in the digest.

    Attributes:
        problem: the reason, for messages.
    """

    problem: str


TableRow: TypeAlias = TableSettings | Slot | NodeRow | Namespace | Bundle
TableValue: TypeAlias = TableRow | EpochMarker

ROW_KINDS: Final[tuple[AnyRowKind, ...]] = (SETTINGS_ROWS, SLOT_ROWS, NODE_ROWS, NAMESPACE_ROWS, BUNDLE_ROWS)
"""The kinds of rows that this version knows, as their subjects declare them. Rows are written in this order."""

KINDS: Final[Mapping[str, AnyRowKind]] = MappingProxyType({kind.name: kind for kind in ROW_KINDS})
"""The kinds of rows by their names in keys."""

_KIND_OF_RECORD: Final = {kind.record: kind for kind in ROW_KINDS}

SETTINGS_KEY: Final = SETTINGS_ROWS.key(SETTINGS_ID)
slot_key: Final = SLOT_ROWS.key
node_key: Final = NODE_ROWS.key
bundle_key: Final = BUNDLE_ROWS.key
namespace_key: Final = NAMESPACE_ROWS.key


def kind_of(row: TableRow) -> AnyRowKind:
    """The kind of a row."""
    return _KIND_OF_RECORD[type(row)]


def key_of(value: TableValue) -> str:
    """The key under which a row or the marker is written."""
    if isinstance(value, EpochMarker):
        return MARKER_KEY
    kind = kind_of(value)
    return kind.key(kind.id_of(value))


def key_text(key: bytes) -> str:
    """A key as text. It accepts any bytes, and :func:`key_bytes` returns the same bytes."""
    return key.decode("utf-8", "surrogateescape")


def key_bytes(name: str) -> bytes:
    """The bytes of a key that :func:`key_text` converted to text."""
    return name.encode("utf-8", "surrogateescape")


def split_key(name: str) -> tuple[str, str]:
    """Kind and identifier in a key of the table: ``slot`` and ``17`` in ``main/slot/17``.

    The kind may be unknown. Both are empty if the key has another form.
    """
    table_id, _, rest = name.partition("/")
    kind, _, identifier = rest.partition("/")
    return (kind, identifier) if table_id == TABLE_ID else ("", "")
