"""Turns a sealed decision into the records of one transaction: the decision, the changed rows, the epoch marker."""

from collections.abc import Mapping
from typing import NamedTuple

from controlplane.codec.decisions import decision_key, encode_decision
from controlplane.codec.table import encode_row
from controlplane.config import DECISIONS, ROUTING_TABLE
from controlplane.core.log.decision import Decision
from controlplane.core.log.draft import SealedDecision
from controlplane.core.log.row_changes import rows_of
from controlplane.core.log.state import State
from controlplane.core.routing.rows import MARKER_KEY, EpochMarker, Row, add_hashes, format_digest, row_hash
from controlplane.ports import OutgoingRecord


class Publication(NamedTuple):
    """The records of one decision, and what the table's hashes are once they are committed."""

    records: tuple[OutgoingRecord, ...]
    row_hashes: Mapping[str, int]
    digest: int


class TablePublisher:
    """Knows the hash of every row that stands in the topic, so that a digest costs as much as the change."""

    def __init__(self, row_hashes: Mapping[str, int]) -> None:
        """Start from the rows that the topic holds now."""
        self._row_hashes = dict(row_hashes)
        self._digest = sum(self._row_hashes.values()) % (1 << 64)

    def shows(self, state: State) -> bool:
        """Whether the topic holds exactly the rows of this state, in this code's encoding."""
        wanted = {key: row_hash(key.encode(), encode_row(row)) for key, row in rows_of(state).items()}
        return wanted == self._row_hashes

    def whole_table(self, state: State) -> dict[str, Row | None]:
        """Every row of the state, and a tombstone for each row of the topic that the state does not have."""
        rows: dict[str, Row | None] = dict.fromkeys(sorted(self._row_hashes))
        rows.update(rows_of(state))
        return rows

    def rows_of_decision(self, sealed: SealedDecision) -> Mapping[str, Row | None]:
        """What has to be written for a decision: the rows that it changes, or the whole table where it says so."""
        return self.whole_table(sealed.state) if sealed.republish else sealed.rows

    def publication(self, sealed: SealedDecision, rows: Mapping[str, Row | None]) -> Publication:
        """The transaction of a decision with these changed rows; without rows there is no marker."""
        decision = sealed.decision
        key = decision_key(decision.seq)
        records = [OutgoingRecord(DECISIONS, key, part, 0) for part in encode_decision(decision)]
        hashes = dict(self._row_hashes)
        digest = self._digest
        for name, row in rows.items():
            value = None if row is None else encode_row(row)
            removed = hashes.pop(name, 0)
            added = 0
            if value is not None:
                added = hashes[name] = row_hash(name.encode(), value)
            digest = add_hashes(digest, added, removed)
            records.append(OutgoingRecord(ROUTING_TABLE, name.encode(), value, 0))
        if rows:
            marker = encode_row(_marker(decision, len(hashes), digest))
            records.append(OutgoingRecord(ROUTING_TABLE, MARKER_KEY.encode(), marker, 0))
        return Publication(tuple(records), hashes, digest)

    def committed(self, publication: Publication) -> None:
        """Take over what the publication wrote."""
        self._row_hashes = dict(publication.row_hashes)
        self._digest = publication.digest


def _marker(decision: Decision, row_count: int, digest: int) -> EpochMarker:
    causes = ", ".join(f"{cause.kind.value} {cause.subject}" for cause in decision.causes[:5])
    more = f" and {len(decision.causes) - 5} more" if len(decision.causes) > 5 else ""  # noqa: PLR2004
    return EpochMarker(
        term=decision.term,
        epoch=decision.epoch,
        seq=decision.seq,
        log_id=decision.log_id,
        row_count=row_count,
        cause=causes + more,
        digest=format_digest(digest),
    )
