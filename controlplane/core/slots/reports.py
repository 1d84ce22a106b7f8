"""What nodes report of slots: status, settings and load."""

from typing import NamedTuple

from controlplane.core.values.identifiers import Epoch, SlotId
from controlplane.core.values.replica_status import ReplicaStatus


class SlotStatus(NamedTuple):
    """One slot as its holder sees it (spec: SOFARegistry's heartbeat carries one for each of the node's slots).

    Attributes:
        slot_id: which slot.
        leader_epoch: the slot leader epoch that the node works under.
        leads: True as slot leader, False as follower.
        status: see :class:`ReplicaStatus`.
        last_sync_ms: wall clock of a follower's last successful sync with the leader; 0 for a leader or for "never".
    """

    slot_id: SlotId
    leader_epoch: int
    leads: bool
    status: ReplicaStatus
    last_sync_ms: int


class SlotReport(NamedTuple):
    """What a node last said of its slots.

    Attributes:
        statuses: one per slot that it holds.
        table_epoch: the epoch of the table that it worked with.
        sent_at_ms: its wall clock.
        age_ms: log time since.
    """

    statuses: tuple[SlotStatus, ...]
    table_epoch: Epoch
    sent_at_ms: int
    age_ms: int


class SlotSettings(NamedTuple):
    """The slot settings that a node was started with; a mismatch with the table's is shown, not guessed away."""

    slot_count: int
    replica_count: int
    hash_function: str


class SlotLoad(NamedTuple):
    """Load of one slot since the last report."""

    slot_id: SlotId
    request_rate_per_s: float
    throughput_bytes_per_s: float
    stored_bytes: int
