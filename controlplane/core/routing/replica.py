"""A reader's copy of the routing table: rows in the order of the topic become whole tables, one an epoch.

The topic is compacted, so the rows that a reader meets on its way need not be the rows of any one epoch. The
marker's digest decides: where it fits, the rows are a table that was committed, and it is shown; where it does not,
compaction may have taken older rows away, and the reader reads on. Only at the end of the topic a mismatch means that
something is wrong. Either a tombstone is missing that is no longer kept: reading from the start again mends that. Or a
foreign record stands where a row was: the last table stays, and the leader writes the table again.

Records that cannot be read count in the digest like all others. Where the digest fits all the same, a leader of a newer
version wrote them: an unknown kind of row is passed by, and a key of a known kind has no route.
"""

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from itertools import accumulate

from controlplane.core.bundles.bundle import Bundle, Namespace
from controlplane.core.bundles.rows import BUNDLE_ROWS, NAMESPACE_ROWS
from controlplane.core.cluster.rows import TableSettings
from controlplane.core.membership.rows import NODE_ROWS, NodeRow
from controlplane.core.routing.decoded_rows import DecodedRows
from controlplane.core.routing.hashing import bundle_hash, slot_of
from controlplane.core.routing.rows import (
    MARKER_KEY,
    EpochMarker,
    TableRow,
    UnreadableRow,
    bundle_key,
    key_text,
    namespace_key,
    slot_key,
)
from controlplane.core.routing.topic_image import MarkerOutcome, TopicImage, check_order
from controlplane.core.slots.rows import SLOT_ROWS
from controlplane.core.slots.table import Slot
from controlplane.core.values.identifiers import Epoch, NamespaceName, NodeId, Seq, Term
from controlplane.errors import InvariantViolationError, LogContinuityError, NoRouteError


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
        unreadable: keys of known kinds whose rows a newer version wrote, with the reason: looking them up is an error.
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
    unreadable: Mapping[str, str] = field(default_factory=dict)

    def slot_for(self, key: bytes | str) -> Slot:
        """The slot that a key belongs to; bytes are taken as UTF-8.

        Raises:
            NoRouteError: a newer version wrote the slot's row.
        """
        text = key if isinstance(key, str) else key.decode("utf-8")
        slot = self.slots[slot_of(text, self.settings.slot_count, self.settings.hash_function)]
        self.require_readable(slot_key(slot.slot_id))
        return slot

    def bundle_for(self, namespace: NamespaceName, key: bytes | str) -> Bundle:
        """The bundle of a namespace that a key belongs to; bytes are taken as UTF-8.

        Raises:
            NoRouteError: the namespace is not in this table, or a newer version wrote the bundle's row.
            InvariantViolationError: no bundle holds the key, or several do.
        """
        ranges = self._ranges.get(namespace)
        if ranges is None:
            self.require_readable(namespace_key(namespace))
            self._require_readable_bundles(namespace)
            message = f"namespace {namespace!r} is not in the routing table of epoch {self.epoch}: create it first"
            raise NoRouteError(message)
        hashed = bundle_hash(key if isinstance(key, str) else key.decode("utf-8"))
        place = bisect_right(ranges, hashed, key=lambda each: each.lower) - 1
        bundle = ranges[place]
        if hashed < self._reaches[namespace][place]:
            message = f"several bundles of namespace {namespace!r} cover hash 0x{hashed:08x} in epoch {self.epoch}"
            raise InvariantViolationError(message)
        if not bundle.lower <= hashed < bundle.upper:
            self._require_readable_bundles(namespace)
            message = f"no bundle of namespace {namespace!r} covers hash 0x{hashed:08x} in epoch {self.epoch}"
            raise InvariantViolationError(message)
        return bundle

    def require_readable(self, name: str) -> None:
        """Refuse a row that this version cannot read.

        Args:
            name: the row's key.

        Raises:
            NoRouteError: a newer version wrote it.
        """
        problem = self.unreadable.get(name)
        if problem is not None:
            message = f"row {name!r} of epoch {self.epoch} was written by a newer version: upgrade this one ({problem})"
            raise NoRouteError(message)

    def _require_readable_bundles(self, namespace: NamespaceName) -> None:
        for name in self.unreadable:
            if name.startswith(bundle_key(f"{namespace}/")):
                self.require_readable(name)

    @cached_property
    def _ranges(self) -> dict[NamespaceName, list[Bundle]]:
        ranges: dict[NamespaceName, list[Bundle]] = {}
        for bundle in sorted(self.bundles.values(), key=lambda each: each.lower):
            ranges.setdefault(bundle.namespace, []).append(bundle)
        return ranges

    @cached_property
    def _reaches(self) -> dict[NamespaceName, list[int]]:
        """How far the bundles before each one reach: not beyond where it begins, or two of them hold the same hash."""
        return {
            name: [0, *accumulate((bundle.upper for bundle in ranges[:-1]), max)]
            for name, ranges in self._ranges.items()
        }


class ReplicaStanding(Enum):
    """What a replica is worth when its reader has reached the end of the topic."""

    WHOLE = "whole"
    """The last table shown is the newest one."""
    EMPTY = "empty"
    """The topic holds nothing: no table was ever committed."""
    MUST_REBUILD = "must_rebuild"
    """Rows and marker do not fit: reading from the start again, into a new replica, may mend that."""
    UNCONFIRMED = "unconfirmed"
    """Reading again cannot help: no marker confirms the rows, or this version cannot read the table's settings."""


class TableReplica:
    """Folds the records of ``routing-table``, in order and in read_committed, into tables. Not thread-safe.

    Args:
        known: the last table that the reader showed before it began again. Older tables are then passed by in silence,
            and an end before ``known`` or another log's whole table is an error: the topic went back or was recreated.
        log_id: the decision log whose table is wanted, where the reader was told; empty: that of ``known``, or of the
            first table that the topic holds.
    """

    def __init__(self, known: RoutingTable | None = None, log_id: str = "") -> None:
        self._known = known
        self._image = TopicImage(log_id or (known.log_id if known is not None else ""))
        self._shown: RoutingTable | None = None
        self._rows = DecodedRows()

    @property
    def row_hashes(self) -> Mapping[str, int]:
        """Each live row's share in the digest, by key (a live view)."""
        return self._image.row_hashes

    @property
    def digest(self) -> str:
        """The digest of the rows folded so far, as a marker would carry it."""
        return self._image.digest

    @property
    def log_id(self) -> str:
        """The decision log whose table is followed; empty before a marker has confirmed rows."""
        return self._image.log_id

    @property
    def last_marker(self) -> EpochMarker | None:
        """The last marker of this log that was folded, whether the rows fitted it or not."""
        return self._image.last_marker

    @property
    def table(self) -> RoutingTable | None:
        """The last table that was shown."""
        return self._shown

    def fold(
        self, key: bytes, value: bytes | None, row: TableRow | EpochMarker | UnreadableRow | None
    ) -> RoutingTable | None:
        """Take the next record; the new table if it closed an epoch whose digest fits.

        Args:
            key: as it stands in the topic.
            value: as it stands in the topic; None removes the row.
            row: the decoded value; None for a tombstone.

        Raises:
            LogContinuityError: a term, epoch or seq of this log falls: no leader that Kafka lets write does that.
            InvariantViolationError: the digest fits and yet the rows are no table.
        """
        name = key_text(key)
        if isinstance(row, EpochMarker) and name == MARKER_KEY:
            return self._close_epoch(row)
        if name == MARKER_KEY:
            self._image.overwrite_marker()
            return None
        self._image.put(key, value)
        if isinstance(row, EpochMarker):
            self._rows.put(name, UnreadableRow("an epoch marker does not belong under this key"))
        else:
            self._rows.put(name, row)
        return None

    def at_end(self) -> ReplicaStanding:
        """What the replica is worth now that its reader is at the end of the topic.

        Raises:
            LogContinuityError: the end comes before the table that the reader has shown already, or the topic holds
                another log's table.
        """
        image, last = self._image, self._image.last_marker
        known = self._known
        if known is not None and (last is None or last.epoch < known.epoch):
            self._refuse_another_topic(known)
        if last is None:
            self._refuse_another_log()
            is_empty = not image.row_hashes and not image.marker_is_overwritten
            return ReplicaStanding.EMPTY if is_empty else ReplicaStanding.UNCONFIRMED
        if not image.is_confirmed or image.may_lack_marker:
            return ReplicaStanding.MUST_REBUILD
        if self._shown_epoch < last.epoch:
            return ReplicaStanding.UNCONFIRMED
        return ReplicaStanding.WHOLE

    @property
    def _shown_epoch(self) -> Epoch:
        tables = [table.epoch for table in (self._known, self._shown) if table is not None]
        return max(tables, default=Epoch(0))

    def _refuse_another_topic(self, known: RoutingTable) -> None:
        """Refuse a topic in which the known table does not stand, unless foreign records may hide it."""
        image, last = self._image, self._image.last_marker
        self._refuse_another_log()
        if (image.row_hashes or image.marker_is_overwritten) and not image.is_confirmed:
            return
        found = f"epoch {last.epoch}" if last else "nothing"
        message = (
            f"routing-table ends at {found}, but epoch {known.epoch} of log {known.log_id} was read before: "
            "the topic was recreated or truncated; restart this reader only if that was intended"
        )
        raise LogContinuityError(message)

    def _refuse_another_log(self) -> None:
        """Refuse a topic that ends with the whole table of another log than the one that is followed."""
        other = self._image.other_table
        if other is not None:
            message = (
                f"routing-table ends with epoch {other.epoch} of log {other.log_id}, and this reader follows "
                f"{self._image.log_id}: the decision log was recreated; restart this reader only if that was intended"
            )
            raise LogContinuityError(message)

    def _close_epoch(self, marker: EpochMarker) -> RoutingTable | None:
        known = self._known
        outcome = self._image.mark(marker)
        if outcome is MarkerOutcome.FOREIGN:
            return None
        if known is not None and marker.epoch >= known.epoch:
            check_order(known, marker)
        if outcome is MarkerOutcome.DIFFERS:
            return None
        if self._shown is not None and self._shown.epoch == marker.epoch:
            return None
        if known is not None and marker.epoch < known.epoch:
            return None
        table = self._table(marker)
        if table is not None:
            self._shown = table
        return table

    def _table(self, marker: EpochMarker) -> RoutingTable | None:
        """The rows as a table; None where this version cannot read the settings, without which there is no route."""
        before, rows, settings = self._shown, self._rows, self._rows.settings
        if settings is None:
            return None
        changed = rows.take_changed_kinds()
        keep = before if before is not None and before.settings == settings else None
        return RoutingTable(
            term=marker.term,
            epoch=marker.epoch,
            seq=marker.seq,
            log_id=marker.log_id,
            settings=settings,
            slots=keep.slots if keep and SLOT_ROWS not in changed else rows.slots(settings.slot_count),
            nodes=keep.nodes if keep and NODE_ROWS not in changed else rows.of(NODE_ROWS),
            bundles=keep.bundles if keep and BUNDLE_ROWS not in changed else rows.of(BUNDLE_ROWS),
            namespaces=keep.namespaces if keep and NAMESPACE_ROWS not in changed else rows.of(NAMESPACE_ROWS),
            digest=marker.digest,
            unreadable=dict(rows.unreadable),
        )
