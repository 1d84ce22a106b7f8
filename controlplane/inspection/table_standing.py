"""The status of the slot table, as a document and as rows."""

from collections.abc import Iterable, Sequence

from controlplane.core.operations.slot_numbers import slot_ranges
from controlplane.core.slots.pacing import Waiting
from controlplane.core.values.canonical import CanonicalValue
from controlplane.core.values.identifiers import SlotId
from controlplane.inspection.holds import Hold
from controlplane.inspection.records import Record, Records
from controlplane.inspection.standstill import Standstill
from controlplane.inspection.table_status import TableStatus

COUNT_FIELDS = ("node", "status", "leads", "follows")


def status_document(
    status: TableStatus, holds: Sequence[Hold], standstill: Standstill | None = None
) -> dict[str, CanonicalValue]:
    """All properties by name; ``holds`` names the principal, the time and the reason of each hold.

    ``standstill`` is null while a controller ticks.
    """
    balance = status.balance
    return {
        "epoch": status.epoch,
        "slot_policy": status.slot_policy,
        "leaders_balanced": balance.leaders if balance else None,
        "followers_balanced": balance.followers if balance else None,
        "stable": status.stable,
        "protected": status.protected,
        "evictions_frozen": status.evictions_frozen,
        "policy_says": status.says,
        "refusal": status.refusal,
        "replicas_missing": status.replicas_missing,
        "slots_without_a_node": status.slots_without_a_node,
        "shortfalls": list(status.shortfalls),
        "paused": status.paused,
        "plan_in_flight": status.plan,
        "plan_age_ms": status.plan_age_ms,
        "rows_left": len(status.waiting),
        "bundles_in_flight": status.bundles_in_flight,
        "bundle_orders": status.bundle_orders,
        "waiting": [{"slot": slot_id, "for": reason} for slot_id, reason in status.waiting],
        "standstill": standstill.document() if standstill else None,
        "holds": [hold.document() for hold in holds],
        "nodes": [dict(row) for row in count_rows(status)],
    }


def waiting_lines(waiting: Iterable[Waiting]) -> list[str]:
    """A sentence for each reason for which planned rows wait."""
    slots: dict[str, list[SlotId]] = {}
    for slot_id, reason in waiting:
        slots.setdefault(reason, []).append(slot_id)
    return [
        f"{'slot' if len(ids) == 1 else 'slots'} {slot_ranges(ids)} {'waits' if len(ids) == 1 else 'wait'}: {reason}"
        for reason, ids in sorted(slots.items(), key=lambda item: item[1])
    ]


def count_rows(status: TableStatus) -> Records:
    """A row for each node: its status, whether it is excluded, and how many slots it leads and follows."""
    rows: list[Record] = []
    for node_id, slots in status.nodes.items():
        rows.append(
            {
                "node": node_id,
                "status": status.standings[node_id],
                "leads": len(slots.leads),
                "follows": len(slots.follows),
            }
        )
    return rows
