"""The routing table as rows for people and as a document for programs."""

from collections.abc import Iterable

from controlplane.cli.output import Rows
from controlplane.core.identifiers import SlotId
from controlplane.core.plain import Plain, to_plain
from controlplane.core.slot_table import NodeSlots, by_node
from controlplane.core.table_replica import RoutingTable

SLOT_COLUMNS = ("slot", "leader", "followers", "leader_epoch")
BUNDLE_COLUMNS = ("bundle", "owner")
NODE_COLUMNS = ("node", "status", "leads", "follows", "bundles", "leads_slots", "follows_slots")


def slot_ranges(slots: Iterable[SlotId]) -> str:
    """Slot numbers in ascending order as ranges, for example ``0-3 7 9-10``."""
    ranges: list[list[int]] = []
    for slot in sorted(slots):
        if ranges and slot == ranges[-1][1] + 1:
            ranges[-1][1] = slot
        else:
            ranges.append([slot, slot])
    return " ".join(str(first) if first == last else f"{first}-{last}" for first, last in ranges)


def headline(table: RoutingTable) -> str:
    """One line: which epoch of which log this is, and how keys become slots."""
    settings = table.settings
    return (
        f"epoch {table.epoch}, term {table.term}, seq {table.seq}, log {table.log_id}, digest {table.digest}; "
        f"{settings.slot_count} slots by {settings.hash_function.value}, {settings.replica_count} replicas"
    )


def slot_rows(table: RoutingTable) -> Rows:
    """A row for each slot."""
    return [
        {
            "slot": slot.slot_id,
            "leader": slot.leader,
            "followers": list(slot.followers),
            "leader_epoch": slot.leader_epoch,
        }
        for slot in table.slots
    ]


def bundle_rows(table: RoutingTable) -> Rows:
    """A row for each bundle, by its id."""
    return [{"bundle": bundle_id, "owner": bundle.owner} for bundle_id, bundle in sorted(table.bundles.items())]


def node_rows(table: RoutingTable) -> Rows:
    """A row for each node: what it leads, follows and owns."""
    held = by_node(table.slots)
    owned: dict[str, list[Plain]] = {}
    for bundle_id, bundle in sorted(table.bundles.items()):
        if bundle.owner is not None:
            owned.setdefault(bundle.owner, []).append(bundle_id)
    rows = []
    for node_id, node in sorted(table.nodes.items()):
        slots = held.get(node_id, NodeSlots(node_id, (), ()))
        rows.append(
            {
                "node": node_id,
                "status": node.status.value,
                "leads": len(slots.leads),
                "follows": len(slots.follows),
                "bundles": owned.get(node_id, []),
                "leads_slots": slot_ranges(slots.leads),
                "follows_slots": slot_ranges(slots.follows),
            }
        )
    return rows


def table_document(table: RoutingTable, rows_name: str, rows: Rows) -> Plain:
    """The table's header with the asked-for rows, and the bundles, for programs."""
    return {
        "epoch": table.epoch,
        "term": table.term,
        "seq": table.seq,
        "log_id": table.log_id,
        "digest": table.digest,
        "settings": to_plain(table.settings),
        rows_name: [dict(row) for row in rows],
        "bundles": [dict(row) for row in bundle_rows(table)],
    }
