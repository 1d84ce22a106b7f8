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
from controlplane.core.routing.row_hashes import RowHashes
from controlplane.core.routing.rows import MARKER_KEY, EpochMarker, Row
from controlplane.core.values.digests import format_digest, row_hash
from controlplane.ports import OutgoingRecord


class Publication(NamedTuple):
    """The records of one decision, and what the table's hashes are once they are committed."""

    records: tuple[OutgoingRecord, ...]
    row_hashes: RowHashes


class TablePublisher:
    """Knows the hash of every row that stands in the topic, so that a digest costs as much as the change."""

    def __init__(self, row_hashes: Mapping[str, int]) -> None:
        """Start from the rows that the topic holds now."""
        self._row_hashes = RowHashes(row_hashes)

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
        values = {name: None if row is None else encode_row(row) for name, row in rows.items()}
        records += [OutgoingRecord(ROUTING_TABLE, name.encode(), value, 0) for name, value in values.items()]
        gone = [name for name, value in values.items() if value is None and name in self._row_hashes]
        written = ((name, row_hash(name.encode(), value)) for name, value in values.items() if value is not None)
        hashes = self._row_hashes.drop(gone).put(written)
        if rows:
            marker = encode_row(_marker(decision, hashes))
            records.append(OutgoingRecord(ROUTING_TABLE, MARKER_KEY.encode(), marker, 0))
        return Publication(tuple(records), hashes)

    def committed(self, publication: Publication) -> None:
        """Take over what the publication wrote."""
        self._row_hashes = publication.row_hashes


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
