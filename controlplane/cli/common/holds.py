"""The holds on a cluster, in one line each, above a command's result."""

from collections.abc import Sequence
from typing import Final

from controlplane.inspection.holds import Hold, HoldKind
from controlplane.inspection.records import when

_WHAT: Final = {
    HoldKind.EVICTIONS_FROZEN: "evictions are frozen",
    HoldKind.RECONCILIATION_PAUSED: "reconciliation is paused",
}
_REMEDY: Final = {
    HoldKind.EVICTIONS_FROZEN: "no node is fenced for silence until most are heard again, the window has passed, or "
    "'controlplane intents override-self-preservation'",
    HoldKind.RECONCILIATION_PAUSED: "no slot is planned until 'controlplane table resume'",
}


def hold_lines(holds: Sequence[Hold]) -> list[str]:
    """A line for each hold: its kind, time, principal and reason, and the command that ends it."""
    return [f"{_WHAT[hold.kind]}{_since(hold)}; {_REMEDY[hold.kind]}" for hold in holds]


def _since(hold: Hold) -> str:
    if hold.seq is None or hold.since_ms is None:
        return ", since long ago"
    by = f" by {hold.by}" if hold.by else ""
    why = f": {hold.why}" if hold.why else ", no reason given" if hold.by else ""
    return f" since {when(hold.since_ms)} (decision {hold.seq}){by}{why}"
