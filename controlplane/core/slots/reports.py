"""The reports of nodes about slots: status, settings and load."""

from typing import NamedTuple

from controlplane.core.values.identifiers import Epoch, SlotId
from controlplane.core.values.replica_status import ReplicaStatus


class SlotStatus(NamedTuple):
    """One slot as its holder sees it (spec: SOFARegistry's heartbeat carries one for each of the node's slots).

    Attributes:
        slot_id: the slot.
        leader_epoch: the slot leader epoch under which the node works.
        leads: True for the slot leader, False for a follower.
        status: see :class:`ReplicaStatus`.
        last_sync_ms: wall clock of a follower's last successful sync with the leader; 0 for a leader or for "never".
    """

    slot_id: SlotId
    leader_epoch: int
    leads: bool
    status: ReplicaStatus
    last_sync_ms: int


class SlotReport(NamedTuple):
    """A node's last report about its slots.

    Attributes:
        statuses: one per slot that it holds.
        table_epoch: the epoch of the table that it used.
        sent_at_ms: its wall clock.
        age_ms: log time since the report.
    """

    statuses: tuple[SlotStatus, ...]
    table_epoch: Epoch
    sent_at_ms: int
    age_ms: int


class SlotSettings(NamedTuple):
    """The slot settings with which a node was started; commands show where they differ from the table's."""

    slot_count: int
    replica_count: int
    hash_function: str


class SlotLoad(NamedTuple):
    """The load of one slot since the last report."""

    slot_id: SlotId
    request_rate_per_s: float
    throughput_bytes_per_s: float
    stored_bytes: int
