"""Writes a routing table by hand, the way a leader does: rows and marker in one transaction, encoded and digested."""

from collections.abc import Iterable
from dataclasses import replace

from controlplane.codec.table import encode_row
from controlplane.config import ROUTING_TABLE
from controlplane.core.bundles.bundle import Bundle, Namespace, equal_bundles
from controlplane.core.cluster.policy import HashFunction
from controlplane.core.cluster.rows import TableSettings
from controlplane.core.membership.node import NodeRole, NodeStatus
from controlplane.core.membership.rows import NodeRow
from controlplane.core.routing.rows import MARKER_KEY, EpochMarker, TableRow, key_of, key_text, node_key
from controlplane.core.slots.table import Slot
from controlplane.core.values.addresses import Address
from controlplane.core.values.digests import add_hashes, format_digest, row_hash
from controlplane.core.values.identifiers import Epoch, Seq, SlotId, Term
from controlplane.ports import CommitOutcome, OutgoingRecord, TransactionalWriter


class TableFeed:
    """One cluster's table, changed by the test.

    Attributes:
        epoch: the last committed one.
        term: under which the next epoch is committed.
        slots: as committed or staged.
    """

    def __init__(self, writer: TransactionalWriter, slot_count: int = 4, log_id: str = "log-1") -> None:
        """Open the writer; nothing is committed yet."""
        writer.open()
        self.epoch = 0
        self.term = 1
        self.slots = {number: Slot(number, None, (), Epoch(0)) for number in range(slot_count)}
        self.nodes: dict[str, NodeRow] = {}
        self._writer = writer
        self._log_id = log_id
        self._hashes: dict[str, int] = {}
        self._staged: dict[str, TableRow | None] = {}
        self._rows: dict[str, TableRow] = {}
        self._raw: dict[bytes, bytes | None] = {}
        self._stage(TableSettings(slot_count, 2, HashFunction.CRC32C, 2_500))
        for slot in self.slots.values():
            self._stage(slot)

    def node(
        self,
        node_id: str,
        status: NodeStatus = NodeStatus.ACTIVE,
        incarnation: int = 1,
        addresses: Iterable[Address] = (),
    ) -> "TableFeed":
        """Stage a member."""
        row = NodeRow(node_id, incarnation, NodeRole.DATA, status, tuple(addresses), "", 1, "")
        self.nodes[node_id] = row
        return self._stage(row)

    def status(self, node_id: str, status: NodeStatus) -> "TableFeed":
        """Stage another status of a known member."""
        self.nodes[node_id] = replace(self.nodes[node_id], status=status)
        return self._stage(self.nodes[node_id])

    def without(self, node_id: str) -> "TableFeed":
        """Stage the removal of a member's row."""
        del self.nodes[node_id]
        self._staged[node_key(node_id)] = None
        return self

    def slot(self, slot_id: SlotId, leader: str | None, *followers: str) -> "TableFeed":
        """Stage a slot's replicas; the slot leader epoch moves on when the leader changes."""
        before = self.slots[slot_id]
        leader_epoch = before.leader_epoch if before.leader == leader else Epoch(self.epoch + 1)
        self.slots[slot_id] = Slot(slot_id, leader, tuple(sorted(followers)), leader_epoch)
        return self._stage(self.slots[slot_id])

    def releasing(
        self, slot_id: SlotId, leader: str, *followers: str, next_leader: str, release_epoch: Epoch
    ) -> "TableFeed":
        """Stage a row that tells the slot leader to release the slot."""
        row = replace(self.slots[slot_id], leader=leader, followers=tuple(sorted(followers)))
        self.slots[slot_id] = row
        return self._stage(replace(row, next_leader=next_leader, release_epoch=release_epoch))

    def settings(self, slot_count: int, feature_level: int) -> "TableFeed":
        """Stage settings; slots that are new begin with the rows of those that were split."""
        before = len(self.slots)
        for number in range(before, slot_count):
            self.slots[number] = replace(self.slots[number % before], slot_id=number)
            self._stage(self.slots[number])
        return self._stage(TableSettings(slot_count, 2, HashFunction.CRC32C, 2_500, feature_level))

    def namespace(self, name: str, owners: Iterable[str]) -> "TableFeed":
        """Stage a namespace with a bundle for each owner."""
        owning = tuple(owners)
        self._stage(Namespace(name, len(owning)))
        for bundle, owner in zip(equal_bundles(name, len(owning)), owning, strict=True):
            self._stage(replace(bundle, owner=owner))
        return self

    def bundle(self, bundle: Bundle) -> "TableFeed":
        """Stage a bundle's row as it is."""
        return self._stage(bundle)

    def raw(self, key: bytes, value: bytes) -> "TableFeed":
        """Stage any bytes, which the next marker counts."""
        self._raw[key] = value
        return self

    def repair(self, foreign_keys: Iterable[bytes] = ()) -> "TableFeed":
        """Stage every row again, and tombstones for foreign keys."""
        self._staged = {**self._rows, **self._staged}
        self._raw = {**self._raw, **dict.fromkeys(foreign_keys)}
        return self

    def records(self) -> list[OutgoingRecord]:
        """The staged rows and their marker, as the next epoch; the staging is empty afterwards."""
        self.epoch += 1
        records = []
        for key, row in self._staged.items():
            value = None if row is None else encode_row(row)
            self._hashes.pop(key, None)
            if value is not None:
                self._hashes[key] = row_hash(key.encode(), value)
            records.append(OutgoingRecord(ROUTING_TABLE, key.encode(), value))
            if row is None:
                self._rows.pop(key, None)
            else:
                self._rows[key] = row
        for raw_key, raw_value in self._raw.items():
            if raw_value is not None:
                self._hashes[key_text(raw_key)] = row_hash(raw_key, raw_value)
            records.append(OutgoingRecord(ROUTING_TABLE, raw_key, raw_value))
        self._staged, self._raw = {}, {}
        digest = 0
        for share in self._hashes.values():
            digest = add_hashes(digest, share)
        marker = EpochMarker(
            Term(self.term),
            Epoch(self.epoch),
            Seq(self.epoch),
            self._log_id,
            len(self._hashes),
            "test",
            format_digest(digest),
        )
        return [*records, OutgoingRecord(ROUTING_TABLE, MARKER_KEY.encode(), encode_row(marker))]

    def commit(self) -> int:
        """Commit the staged rows as the next epoch, and return its number."""
        assert self._writer.commit(self.records()) is CommitOutcome.COMMITTED
        return self.epoch

    def write(self, *records: OutgoingRecord) -> None:
        """Commit any records at all, as an intruder would."""
        assert self._writer.commit(records) is CommitOutcome.COMMITTED

    def _stage(self, row: TableRow) -> "TableFeed":
        self._staged[key_of(row)] = row
        return self
