"""A reader's copy of the routing table: rows in the order of the topic become whole tables, one an epoch.

The topic is compacted, so the rows that a reader meets on its way need not be the rows of any one epoch. The
marker's digest decides: where it fits, the rows are a table that was committed, and it is shown; where it does not,
compaction may have taken older rows away, and the reader reads on. Only at the end of the topic a mismatch means that
something is missing (a tombstone that is no longer kept, a row that somebody else wrote), and only reading from the
start again can mend it.
"""

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from types import MappingProxyType

from controlplane.core.bundles.bundle import Bundle, Namespace
from controlplane.core.cluster.rows import TableSettings
from controlplane.core.membership.rows import NodeRow
from controlplane.core.routing.hashing import bundle_hash, slot_of
from controlplane.core.routing.rows import EpochMarker, Row, key_of
from controlplane.core.slots.table import Slot
from controlplane.core.values.digests import add_hashes, format_digest, row_hash
from controlplane.core.values.identifiers import Epoch, NamespaceName, NodeId, Seq, SlotId, Term
from controlplane.errors import InvalidInputError, InvariantViolationError, LogContinuityError, NoRouteError


@dataclass(frozen=True)
class RoutingTable:
    """One epoch of the routing table; it never changes, and shares what did not change with the epoch before.

    Attributes:
        term: the leadership that committed it.
        epoch: its number.
        seq: of the decision that made it.
        log_id: the decision log that it belongs to.
        settings: how keys become slots.
        slots: one per slot, ascending; a slot without a row yet has no replicas.
        nodes: members by name; nodes that left are not there.
        bundles: by bundle id.
        namespaces: by name.
        digest: over all rows, 16 hexadecimal digits.
    """

    term: Term
    epoch: Epoch
    seq: Seq
    log_id: str
    settings: TableSettings
    slots: tuple[Slot, ...]
    nodes: Mapping[NodeId, NodeRow]
    bundles: Mapping[str, Bundle]
    namespaces: Mapping[NamespaceName, Namespace]
    digest: str

    def slot_for(self, key: bytes | str) -> Slot:
        """The slot that a key belongs to; bytes are taken as UTF-8."""
        text = key if isinstance(key, str) else key.decode("utf-8")
        return self.slots[slot_of(text, self.settings.slot_count, self.settings.hash_function)]

    def bundle_for(self, namespace: NamespaceName, key: bytes | str) -> Bundle:
        """The bundle of a namespace that a key belongs to; bytes are taken as UTF-8.

        Raises:
            NoRouteError: the namespace is not in this table.
        """
        ranges = self._ranges.get(namespace)
        if ranges is None:
            message = f"namespace {namespace!r} is not in the routing table of epoch {self.epoch}: create it first"
            raise NoRouteError(message)
        hashed = bundle_hash(key if isinstance(key, str) else key.decode("utf-8"))
        bundle = ranges[bisect_right(ranges, hashed, key=lambda each: each.lower) - 1]
        if not bundle.lower <= hashed < bundle.upper:
            message = f"no bundle of namespace {namespace!r} covers hash 0x{hashed:08x} in epoch {self.epoch}"
            raise InvariantViolationError(message)
        return bundle

    @cached_property
    def _ranges(self) -> dict[NamespaceName, list[Bundle]]:
        ranges: dict[NamespaceName, list[Bundle]] = {}
        for bundle in sorted(self.bundles.values(), key=lambda each: each.lower):
            ranges.setdefault(bundle.namespace, []).append(bundle)
        return ranges


class ReplicaStanding(Enum):
    """What a replica is worth when its reader has reached the end of the topic."""

    WHOLE = "whole"
    """The last table shown is the newest one."""
    EMPTY = "empty"
    """The topic holds nothing: no table was ever committed."""
    MUST_REBUILD = "must_rebuild"
    """Rows and marker do not fit: read from the start again, into a new replica."""


class TableReplica:
    """Folds the records of ``routing-table``, in order and in read_committed, into tables. Not thread-safe.

    Args:
        known: the last table that the reader showed before it began again. Older tables are then passed by in silence,
            and an end before ``known`` or another log is an error: the topic went back or was recreated.
    """

    def __init__(self, known: RoutingTable | None = None) -> None:
        self._known = known
        self._last_marker: EpochMarker | None = None
        self._shown: RoutingTable | None = None
        self._hashes: dict[str, int] = {}
        self._digest = 0
        self._settings: TableSettings | None = None
        self._slots: dict[SlotId, Slot] = {}
        self._nodes: dict[NodeId, NodeRow] = {}
        self._bundles: dict[str, Bundle] = {}
        self._namespaces: dict[NamespaceName, Namespace] = {}
        self._changed_kinds: set[str] = set()
        self._unconfirmed = False

    @property
    def row_hashes(self) -> Mapping[str, int]:
        """Each live row's share in the digest, by key (a live view)."""
        return MappingProxyType(self._hashes)

    @property
    def digest(self) -> str:
        """The digest of the rows folded so far, as a marker would carry it."""
        return format_digest(self._digest)

    @property
    def last_marker(self) -> EpochMarker | None:
        """The last marker that was folded, whether the rows fitted it or not."""
        return self._last_marker

    @property
    def table(self) -> RoutingTable | None:
        """The last table that was shown."""
        return self._shown

    def fold(self, key: bytes, value: bytes | None, row: Row | EpochMarker | None) -> RoutingTable | None:
        """Take the next record; the new table if it closed an epoch whose digest fits.

        Args:
            key: as it stands in the topic.
            value: as it stands in the topic; None removes the row.
            row: the decoded value; None for a tombstone.

        Raises:
            LogContinuityError: another log id, or a term, epoch or seq that falls: no leader that Kafka lets write
                does that.
            InvalidInputError: the key does not belong to the row.
            InvariantViolationError: the digest fits and yet the rows are no table.
        """
        name = _text(key)
        if (value is None) != (row is None) or (row is not None and key_of(row) != name):
            raise InvalidInputError("wrong_key", f"routing-table key {name!r} does not belong to {row!r:.120}")
        if isinstance(row, EpochMarker):
            return self._close_epoch(row)
        old_hash = self._hashes.pop(name, None)
        new_hash = 0
        if value is not None:
            new_hash = self._hashes[name] = row_hash(key, value)
        self._digest = add_hashes(self._digest, new_hash, old_hash or 0)
        self._unconfirmed = True
        if row is None:
            self._remove(name)
        else:
            self._put(row)
        return None

    def at_end(self) -> ReplicaStanding:
        """What the replica is worth now that its reader is at the end of the topic.

        Raises:
            LogContinuityError: the end comes before the table that the reader has shown already.
        """
        if self._unconfirmed:
            return ReplicaStanding.MUST_REBUILD
        known, last = self._known, self._last_marker
        if known is not None and (last is None or last.epoch < known.epoch):
            found = f"epoch {last.epoch}" if last else "nothing"
            message = (
                f"routing-table ends at {found}, but epoch {known.epoch} of log {known.log_id} was read before: "
                "the topic was recreated or truncated; restart this reader only if that was intended"
            )
            raise LogContinuityError(message)
        return ReplicaStanding.EMPTY if last is None else ReplicaStanding.WHOLE

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
                self._settings = row
        self._changed_kinds.add(type(row).__name__)

    def _remove(self, name: str) -> None:
        match name.split("/", 2):
            case [_, "slot", identifier]:
                self._slots.pop(int(identifier), None)
                self._changed_kinds.add(Slot.__name__)
            case [_, "node", identifier]:
                self._nodes.pop(identifier, None)
                self._changed_kinds.add(NodeRow.__name__)
            case [_, "bundle", identifier]:
                self._bundles.pop(identifier, None)
                self._changed_kinds.add(Bundle.__name__)
            case [_, "namespace", identifier]:
                self._namespaces.pop(identifier, None)
                self._changed_kinds.add(Namespace.__name__)
            case [_, "table", _]:
                self._settings = None
            case _:
                raise InvalidInputError("unknown_key", f"routing-table key {name!r} is of no known kind")

    def _close_epoch(self, marker: EpochMarker) -> RoutingTable | None:
        for earlier in (self._known, self._last_marker):
            if earlier is not None and earlier.log_id != marker.log_id:
                message = (
                    f"routing-table epoch {marker.epoch} belongs to log {marker.log_id}, this reader follows "
                    f"{earlier.log_id}: the decision log was recreated; restart this reader only if that was intended"
                )
                raise LogContinuityError(message)
        if self._last_marker is not None:
            _check_order(self._last_marker, marker)
        if self._known is not None and marker.epoch >= self._known.epoch:
            _check_order(self._known, marker)
        self._last_marker = marker
        fits = marker.row_count == len(self._hashes) and marker.digest == format_digest(self._digest)
        self._unconfirmed = not fits
        if not fits:
            return None
        if self._shown is not None and self._shown.epoch == marker.epoch:
            return None
        if self._known is not None and marker.epoch < self._known.epoch:
            return None
        self._shown = self._table(marker)
        return self._shown

    def _table(self, marker: EpochMarker) -> RoutingTable:
        before = self._shown
        settings = self._settings
        if settings is None:
            message = f"routing-table epoch {marker.epoch} fits its digest but has no settings row"
            raise InvariantViolationError(message)
        changed, self._changed_kinds = self._changed_kinds, set()
        keep = before if before is not None and before.settings == settings else None
        return RoutingTable(
            term=marker.term,
            epoch=marker.epoch,
            seq=marker.seq,
            log_id=marker.log_id,
            settings=settings,
            slots=keep.slots if keep and Slot.__name__ not in changed else self._all_slots(settings.slot_count),
            nodes=keep.nodes if keep and NodeRow.__name__ not in changed else dict(sorted(self._nodes.items())),
            bundles=keep.bundles if keep and Bundle.__name__ not in changed else dict(sorted(self._bundles.items())),
            namespaces=(
                keep.namespaces
                if keep and Namespace.__name__ not in changed
                else dict(sorted(self._namespaces.items()))
            ),
            digest=marker.digest,
        )

    def _all_slots(self, count: int) -> tuple[Slot, ...]:
        beyond = [slot_id for slot_id in self._slots if not 0 <= slot_id < count]
        if beyond:
            message = f"routing-table has a row for slot {min(beyond)}, but only {count} slots"
            raise InvariantViolationError(message)
        return tuple(self._slots.get(slot_id) or Slot(slot_id, None, (), Epoch(0)) for slot_id in range(count))


def _check_order(before: EpochMarker | RoutingTable, after: EpochMarker) -> None:
    for word, earlier, later in (
        ("term", before.term, after.term),
        ("epoch", before.epoch, after.epoch),
        ("seq", before.seq, after.seq),
    ):
        if later < earlier:
            message = (
                f"routing-table marker of epoch {after.epoch}, term {after.term}, seq {after.seq} follows epoch "
                f"{before.epoch}, term {before.term}, seq {before.seq}: the {word} fell, so no leader wrote it"
            )
            raise LogContinuityError(message)
    if after.epoch == before.epoch and after.digest != before.digest:
        message = f"routing-table epoch {after.epoch} has two digests, {before.digest} and {after.digest}"
        raise LogContinuityError(message)


def _text(key: bytes) -> str:
    try:
        return key.decode("utf-8")
    except UnicodeDecodeError:
        raise InvalidInputError("wrong_key", f"routing-table key {key!r:.120} is not UTF-8") from None
