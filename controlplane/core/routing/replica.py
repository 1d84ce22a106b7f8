"""A reader's copy of the routing table. It turns the records of the topic into whole tables, one per epoch.

The topic is compacted, so the rows read so far need not be those of one epoch. The digest of each marker decides. If it
fits, the rows are a committed table, and the table is shown. If not, compaction may have removed older rows, and the
reader continues. Only at the end of the topic a mismatch is an error. There are two causes:

- The reader missed a tombstone that is no longer kept. Reading the topic again from its start corrects that.
- A foreign record has replaced a row. The last table stays in use until the leader repairs the topic.

Unreadable records count in the digest like all others. If the digest fits, a leader of a newer version wrote them. Rows
of unknown kinds are then ignored, and keys of known kinds are unroutable.
"""

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from itertools import accumulate

from controlplane.core.bundles.bundle import Bundle, Namespace
from controlplane.core.bundles.ranges import bundle_hash
from controlplane.core.bundles.rows import BUNDLE_ROWS, NAMESPACE_ROWS
from controlplane.core.cluster.rows import TableSettings
from controlplane.core.membership.rows import NODE_ROWS, NodeRow
from controlplane.core.routing.decoded_rows import DecodedRows
from controlplane.core.routing.hashing import slot_of
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
from controlplane.errors import InvariantViolationError, LogContinuityError, NoRouteError, UnroutableError


@dataclass(frozen=True)
class RoutingTable:
    """The routing table of one epoch. It is immutable, and shares unchanged parts with the previous epoch.

    Attributes:
        term: term of the leader that committed it.
        epoch: its epoch.
        seq: seq of the decision that committed it.
        log_id: id of its decision log.
        settings: the settings from which keys get their slots.
        slots: one per slot, ascending; a slot without a row has no replicas.
        nodes: nodes by name, without those that left.
        bundles: bundles by bundle id.
        namespaces: namespaces by name.
        digest: digest of all rows, 16 hexadecimal digits.
        unreadable: keys of known kinds whose rows a newer version wrote, with the reason. They are unroutable.
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
        """The slot of a key; bytes are decoded as UTF-8.

        Raises:
            UnroutableError: a newer version wrote the slot's row.
        """
        text = key if isinstance(key, str) else key.decode("utf-8")
        slot = self.slots[slot_of(text, self.settings.slot_count, self.settings.hash_function)]
        self.require_readable(slot_key(slot.slot_id))
        return slot

    def bundle_for(self, namespace: NamespaceName, key: bytes | str) -> Bundle:
        """The bundle of a namespace that covers a key; bytes are decoded as UTF-8.

        Raises:
            NoRouteError: the namespace is not in this table.
            UnroutableError: a newer version wrote the bundle's row.
            InvariantViolationError: no bundle covers the key, or several do.
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
        if not bundle.lower <= hashed < bundle.end:
            self._require_readable_bundles(namespace)
            message = f"no bundle of namespace {namespace!r} covers hash 0x{hashed:08x} in epoch {self.epoch}"
            raise InvariantViolationError(message)
        return bundle

    def require_readable(self, name: str) -> None:
        """Refuse a row that this version cannot read.

        Args:
            name: the row's key.

        Raises:
            UnroutableError: a newer version wrote it.
        """
        problem = self.unreadable.get(name)
        if problem is not None:
            message = f"row {name!r} of epoch {self.epoch} was written by a newer version: upgrade this one ({problem})"
            raise UnroutableError(message)

    def _require_readable_bundles(self, namespace: NamespaceName) -> None:
        for name in self.unreadable:
            if name.rpartition("/")[0] == bundle_key(namespace):
                self.require_readable(name)

    @cached_property
    def _ranges(self) -> dict[NamespaceName, list[Bundle]]:
        ranges: dict[NamespaceName, list[Bundle]] = {}
        for bundle in sorted(self.bundles.values(), key=lambda each: each.lower):
            ranges.setdefault(bundle.namespace, []).append(bundle)
        return ranges

    @cached_property
    def _reaches(self) -> dict[NamespaceName, list[int]]:
        """The greatest end of the bundles before each bundle: its hashes below that are covered twice."""
        return {
            name: [0, *accumulate((bundle.end for bundle in ranges[:-1]), max)] for name, ranges in self._ranges.items()
        }


class ReplicaStanding(Enum):
    """The state of a reader's copy at the end of the topic."""

    WHOLE = "whole"
    """The last table shown is the newest one."""
    EMPTY = "empty"
    """The topic is empty: no table was ever committed."""
    MUST_REBUILD = "must_rebuild"
    """Rows and marker do not fit. Reading again from the start, into a new copy, may correct that."""
    UNCONFIRMED = "unconfirmed"
    """No marker confirms the rows, or this version cannot read the table's settings. Reading again does not help."""


class TableReplica:
    """Folds the records of ``routing-table``, in order and in read_committed, into tables. Not thread-safe.

    Args:
        known: the table in use, if the reader begins again. Older tables are then not shown. A topic that ends
            before ``known``, or with the whole table of another log, is an error: it was truncated or recreated.
        log_id: id of the decision log whose table is followed. If empty, that of ``known``, or of the first table in
            the topic.
    """

    def __init__(self, known: RoutingTable | None = None, log_id: str = "") -> None:
        self._known = known
        self._image = TopicImage(log_id or (known.log_id if known is not None else ""))
        self._shown: RoutingTable | None = None
        self._rows = DecodedRows()

    @property
    def row_hashes(self) -> Mapping[str, int]:
        """The share of each live row in the digest, by key (a live view)."""
        return self._image.row_hashes

    @property
    def digest(self) -> str:
        """The digest of the rows folded so far, as a marker would carry it."""
        return self._image.digest

    @property
    def log_id(self) -> str:
        """The id of the decision log that is followed; empty before a marker has confirmed rows."""
        return self._image.log_id

    @property
    def last_marker(self) -> EpochMarker | None:
        """See :attr:`controlplane.core.routing.topic_image.TopicImage.last_marker`."""
        return self._image.last_marker

    @property
    def table(self) -> RoutingTable | None:
        """The last table that was shown."""
        return self._shown

    def fold(
        self, key: bytes, value: bytes | None, row: TableRow | EpochMarker | UnreadableRow | None
    ) -> RoutingTable | None:
        """Fold the next record. Returns the new table if the record closes an epoch whose digest fits, else None.

        Args:
            key: key of the record.
            value: value of the record; None for a tombstone, which removes the row.
            row: the decoded value; None for a tombstone.

        Raises:
            LogContinuityError: term, epoch or seq of this log fall, which no leader writes.
            InvariantViolationError: the digest fits, but the rows are not a valid table.
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
        """The state of the copy, called when its reader is at the end of the topic.

        Raises:
            LogContinuityError: the topic ends before the table in use, or with another log's table.
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
        """Refuse a topic that ends before the known table, unless foreign records may hide that table."""
        image, last = self._image, self._image.last_marker
        self._refuse_another_log()
        if (image.row_hashes or image.marker_is_overwritten) and not image.is_confirmed:
            return
        found = f"epoch {last.epoch}" if last else "nothing"
        message = (
            f"routing-table ends at {found}, but epoch {known.epoch} of log {known.log_id} was read before: "
            "the brokers were restored from an older copy, or the topic was recreated or truncated; restart this "
            "reader only if that was intended (docs/how-to/survive-silence-and-failures.md has the steps)"
        )
        raise LogContinuityError(message)

    def _refuse_another_log(self) -> None:
        """Refuse a topic that ends with the whole table of another log."""
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
        """The rows as a table; None if this version cannot read the settings, without which nothing is routable."""
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
