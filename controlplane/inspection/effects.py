"""The effect of supposed changes, as a document and as rows."""

from controlplane.core.bundles.bundle import Bundle
from controlplane.core.deciding.what_if import Effect
from controlplane.core.values.canonical import CanonicalValue, to_canonical
from controlplane.inspection.records import Record, empty_record

COUNT_FIELDS = ("node", "held_before", "held_after", "led_before", "led_after")
BUNDLE_FIELDS = ("bundle", "order", "destination", "before", "after")


def effect_document(effect: Effect) -> CanonicalValue:
    """The whole effect, for programs; if the changes are impossible, only the reason."""
    refusal: dict[str, CanonicalValue] = {
        "refusals": list(effect.refusals),
        "answers": [
            {"kind": answer.kind, "outcome": answer.outcome.value, "detail": answer.detail} for answer in effect.answers
        ],
    }
    if effect.refused:
        return refusal
    return {
        "moved": effect.moved,
        "moved_now": effect.moved_now,
        "rows_waiting": effect.rows_waiting,
        "least_moved": effect.least_moved,
        "leader_changes": effect.leader_changes,
        "least_leader_changes": effect.least_leader_changes,
        "nodes": [dict(row) for row in count_rows(effect)],
        "slots": [{"before": to_canonical(before), "after": to_canonical(after)} for before, after in effect.rows],
        "bundles": [dict(row) for row in bundle_rows(effect)],
        "shortfalls": list(effect.shortfalls),
        **refusal,
    }


def count_rows(effect: Effect) -> list[Record]:
    """A row for each node that holds something before or after the changes."""
    return [
        {
            "node": count.node_id,
            "held_before": count.held_before,
            "held_after": count.held_after,
            "led_before": count.led_before,
            "led_after": count.led_after,
        }
        for count in effect.counts
    ]


def bundle_rows(effect: Effect) -> list[Record]:
    """A row for each bundle that would get an order, or change with the decision itself; ``after`` is empty if not."""
    rows: dict[str, Record] = {
        order.bundle_id: {
            **empty_record(BUNDLE_FIELDS),
            "bundle": order.bundle_id,
            "order": order.kind.value,
            "destination": order.destination,
        }
        for order in effect.bundle_orders
    }
    for bundle_id, before, after in effect.bundles:
        row = rows.setdefault(bundle_id, {**empty_record(BUNDLE_FIELDS), "bundle": bundle_id})
        row["before"], row["after"] = _standing(before), _standing(after)
    return [row for _, row in sorted(rows.items())]


def _standing(bundle: Bundle | None) -> str:
    """Who serves a bundle, or is to serve it, in words of ``bundles list``."""
    if bundle is None:
        return "none"
    owners = " to ".join(name for name in (bundle.owner, bundle.next_owner) if name is not None)
    return f"{bundle.ownership_state.value} {owners}".strip()
