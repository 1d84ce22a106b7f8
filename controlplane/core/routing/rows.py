"""The rows of the routing table as readers see them, their keys, and the table's digest.

The topic ``routing-table`` is compacted: the last value of a key is the row, a missing value removes it. Keys are
``<table>/<kind>/<id>``; only the id may contain a slash. The epoch marker closes each epoch and is not a row.
"""

from dataclasses import dataclass
from typing import Final, TypeAlias

from controlplane.core.bundles.bundle import Bundle, Namespace
from controlplane.core.cluster.rows import TableSettings
from controlplane.core.membership.rows import NodeRow
from controlplane.core.slots.table import Slot
from controlplane.core.values.canonical import union_member
from controlplane.core.values.identifiers import Epoch, NodeId, Seq, SlotId, Term

TABLE_ID: Final = "main"
MARKER_KEY: Final = f"{TABLE_ID}/epoch/marker"
SETTINGS_KEY: Final = f"{TABLE_ID}/table/settings"


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


Row: TypeAlias = TableSettings | Slot | NodeRow | Bundle | Namespace
TableValue: TypeAlias = Row | EpochMarker
KINDS: Final = frozenset({"table", "slot", "node", "bundle", "namespace"})
"""The kinds of rows that this version knows, as they stand in keys."""


def slot_key(slot_id: SlotId) -> str:
    """The key of a slot's row, for example ``main/slot/17``."""
    return f"{TABLE_ID}/slot/{slot_id}"


def node_key(node_id: NodeId) -> str:
    """The key of a node's row."""
    return f"{TABLE_ID}/node/{node_id}"


def bundle_key(bundle_id: str) -> str:
    """The key of a bundle's row; its id contains a slash."""
    return f"{TABLE_ID}/bundle/{bundle_id}"


def namespace_key(name: str) -> str:
    """The key of a namespace's row."""
    return f"{TABLE_ID}/namespace/{name}"


def key_of(value: TableValue) -> str:
    """The key under which a row or the marker is written."""
    match value:
        case TableSettings():
            return SETTINGS_KEY
        case Slot(slot_id=slot_id):
            return slot_key(slot_id)
        case NodeRow(node_id=node_id):
            return node_key(node_id)
        case Bundle():
            return bundle_key(value.bundle_id)
        case Namespace(name=name):
            return namespace_key(name)
        case EpochMarker():
            return MARKER_KEY


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
