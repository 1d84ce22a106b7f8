"""The routing table and its status, as text."""

from controlplane.core.log.state import State
from controlplane.core.routing.replica import RoutingTable
from controlplane.inspection.records import Record, Records
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


def status_rows(status: TableStatus) -> Records:
    """A row for each property; the counts are rows of their own."""
    document = status_document(status, ())
    document["plan_in_flight"] = None if status.plan is None else f"decision {status.plan}"
    rows: list[Record] = [
        {"property": name.replace("_", " "), "value": value}
        for name, value in document.items()
        if name not in {"holds", "nodes", "waiting", "shortfalls"}
    ]
    return [*rows, *({"property": "shortfalls", "value": sentence} for sentence in status.shortfalls or ("none",))]
