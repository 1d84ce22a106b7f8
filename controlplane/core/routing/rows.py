"""The rows of the routing table as readers see them, their keys, and the table's digest.

The topic ``routing-table`` is compacted: the last value of a key is the row, a missing value removes it. Keys are
``<table>/<kind>/<id>``; only the id may contain a slash. The epoch marker closes each epoch and is not a row.
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
    """Closes an epoch: swap to it when the rows read so far have this digest.

    Attributes:
        term: the leadership that committed it.
        epoch: +1 each, no gaps.
        seq: of the decision in the same transaction.
        log_id: the decision log that it belongs to.
        row_count: live rows, the marker not counted.
        cause: why, for people.
        digest: see :func:`controlplane.core.values.digests.row_hash`; 16 hexadecimal digits.
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
    """A live record that this version cannot read: it counts in the digest and is passed by.

    Attributes:
        problem: why, for people.
    """

    problem: str


TableRow: TypeAlias = TableSettings | Slot | NodeRow | Namespace | Bundle
TableValue: TypeAlias = TableRow | EpochMarker

ROW_KINDS: Final[tuple[AnyRowKind, ...]] = (SETTINGS_ROWS, SLOT_ROWS, NODE_ROWS, NAMESPACE_ROWS, BUNDLE_ROWS)
"""Every kind of rows that this version knows, each as its subject declares it. Rows are written in this order."""

KINDS: Final[Mapping[str, AnyRowKind]] = MappingProxyType({kind.name: kind for kind in ROW_KINDS})
"""The same by their names in keys."""

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
    """A key as text, whatever its bytes are; :func:`key_bytes` gives the same bytes back."""
    return key.decode("utf-8", "surrogateescape")


def key_bytes(name: str) -> bytes:
    """The bytes of a key that :func:`key_text` made into text."""
    return name.encode("utf-8", "surrogateescape")


def split_key(name: str) -> tuple[str, str]:
    """Kind and identifier in a key of the table, of a known kind or not: ``slot`` and ``17`` of ``main/slot/17``.

    Both are empty for any other key.
    """
    table_id, _, rest = name.partition("/")
    kind, _, identifier = rest.partition("/")
    return (kind, identifier) if table_id == TABLE_ID else ("", "")
