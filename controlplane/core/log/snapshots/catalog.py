"""The snapshots in their topic: which are whole, why others are not, and which records can be removed."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from controlplane.core.log.log_mark import LogMark
from controlplane.core.log.snapshots.body import body_of
from controlplane.core.log.snapshots.snapshot_part import SnapshotPart
from controlplane.core.values.identifiers import Seq
from controlplane.errors import InvalidInputError

KEPT: Final = 2
"""Number of whole snapshots that are kept: if the newest turns out to be damaged, the one before it is used."""
_PART_DIGITS: Final = 6


def part_key(snapshot_id: str, part: int) -> bytes:
    """The key of a part's record."""
    return f"{snapshot_id}/{part:0{_PART_DIGITS}}".encode()


@dataclass(frozen=True, slots=True)
class StoredSnapshot:
    """A snapshot as the topic holds it.

    Attributes:
        snapshot_id: its name.
        parts: the parts that are present and can be read, ascending by number.
        keys: the keys of all its records, including those that cannot be read.
        problem: why it is not whole; empty if it is.
    """

    snapshot_id: str
    parts: tuple[SnapshotPart, ...]
    keys: tuple[bytes, ...]
    problem: str

    @property
    def header(self) -> SnapshotPart | None:
        """Any of its parts, for the fields that all parts share; None if none can be read."""
        return self.parts[0] if self.parts else None


@dataclass(slots=True)
class SnapshotCatalog:
    """The fold of the topic's records. A record replaces an earlier one with the same key, as compaction does."""

    _records: dict[bytes, SnapshotPart | str] = field(default_factory=dict)

    def fold(self, key: bytes, part: SnapshotPart | str | None) -> None:
        """Take up a record: its part, or why it cannot be read. None removes the key."""
        if part is None:
            self._records.pop(key, None)
        else:
            self._records[key] = part

    def newest_first(self) -> list[StoredSnapshot]:
        """Every snapshot that has a record, the one of the newest decisions first."""
        by_id: dict[str, list[bytes]] = {}
        for key in self._records:
            by_id.setdefault(key.decode(errors="replace").rpartition("/")[0], []).append(key)
        return [self._stored(name, sorted(by_id[name])) for name in sorted(by_id, reverse=True)]

    def marks(self) -> list[LogMark]:
        """The last decision of every snapshot of which a part can be read, whether or not the snapshot is whole."""
        headers = [each.header for each in self.newest_first()]
        return [LogMark(header.log_id, header.term, header.seq) for header in headers if header is not None]

    def _stored(self, name: str, keys: Sequence[bytes]) -> StoredSnapshot:
        records = [self._records[key] for key in keys]
        parts = [record for record in records if isinstance(record, SnapshotPart)]
        parts.sort(key=lambda part: part.part)
        return StoredSnapshot(name, tuple(parts), tuple(keys), self._problem(name, keys, parts))

    def _problem(self, name: str, keys: Sequence[bytes], parts: Sequence[SnapshotPart]) -> str:
        for key in keys:
            record = self._records[key]
            if isinstance(record, str):
                return f"the record {key.decode(errors='replace')!r} cannot be read: {record}"
            if key != part_key(name, record.part) or record.snapshot_id != name:
                return f"the record {key.decode(errors='replace')!r} holds part {record.part} of {record.snapshot_id!r}"
        try:
            body_of(parts)
        except InvalidInputError as error:
            return error.detail
        return ""


def sound(snapshots: Sequence[StoredSnapshot], log_id: str, seq: Seq) -> list[StoredSnapshot]:
    """The usable snapshots: whole, of this log, and not of decisions after ``seq``."""
    return [
        each
        for each in snapshots
        if not each.problem and each.header is not None and each.header.log_id == log_id and each.header.seq <= seq
    ]


def superseded_keys(snapshots: Sequence[StoredSnapshot], log_id: str, seq: Seq) -> list[bytes]:
    """The keys of records that can be removed: those of snapshots older than the newest :data:`KEPT` sound ones.

    The caller's view may be out of date. Snapshots of decisions that it does not know, and parts that another
    controller is still writing, are newer than what the caller keeps, so they are not removed. The newest two snapshots
    are therefore safe whichever controller removes records, and whenever.
    """
    kept = sound(snapshots, log_id, seq)[:KEPT]
    if len(kept) < KEPT:
        return []
    return [key for each in snapshots if each.snapshot_id < kept[-1].snapshot_id for key in each.keys]
