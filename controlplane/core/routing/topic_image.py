"""The contents of ``routing-table`` as bytes: the shares of the live rows in the digest, and the last marker.

Only the epoch marker is decoded. So a leader compares the topic with its committed table at the cost of one hash per
record, and every reader counts unreadable rows like all others.
"""

from collections.abc import Mapping
from enum import Enum
from types import MappingProxyType
from typing import Final, Protocol

from controlplane.core.routing.rows import SETTINGS_KEY, EpochMarker, key_text
from controlplane.core.values.digests import add_hashes, format_digest, row_hash
from controlplane.core.values.identifiers import Epoch, Seq, Term
from controlplane.errors import LogContinuityError

REMEDY_FOR_FORGED_MARKER: Final = (
    "let nothing but controllers write to routing-table ('controlplane acls show'), stop the controllers, delete the "
    "topic and create it again ('controlplane topics apply'), then start controllers and readers: the next leader "
    "writes the whole table"
)
"""What an operator has to do if a marker of the cluster's own log was forged."""


class _Numbered(Protocol):
    """A marker, or a table that a marker confirmed."""

    @property
    def term(self) -> Term: ...
    @property
    def epoch(self) -> Epoch: ...
    @property
    def seq(self) -> Seq: ...
    @property
    def digest(self) -> str: ...


class MarkerOutcome(Enum):
    """The meaning of an epoch marker at its place in the topic."""

    CONFIRMS = "confirms"
    """The live rows are the table that this marker closes."""
    DIFFERS = "differs"
    """The live rows are another table: compaction removed older rows, or a record is foreign."""
    FOREIGN = "foreign"
    """The marker belongs to another decision log than the one that is followed."""


class TopicImage:
    """Folds the records of ``routing-table``, in order and in read_committed. Not thread-safe.

    Unless the caller names a decision log, the first marker that confirms rows determines the log that is followed.
    From then on markers of other logs are foreign. Before, any marker may be: they are not compared with each other.

    Args:
        log_id: id of the decision log that is followed; empty if it is not known yet.

    Attributes:
        log_id: id of the decision log that is followed; empty until it is known.
        last_marker: the last marker of that log; until the log is known, the last marker of any log.
        is_confirmed: whether the rows at ``last_marker`` fitted it.
        other_table: the last marker of another log, if the rows fitted it and did not change since.
    """

    def __init__(self, log_id: str = "") -> None:
        self.log_id = log_id
        self.last_marker: EpochMarker | None = None
        self.is_confirmed = False
        self.other_table: EpochMarker | None = None
        # A dict, not RowHashes: older images are not needed, and RowHashes would make reading 50 percent slower.
        self._hashes: dict[str, int] = {}
        self._digest = 0
        self._has_rows_since_marker = False
        self._marker_is_overwritten = False

    @property
    def row_hashes(self) -> Mapping[str, int]:
        """The share of each live row in the digest, by key as text of :func:`key_text` (a live view)."""
        return MappingProxyType(self._hashes)

    @property
    def digest(self) -> str:
        """The digest of the live rows, as a marker would carry it."""
        return format_digest(self._digest)

    @property
    def marker_is_overwritten(self) -> bool:
        """Whether the marker's key received another record after ``last_marker``."""
        return self._marker_is_overwritten

    @property
    def may_lack_marker(self) -> bool:
        """Whether the marker of rows after ``last_marker`` may have been overwritten and compacted away.

        If rows follow the last marker and its key received no other record, then no leader wrote these rows: a leader
        writes rows and marker in one transaction.
        """
        return self._has_rows_since_marker and self._marker_is_overwritten

    def put(self, key: bytes, value: bytes | None) -> None:
        """Fold a row, or a tombstone (None). For the marker's key see :meth:`mark` and :meth:`overwrite_marker`."""
        name = key_text(key)
        removed = self._hashes.pop(name, 0)
        added = 0
        if value is not None:
            added = self._hashes[name] = row_hash(key, value)
        self._digest = add_hashes(self._digest, added, removed)
        self._has_rows_since_marker = True
        self.other_table = None

    def overwrite_marker(self) -> None:
        """Fold a record under the marker's key that is not a marker."""
        self._marker_is_overwritten = True

    def mark(self, marker: EpochMarker) -> MarkerOutcome:
        """Fold a marker.

        Raises:
            LogContinuityError: term, epoch or seq of the followed log fall, or an epoch has two digests.
        """
        # Every table has a settings row, so that a marker cannot confirm rows without one.
        is_counted = marker.row_count == len(self._hashes) and marker.digest == self.digest
        confirms = is_counted and SETTINGS_KEY in self._hashes
        if self.log_id not in {"", marker.log_id}:
            self._marker_is_overwritten = True
            self.other_table = marker if confirms else None
            return MarkerOutcome.FOREIGN
        if self.log_id and self.last_marker is not None:
            check_order(self.last_marker, marker)
        self.last_marker = marker
        self.is_confirmed = confirms
        self.other_table = None
        self._has_rows_since_marker = self._marker_is_overwritten = False
        if not confirms:
            return MarkerOutcome.DIFFERS
        self.log_id = marker.log_id
        return MarkerOutcome.CONFIRMS


def check_order(before: _Numbered, after: EpochMarker) -> None:
    """Refuse a marker that cannot follow another marker of the same log.

    Raises:
        LogContinuityError: term, epoch or seq fall, or the epoch is the same and the digest is not.
    """
    for word, earlier, later in (
        ("term", before.term, after.term),
        ("epoch", before.epoch, after.epoch),
        ("seq", before.seq, after.seq),
    ):
        if later < earlier:
            message = (
                f"routing-table marker of epoch {after.epoch}, term {after.term}, seq {after.seq} follows epoch "
                f"{before.epoch}, term {before.term}, seq {before.seq}: the {word} fell, so no leader wrote it; "
                f"{REMEDY_FOR_FORGED_MARKER}"
            )
            raise LogContinuityError(message)
    if after.epoch == before.epoch and after.digest != before.digest:
        message = (
            f"routing-table epoch {after.epoch} has two digests, {before.digest} and {after.digest}; "
            f"{REMEDY_FOR_FORGED_MARKER}"
        )
        raise LogContinuityError(message)
