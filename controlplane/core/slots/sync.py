"""Whether every slot is in sync, from the reports of its holders (SOFARegistry's SlotTableMonitor).

Clocks of different nodes are never compared. The age of a follower's last sync is measured by the follower's own clock
up to the heartbeat that reports it, and by log time from then on.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from controlplane.core.slots.reports import SlotReport, SlotStatus
from controlplane.core.slots.table import Slot
from controlplane.core.values.identifiers import Epoch, NodeId
from controlplane.core.values.replica_status import ReplicaStatus

MAX_SYNC_GAP_MS: Final = 180_000
"""The greatest age of a follower's last sync, in ms, unless the policy sets another one."""
_NEVER: Final = Epoch(0)


def is_stable(
    slots: Sequence[Slot],
    reports: Mapping[NodeId, SlotReport],
    arranged_at: Epoch = _NEVER,
    max_sync_gap_ms: int = MAX_SYNC_GAP_MS,
) -> bool:
    """Whether all slot leaders have their data and all followers were recently in sync.

    A status with another leader epoch or another role than the table's is ignored. So is a report that was sent before
    its sender knew the current slots, because SOFARegistry forgets the reports about a slot that changes.

    Args:
        slots: the table, by slot id.
        reports: the last report of each node.
        arranged_at: the epoch in which the slots changed last; reports about older tables do not count.
        max_sync_gap_ms: the greatest age of a follower's last sync (``registry.data.replicate.max.gap.millis``).
    """
    missing = {(slot.slot_id, node_id) for slot in slots for node_id in slot.replicas}
    if any(node_id not in reports or reports[node_id].table_epoch < arranged_at for _, node_id in missing):
        return False
    for node_id, report in reports.items():
        for status in report.statuses:
            if (status.slot_id, node_id) not in missing:
                continue
            slot = slots[status.slot_id]
            if status.leader_epoch != slot.leader_epoch or status.leads != (node_id == slot.leader):
                continue
            if not _is_done(status, report, max_sync_gap_ms):
                return False
            missing.discard((status.slot_id, node_id))
    return not missing


def _is_done(status: SlotStatus, report: SlotReport, max_sync_gap_ms: int) -> bool:
    if status.leads:
        return status.status is ReplicaStatus.HEALTHY
    return _was_in_sync(status, report, max_sync_gap_ms)


def _was_in_sync(status: SlotStatus, report: SlotReport, max_sync_gap_ms: int) -> bool:
    if status.last_sync_ms == 0:
        return False
    # A follower whose clock was set back seems to have synced in the future; the age then counts as 0.
    at_report_ms = max(report.sent_at_ms - status.last_sync_ms, 0)
    return at_report_ms + report.age_ms <= max_sync_gap_ms
