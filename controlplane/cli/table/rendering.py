"""The routing table and its status, as text."""

from controlplane.core.log.state import State
from controlplane.core.routing.replica import RoutingTable
from controlplane.inspection.records import Record, Records, seconds
from controlplane.inspection.standstill import Standstill
from controlplane.inspection.table_standing import status_document
from controlplane.inspection.table_status import TableStatus

STATUS_COLUMNS = ("property", "value")


def headline(table: RoutingTable, state: State) -> str:
    """One line with epoch, log id, slot settings, and whether reconciliation is paused."""
    settings = table.settings
    paused = "; reconciliation is paused" if state.slots.paused else ""
    return (
        f"epoch {table.epoch}, term {table.term}, seq {table.seq}, log {table.log_id}, digest {table.digest}; "
        f"{settings.slot_count} slots by {settings.hash_function.value}, {settings.replica_count} replicas{paused}"
    )


def standstill_lines(standstill: Standstill | None) -> list[str]:
    """A line while log time stands still: the rest may be as it was when a controller ended."""
    if standstill is None:
        return []
    tick_ago_ms = standstill.tick_ago_ms
    tick = "no tick since" if tick_ago_ms is None else f"last tick {seconds(tick_ago_ms)} ago"
    line = (
        f"last decision {seconds(standstill.decision_ago_ms)} ago, {tick}: log time stands still, or this machine's "
        "clock is ahead of the brokers'; nothing is decided until a controller runs ('controlplane leader show')"
    )
    return [line]


def status_rows(status: TableStatus) -> Records:
    """A row for each property; the counts are rows of their own."""
    document = status_document(status, ())
    document["plan_in_flight"] = None if status.plan is None else f"decision {status.plan}"
    rows: list[Record] = [
        {"property": name.replace("_", " "), "value": value}
        for name, value in document.items()
        if name not in {"standstill", "holds", "nodes", "waiting", "shortfalls"}
    ]
    return [*rows, *({"property": "shortfalls", "value": sentence} for sentence in status.shortfalls or ("none",))]
