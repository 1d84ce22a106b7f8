"""What the records of ``routing-table`` add up to as bytes: the live rows' shares in the digest, and the last marker.

Nothing is decoded here but the epoch marker. So a leader can compare the topic with what it has committed at the cost
of a hash a record, and every reader counts rows that it cannot read like all others.
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
"""What to do about a marker of the cluster's own log that no leader wrote."""


class _Numbered(Protocol):
    """A marker, or a table that one confirmed."""

    @property
    def term(self) -> Term: ...
    @property
    def epoch(self) -> Epoch: ...
    @property
    def seq(self) -> Seq: ...
    @property
    def digest(self) -> str: ...


class MarkerOutcome(Enum):
    """What an epoch marker means at its place in the topic."""

    CONFIRMS = "confirms"
    """The live rows are the table that this marker closes."""
    DIFFERS = "differs"
    """They are not: compaction took older rows away, or a row is foreign."""
    FOREIGN = "foreign"
    """It belongs to another decision log than the one that is followed."""


class TopicImage:
    """Folds keys and values, in order and in read_committed. Not thread-safe.

    The first marker that confirms rows says which decision log is followed, unless the caller knows it. From then on
    markers of other logs are foreign.

    Args:
        log_id: the decision log whose table is followed; empty if it is not known yet.

    Attributes:
        log_id: as above, once it is known.
        last_marker: the last marker of the log that is followed; before that log is known, the last one of any.
        is_confirmed: whether the rows at ``last_marker`` were the ones that it counts.
        other_table: the marker of another log, if the rows as they are now are exactly the ones that it counts.
    """

    def __init__(self, log_id: str = "") -> None:
        self.log_id = log_id
        self.last_marker: EpochMarker | None = None
        self.is_confirmed = False
        self.other_table: EpochMarker | None = None
        # A plain dict, not RowHashes: nothing keeps an older image, and reading a record would take half as long again.
        self._hashes: dict[str, int] = {}
        self._digest = 0
        self._has_rows_since_marker = False
        self._marker_is_overwritten = False

    @property
    def row_hashes(self) -> Mapping[str, int]:
        """Each live row's share in the digest, by key as :func:`key_text` writes it (a live view)."""
        return MappingProxyType(self._hashes)

    @property
    def digest(self) -> str:
        """The digest of the live rows, as a marker would carry it."""
        return format_digest(self._digest)

    @property
    def marker_is_overwritten(self) -> bool:
        """Whether the marker's key was written by something else since ``last_marker``."""
        return self._marker_is_overwritten

    @property
    def may_lack_marker(self) -> bool:
        """Whether rows came after ``last_marker`` whose own marker can have been overwritten and compacted away.

        Rows that come after the last marker while its key was left alone are no leader's: a leader writes rows and
        marker in one transaction.
        """
        return self._has_rows_since_marker and self._marker_is_overwritten

    def put(self, key: bytes, value: bytes | None) -> None:
        """Take a record; None removes what the key held. The marker's key is no row: see :meth:`overwrite_marker`."""
        name = key_text(key)
        removed = self._hashes.pop(name, 0)
        added = 0
        if value is not None:
            added = self._hashes[name] = row_hash(key, value)
        self._digest = add_hashes(self._digest, added, removed)
        self._has_rows_since_marker = True
        self.other_table = None

    def overwrite_marker(self) -> None:
        """Take a record under the marker's key that is no marker."""
        self._marker_is_overwritten = True

    def mark(self, marker: EpochMarker) -> MarkerOutcome:
        """Take a marker.

        Raises:
            LogContinuityError: the term, epoch or seq of the log that is followed falls, or an epoch has two digests.
        """
        # A table has its settings at least: a marker that does not count them confirms nothing.
        is_counted = marker.row_count == len(self._hashes) and marker.digest == self.digest
        confirms = is_counted and SETTINGS_KEY in self._hashes
        if self.log_id not in {"", marker.log_id}:
            self._marker_is_overwritten = True
            self.other_table = marker if confirms else None
            return MarkerOutcome.FOREIGN
        if self.last_marker is not None and self.last_marker.log_id == marker.log_id:
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
    """Refuse a marker that cannot follow another one of the same log.

    Raises:
        LogContinuityError: its term, epoch or seq falls, or its epoch has another digest.
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
