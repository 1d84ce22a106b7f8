"""How the slot table stands, as rows for people and as a document for programs."""

from controlplane.bootstrap.readers import HeartbeatTail
from controlplane.cli.output import Row, Rows
from controlplane.core.observations import Heard, Observations, PartitionView
from controlplane.core.plain import Plain
from controlplane.core.table_status import TableStatus

STATUS_COLUMNS = ("property", "value")
COUNT_COLUMNS = ("node", "leads", "follows")
WAITING_COLUMNS = ("waits for", "slots", "such as")
_SLOTS_NAMED = 8


def observations_of(tail: HeartbeatTail) -> Observations:
    """What the last heartbeats say, as a leader would have it."""
    heard = {
        (node_id, last.heartbeat.incarnation): Heard(last.append_time_ms, last.append_time_ms, last.heartbeat)
        for node_id, last in tail.last.items()
    }
    return Observations({0: PartitionView(clock_ms=tail.now_ms, greatest_tick_ms=tail.now_ms, heard=heard)})


def status_document(status: TableStatus) -> dict[str, Plain]:
    """Everything by name."""
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
        "paused": status.paused,
        "plan_in_flight": status.plan,
        "rows_left": len(status.waiting),
        "waiting": [{"slot": slot_id, "for": reason} for slot_id, reason in status.waiting],
        "nodes": [dict(row) for row in count_rows(status)],
    }


def status_rows(status: TableStatus) -> Rows:
    """A row for each property; the counts are rows of their own."""
    document = status_document(status)
    return [
        {"property": name.replace("_", " "), "value": value}
        for name, value in document.items()
        if name not in {"nodes", "waiting"}
    ]


def waiting_rows(status: TableStatus) -> Rows:
    """A row for each thing that planned rows wait for: how many, and the first of them."""
    slots: dict[str, list[int]] = {}
    for slot_id, reason in status.waiting:
        slots.setdefault(reason, []).append(slot_id)
    return [
        {"waits for": reason, "slots": len(ids), "such as": ", ".join(map(str, ids[:_SLOTS_NAMED]))}
        for reason, ids in sorted(slots.items())
    ]


def count_rows(status: TableStatus) -> Rows:
    """A row for each node: how many slots it leads and follows."""
    rows: list[Row] = []
    for node_id, slots in status.nodes.items():
        rows.append({"node": node_id, "leads": len(slots.leads), "follows": len(slots.follows)})
    return rows
