"""Holds: frozen evictions and a paused reconciliation, with principal, time and reason."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from itertools import islice
from typing import Final

from controlplane.core.intents.events import IntentAnswered, IntentOutcome
from controlplane.core.intents.intent import IntentKind
from controlplane.core.log.decision import Decision
from controlplane.core.log.state import State
from controlplane.core.membership.events import EvictionsFrozen
from controlplane.core.slots.events import ReconciliationPaused
from controlplane.core.values.canonical import CanonicalValue
from controlplane.core.values.identifiers import Seq
from controlplane.inspection.readers import LoggedDecision, decisions_backwards
from controlplane.inspection.records import when
from controlplane.inspection.source import LogSource

_MOST_DECISIONS: Final = 50_000
"""How many decisions are searched for the beginning of a hold, so that the query stays short."""


class HoldKind(Enum):
    """What is held back."""

    EVICTIONS_FROZEN = "evictions_frozen"
    """No node is fenced for silence."""
    RECONCILIATION_PAUSED = "reconciliation_paused"
    """No slot is planned."""


@dataclass(frozen=True, slots=True)
class Hold:
    """One hold on the cluster that is in effect now.

    Attributes:
        kind: what is held.
        seq: the decision that began it; None if it is further back than was searched.
        since_ms: when the broker appended that decision; None in the same case.
        by: the principal who asked for it; empty if the leader began it by itself.
        why: the given reason, or the evidence; may be empty.
    """

    kind: HoldKind
    seq: Seq | None
    since_ms: int | None
    by: str
    why: str

    def document(self) -> dict[str, CanonicalValue]:
        """All fields, for programs."""
        return {
            "hold": self.kind.value,
            "seq": self.seq,
            "since": None if self.since_ms is None else when(self.since_ms),
            "by": self.by,
            "why": self.why,
        }


def read_holds(source: LogSource, state: State) -> tuple[Hold, ...]:
    """The holds on a cluster in this state. The log is read backwards only if there are any.

    Raises:
        LogUnavailableError: the log did not answer.
    """
    wanted = {HoldKind.EVICTIONS_FROZEN} if state.membership.evictions_frozen else set()
    wanted |= {HoldKind.RECONCILIATION_PAUSED} if state.slots.paused else set()
    found: dict[HoldKind, Hold] = {}
    if wanted:
        for logged in islice(decisions_backwards(source), _MOST_DECISIONS):
            for hold in _begun_in(logged):
                found.setdefault(hold.kind, hold)
            if wanted <= found.keys():
                break
    return tuple(found.get(kind, Hold(kind, None, None, "", "")) for kind in HoldKind if kind in wanted)


def _begun_in(logged: LoggedDecision) -> Iterator[Hold]:
    """The holds that begin with a decision."""
    decision = logged.decision
    for event in decision.events:
        match event:
            case EvictionsFrozen(silent=silent, allowed=allowed):
                names = ", ".join(silent)
                why = f"{len(silent)} silent at once, {allowed} allowed: {names}"
                yield Hold(HoldKind.EVICTIONS_FROZEN, decision.seq, logged.append_time_ms, "", why)
            case ReconciliationPaused(reason=reason):
                by = _paused_by(decision)
                yield Hold(HoldKind.RECONCILIATION_PAUSED, decision.seq, logged.append_time_ms, by, reason)
            case _:
                pass


def _paused_by(decision: Decision) -> str:
    """The principal whose intent the decision answers."""
    for event in decision.events:
        if (
            isinstance(event, IntentAnswered)
            and event.kind == IntentKind.PAUSE_RECONCILIATION.value
            and event.outcome is IntentOutcome.DONE
        ):
            return event.principal
    return ""
