"""One partition of the in-memory broker: records, control records, the last stable offset, compaction, retention."""

from bisect import bisect_left
from dataclasses import dataclass
from enum import Enum
from operator import attrgetter
from typing import NamedTuple


class TransactionState(Enum):
    """The state of a transaction; its records are visible in read_committed only if it is committed."""

    OPEN = "open"
    COMMITTED = "committed"
    ABORTED = "aborted"


@dataclass(slots=True, eq=False)
class MemoryTransaction:
    """One transaction of one producer epoch. Two are compared by identity."""

    producer_epoch: int
    opened_at_ms: int
    state: TransactionState = TransactionState.OPEN


@dataclass(slots=True)
class StoredRecord:
    """A record as the log keeps it; ``is_control`` marks a commit or abort marker, which only takes up an offset."""

    offset: int
    append_time_ms: int
    key: bytes | None
    value: bytes | None
    transaction: MemoryTransaction | None
    is_control: bool = False
    is_append_time: bool = True

    @property
    def is_visible(self) -> bool:
        """Whether a read_committed reader gets this record; defined below the last stable offset only."""
        if self.is_control:
            return False
        return self.transaction is None or self.transaction.state is TransactionState.COMMITTED


class LeadingBroker:
    """A broker that leads partitions. This one has the cluster's time; two are compared by identity."""

    def ahead_ms(self) -> int:
        """By how much its clock is ahead of the clock of :class:`~controlplane.testing.MemoryBroker`."""
        return 0


class Slice(NamedTuple):
    """The result of a read: visible records, and the offset to continue from, which may be after hidden records."""

    records: list[StoredRecord]
    next_offset: int


_OFFSET = attrgetter("offset")


class MemoryPartition:
    """One partition by Kafka's rules, kept in memory.

    Attributes:
        start_offset: the first offset that is kept.
        end_offset: the offset of the next record (Kafka's high watermark).
        leader: the broker whose clock gives the append times.
        markers_are_late: whether the control records of transactions that end are not written yet.
        keeps_create_time: whether records keep the time that their sender's clock gave them.
        has_lost_end: whether brokers were restored from an older copy: a reader that is further takes them for brokers
            that lag, and asks again for some time.
    """

    def __init__(self) -> None:
        """Begin empty at offset 0."""
        self.start_offset = 0
        self.end_offset = 0
        self.leader = LeadingBroker()
        self.markers_are_late = False
        self.keeps_create_time = False
        self.has_lost_end = False
        self._records: list[StoredRecord] = []
        self._open_transactions: dict[MemoryTransaction, int] = {}

    @property
    def last_key(self) -> bytes | None:
        """The key of the last record that was appended, also in an open transaction; None without a record."""
        return self._records[-1].key if self._records else None

    @property
    def last_stable_offset(self) -> int:
        """The first offset of the oldest open transaction, or the end: read_committed readers stop here."""
        return min(self._open_transactions.values()) if self._open_transactions else self.end_offset

    @property
    def decided_offset(self) -> int:
        """The first offset whose transaction may still end either way, or the end: what the coordinator knows."""
        undecided = (first for each, first in self._open_transactions.items() if each.state is TransactionState.OPEN)
        return min(undecided, default=self.end_offset)

    @property
    def awaits_markers(self) -> bool:
        """Whether a transaction has ended whose marker is not written here."""
        return self.markers_are_late and any(
            each.state is not TransactionState.OPEN for each in self._open_transactions
        )

    def append(
        self,
        key: bytes | None,
        value: bytes | None,
        append_time_ms: int,
        transaction: MemoryTransaction | None = None,
        sender_ahead_ms: int = 0,
    ) -> int:
        """Append one record and return its offset.

        ``append_time_ms`` is by the broker's clock, than which the sender's is ``sender_ahead_ms`` ahead.
        """
        if transaction is not None:
            self._open_transactions.setdefault(transaction, self.end_offset)
        ahead_ms = sender_ahead_ms if self.keeps_create_time else self.leader.ahead_ms()
        stored = StoredRecord(
            self.end_offset,
            append_time_ms + ahead_ms,
            key,
            value,
            transaction,
            is_append_time=not self.keeps_create_time,
        )
        self._records.append(stored)
        self.end_offset += 1
        return self.end_offset - 1

    def end_transaction(self, transaction: MemoryTransaction, append_time_ms: int) -> bool:
        """Write the transaction's control record, which takes up one offset; False if the transaction is not here.

        While markers are late nothing is written: the transaction has ended, and its records still hold readers back.
        """
        if self.markers_are_late:
            return False
        if self._open_transactions.pop(transaction, None) is None:
            return False
        self._records.append(
            StoredRecord(self.end_offset, append_time_ms, None, None, transaction, is_control=True),
        )
        self.end_offset += 1
        return True

    def write_late_markers(self, append_time_ms: int) -> None:
        """Write the control records of the transactions that have ended meanwhile."""
        self.markers_are_late = False
        for transaction in [each for each in self._open_transactions if each.state is not TransactionState.OPEN]:
            self.end_transaction(transaction, append_time_ms)

    def read(self, offset: int, max_records: int, known_stable: int | None = None) -> Slice:
        """Return visible records from an offset on, up to the last stable offset that the answering broker knows."""
        found: list[StoredRecord] = []
        stable = self.last_stable_offset if known_stable is None else known_stable
        if offset >= stable:
            return Slice(found, offset)
        for index in range(self._index_of(offset), len(self._records)):
            record = self._records[index]
            if record.offset >= stable:
                break
            if not record.is_visible:
                continue
            if len(found) == max_records:
                return Slice(found, record.offset)
            found.append(record)
        return Slice(found, stable)

    def offset_at_time(self, time_ms: int, stable: int) -> int:
        """The first offset appended at or after the time; the last stable offset if there is none."""
        for record in self._records:
            if record.offset >= stable:
                break
            if record.append_time_ms >= time_ms:
                return record.offset
        return stable

    def delete_before(self, offset: int) -> None:
        """Delete the records before an offset, as retention does."""
        self.start_offset = max(self.start_offset, min(offset, self.end_offset))
        del self._records[: self._index_of(self.start_offset)]

    def lose_from(self, offset: int) -> None:
        """Lose the records from an offset on, and the transactions that are open there."""
        del self._records[self._index_of(offset) :]
        self.end_offset = min(self.end_offset, offset)
        self.has_lost_end = True
        self._open_transactions = {each: first for each, first in self._open_transactions.items() if first < offset}

    def compact(self, *, active_from: int | None, drop_tombstones: bool) -> None:
        """Keep the last record of each key, with its offset. Aborted records are removed, control records are kept.

        Args:
            active_from: the offset at which the active segment begins, which Kafka never compacts; None compacts
                everything up to the last stable offset.
            drop_tombstones: also remove tombstones, as Kafka does once ``delete.retention.ms`` has passed.
        """
        limit = self.last_stable_offset if active_from is None else min(active_from, self.last_stable_offset)
        cleanable = self._records[: self._index_of(limit)]
        last_offsets = {record.key: record.offset for record in cleanable if record.is_visible}

        def stays(record: StoredRecord) -> bool:
            if record.is_control:
                return True
            if not record.is_visible or last_offsets[record.key] != record.offset:
                return False
            return record.value is not None or not drop_tombstones

        self._records[: len(cleanable)] = [record for record in cleanable if stays(record)]

    def _index_of(self, offset: int) -> int:
        return bisect_left(self._records, offset, key=_OFFSET)
