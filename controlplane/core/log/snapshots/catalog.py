"""What the topic of snapshots holds: which are whole, which are not and why, and which nobody needs any more."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from controlplane.core.log.snapshots.body import body_of
from controlplane.core.log.snapshots.snapshot_part import SnapshotPart
from controlplane.core.values.identifiers import Seq
from controlplane.errors import InvalidInputError

KEPT: Final = 2
"""So many whole snapshots stay: if one turns out to be damaged, there is the one before."""
_PART_DIGITS: Final = 6


def part_key(snapshot_id: str, part: int) -> bytes:
    """The key of a part's record."""
    return f"{snapshot_id}/{part:0{_PART_DIGITS}}".encode()


@dataclass(frozen=True, slots=True)
class StoredSnapshot:
    """A snapshot as it stands in the topic.

    Attributes:
        snapshot_id: its name.
        parts: those that are there and can be read, ascending by number.
        keys: the keys of all its records, also of those that cannot be read.
        problem: why it is not whole; empty if it is.
    """

    snapshot_id: str
    parts: tuple[SnapshotPart, ...]
    keys: tuple[bytes, ...]
    problem: str

    @property
    def header(self) -> SnapshotPart | None:
        """One of its parts, for what all say; None if none can be read."""
        return self.parts[0] if self.parts else None


@dataclass(slots=True)
class SnapshotCatalog:
    """Folds the records of the topic. What a key held before is replaced, as compaction would do it."""

    _records: dict[bytes, SnapshotPart | str] = field(default_factory=dict)

    def fold(self, key: bytes, part: SnapshotPart | str | None) -> None:
        """Take a record: its part, or why it cannot be read; None removes what the key held."""
        if part is None:
            self._records.pop(key, None)
        else:
            self._records[key] = part

    def newest_first(self) -> list[StoredSnapshot]:
        """Every snapshot of which there is a record, by name from the last to the first: newest decisions first."""
        by_id: dict[str, list[bytes]] = {}
        for key in self._records:
            by_id.setdefault(key.decode(errors="replace").rpartition("/")[0], []).append(key)
        return [self._stored(name, sorted(by_id[name])) for name in sorted(by_id, reverse=True)]

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
    """Those that are whole, of this log, and not of decisions after ``seq``: the ones to count upon."""
    return [
        each
        for each in snapshots
        if not each.problem and each.header is not None and each.header.log_id == log_id and each.header.seq <= seq
    ]


def superseded_keys(snapshots: Sequence[StoredSnapshot], log_id: str, seq: Seq) -> list[bytes]:
    """The records that nobody needs: of every snapshot older than the newest :data:`KEPT` sound ones.

    Whoever asks may be late: snapshots of decisions that it does not know, and parts that somebody else is still
    writing, are newer than what it keeps, and stay. So the newest two of all are safe, whoever removes what when.
    """
    kept = sound(snapshots, log_id, seq)[:KEPT]
    if len(kept) < KEPT:
        return []
    return [key for each in snapshots if each.snapshot_id < kept[-1].snapshot_id for key in each.keys]
