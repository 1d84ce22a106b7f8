"""A routing-table topic in memory, written the way the leader writes it and compacted the way Kafka compacts it."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from controlplane.core.routing.rows import MARKER_KEY, EpochMarker, TableRow, UnreadableRow, key_text
from controlplane.core.values.canonical import canonical_bytes
from controlplane.core.values.digests import add_hashes, format_digest, row_hash
from controlplane.core.values.identifiers import Epoch, Seq, Term


@dataclass(frozen=True, slots=True)
class TopicRecord:
    """One record of the topic: its offset, key, bytes, and what the bytes mean."""

    offset: int
    key: bytes
    value: bytes | None
    row: TableRow | EpochMarker | UnreadableRow | None


@dataclass
class TableTopic:
    """Commits epochs into a list of records.

    The bytes of a row are its canonical form: the replica only hashes them.
    """

    log_id: str = "log-1"
    records: list[TopicRecord] = field(default_factory=list)
    tables: dict[int, dict[str, TableRow]] = field(default_factory=dict)
    rows: dict[str, TableRow] = field(default_factory=dict)
    epoch: int = 0
    seq: int = 0
    _next_offset: int = 0

    def commit(self, changes: Mapping[str, TableRow | None], term: int = 1) -> EpochMarker:
        """Append the changed rows (None removes) and the marker of the next epoch."""
        self.epoch += 1
        self.seq += 1
        for key, row in changes.items():
            self.append(key, row)
            if row is None:
                self.rows.pop(key, None)
            else:
                self.rows[key] = row
        self.tables[self.epoch] = dict(self.rows)
        marker = self.marker(term)
        self.append(MARKER_KEY, marker)
        return marker

    def marker(self, term: int) -> EpochMarker:
        """The marker that describes the rows as they are."""
        digest = 0
        for key, row in self.rows.items():
            digest = add_hashes(digest, row_hash(key.encode(), canonical_bytes(row)))
        return EpochMarker(
            Term(term), Epoch(self.epoch), Seq(self.seq), self.log_id, len(self.rows), "test", format_digest(digest)
        )

    def append(self, key: str, row: TableRow | EpochMarker | None) -> None:
        """Append one record, and leave a gap in the offsets as a transaction's end does."""
        value = None if row is None else canonical_bytes(row)
        self.records.append(TopicRecord(self._next_offset, key.encode(), value, row))
        self._next_offset += 2 if key == MARKER_KEY else 1

    def append_foreign(
        self, key: bytes, value: bytes | None, row: TableRow | EpochMarker | UnreadableRow | None
    ) -> None:
        """Append a record of a writer that is no leader: ``rows`` does not know it."""
        self.records.append(TopicRecord(self._next_offset, key, value, row))
        self._next_offset += 1

    def repair(self) -> EpochMarker:
        """Write every row again under a new epoch, and a tombstone for each other key, as the leader does."""
        live = {record.key: record.value for record in self.records}
        for key, value in live.items():
            if value is not None and key != MARKER_KEY.encode() and key_text(key) not in self.rows:
                self.append_foreign(key, None, None)
        return self.commit(dict(self.rows))

    def compact(self, before_offset: int, *, drop_tombstones: bool) -> None:
        """Compact the records before an offset: only the last record of each key stays. The tail is unchanged."""
        last = {record.key: record.offset for record in self.records if record.offset < before_offset}
        self.records = [
            record
            for record in self.records
            if record.offset >= before_offset
            or (last[record.key] == record.offset and not (drop_tombstones and record.value is None))
        ]

    def read(self, offset: int, count: int) -> list[TopicRecord]:
        """At most ``count`` records from an offset on, as they are kept now."""
        return [record for record in self.records if record.offset >= offset][:count]

    @property
    def end_offset(self) -> int:
        """The offset of the next record."""
        return self._next_offset
