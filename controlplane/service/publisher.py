"""Turns a sealed decision into the records of one transaction: the decision, the changed rows, the epoch marker."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple, Self

from controlplane.codec.decisions import check_schema_level, decision_key, encode_decision
from controlplane.codec.table import encode_row
from controlplane.config import DECISIONS, ROUTING_TABLE
from controlplane.core.log.decision import Decision
from controlplane.core.log.draft import SealedDecision
from controlplane.core.log.row_changes import rows_of
from controlplane.core.log.state import State
from controlplane.core.routing.row_hashes import RowHashes
from controlplane.core.routing.rows import MARKER_KEY, EpochMarker, TableRow, key_bytes
from controlplane.core.routing.topic_image import TopicImage
from controlplane.core.values.digests import format_digest, row_hash
from controlplane.ports import OutgoingRecord

_MOST_FOREIGN_KEYS: Final = 10_000
_MOST_FOREIGN_BYTES: Final = 4_000_000
"""Limits of the foreign keys, in number and in bytes, that one transaction removes. A transaction that exceeds its time
limit is aborted, and the next one would contain the same keys."""


class Publication(NamedTuple):
    """The records of one decision, the row hashes after their commit, and whether the records are the whole table."""

    records: tuple[OutgoingRecord, ...]
    row_hashes: RowHashes
    is_whole: bool


class TablePublisher:
    """The hash of every row in the topic, so that the cost of a digest is that of the change, not of the table."""

    def __init__(self, row_hashes: Mapping[str, int]) -> None:
        """Start from the rows that the topic holds now."""
        self._row_hashes = RowHashes(row_hashes)

    @classmethod
    def of(cls, state: State) -> Self:
        """Start from the rows of a state, regardless of the topic: all other rows in it are foreign."""
        return cls(_hashes_of(state))

    def shows(self, state: State) -> bool:
        """Whether the topic holds exactly the rows of this state, in this code's encoding."""
        return _hashes_of(state) == self._row_hashes

    def can_remove_all_but(self, state: State) -> bool:
        """Whether one transaction can remove every row of the topic that the state does not have."""
        return can_be_removed_at_once(sorted(self._row_hashes.keys() - rows_of(state).keys()))

    def wrote_all_of(self, image: TopicImage) -> bool:
        """Whether the topic holds exactly the rows that were committed."""
        return image.digest == format_digest(self._row_hashes.digest) and len(image.row_hashes) == len(self._row_hashes)

    def differing_keys(self, image: TopicImage) -> list[str]:
        """The keys whose rows in the topic differ from what was committed, sorted. Takes time linear in the table."""
        keys = self._row_hashes.keys() | image.row_hashes.keys()
        return sorted(key for key in keys if self._row_hashes.get(key) != image.row_hashes.get(key))

    def foreign_keys(self, image: TopicImage) -> list[str]:
        """The keys in the topic under which nothing was committed, sorted; its cost is that of the table."""
        return sorted(image.row_hashes.keys() - self._row_hashes.keys())

    def whole_table(self, state: State, foreign: Iterable[str] = ()) -> dict[str, TableRow | None]:
        """Every row of the state, and tombstones for rows of the topic that the state does not have.

        At most as many foreign rows are removed as one transaction may remove. If more are left, the topic does not fit
        the marker, whose digest counts the rows of the state alone, until later transactions have removed the rest.

        Args:
            state: of the table.
            foreign: keys in the topic that no leader wrote, in addition to those that are known.
        """
        rows = rows_of(state)
        others = sorted(set(foreign) - self._row_hashes.keys() - rows.keys())
        removed = sorted({*self._row_hashes, *_in_one_transaction(others)})
        return dict.fromkeys(removed) | rows

    def publication(
        self, sealed: SealedDecision, rows: Mapping[str, TableRow | None], *, is_whole: bool = False
    ) -> Publication:
        """The transaction of a decision with these changed rows; without rows it has no marker.

        Raises:
            InvariantViolationError: a record would need a version above the decision's feature level.
        """
        decision = sealed.decision
        check_schema_level(decision)
        key = decision_key(decision.seq)
        records = [OutgoingRecord(DECISIONS, key, part, 0) for part in encode_decision(decision)]
        level = decision.feature_level
        values = {name: None if row is None else encode_row(row, level) for name, row in rows.items()}
        records += [OutgoingRecord(ROUTING_TABLE, key_bytes(name), value, 0) for name, value in values.items()]
        gone = [name for name, value in values.items() if value is None and name in self._row_hashes]
        written = ((name, row_hash(key_bytes(name), value)) for name, value in values.items() if value is not None)
        hashes = self._row_hashes.drop(gone).put(written)
        if rows:
            marker = encode_row(_marker(decision, hashes), level)
            records.append(OutgoingRecord(ROUTING_TABLE, MARKER_KEY.encode(), marker, 0))
        return Publication(tuple(records), hashes, is_whole)

    def committed(self, publication: Publication) -> None:
        """Take note that the publication was committed."""
        self._row_hashes = publication.row_hashes


def can_be_removed_at_once(foreign: Sequence[str]) -> bool:
    """Whether one transaction can remove all of these rows."""
    return len(_in_one_transaction(foreign)) == len(foreign)


def _in_one_transaction(foreign: Sequence[str]) -> Sequence[str]:
    """The longest prefix of these keys that one transaction may remove; at least one key."""
    size_bytes = 0
    for count, name in enumerate(foreign):
        size_bytes += len(key_bytes(name))
        if count and (count == _MOST_FOREIGN_KEYS or size_bytes > _MOST_FOREIGN_BYTES):
            return foreign[:count]
    return foreign


def _hashes_of(state: State) -> dict[str, int]:
    level = state.cluster.feature_level
    return {key: row_hash(key.encode(), encode_row(row, level)) for key, row in rows_of(state).items()}


def _marker(decision: Decision, row_hashes: RowHashes) -> EpochMarker:
    causes = ", ".join(f"{cause.kind.value} {cause.subject}" for cause in decision.causes[:5])
    more = f" and {len(decision.causes) - 5} more" if len(decision.causes) > 5 else ""  # noqa: PLR2004
    return EpochMarker(
        term=decision.term,
        epoch=decision.epoch,
        seq=decision.seq,
        log_id=decision.log_id,
        row_count=len(row_hashes),
        cause=causes + more,
        digest=format_digest(row_hashes.digest),
    )
