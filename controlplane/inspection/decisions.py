"""Decisions as rows: number, cause, moves and the proof of their number. Also the results of checks of the log."""

from collections.abc import Sequence

from controlplane.core.intents.events import IntentAnswered
from controlplane.core.operations.slot_numbers import counted
from controlplane.core.slots.certificate import Certificate
from controlplane.core.values.canonical import CanonicalValue, to_canonical
from controlplane.core.verification.log_verification import Complaint, LogVerification
from controlplane.inspection.log_search import FoundDecision
from controlplane.inspection.past_states import Replay
from controlplane.inspection.readers import LoggedDecision
from controlplane.inspection.records import Record, Records, when

COMPLAINT_FIELDS = ("seq", "epoch", "complaint")
DECISION_FIELDS = (
    "seq",
    "term",
    "epoch",
    "when",
    "causes",
    "moves_planned",
    "least_moves",
    "moves_carried_out",
    "moves_left",
    "leader_changes",
    "certificate",
    "shortfalls",
    "answers",
)
REPLAY_FIELDS = (
    "seq",
    "epoch",
    "term",
    "log_id",
    "state_digest",
    "began_after_seq",
    "decisions",
    "elapsed_s",
    "decisions_per_s",
)
ROW_FIELDS = ("seq", "slot", "before", "after", "cause")


def certificate_text(certificate: Certificate | None) -> str:
    """What a certificate proves, as a short text; empty without a certificate."""
    if certificate is None:
        return ""
    surplus_moves = certificate.moved - certificate.least_moved
    surplus_changes = certificate.leader_changes - certificate.least_leader_changes
    if surplus_moves == 0 and surplus_changes == 0:
        proof = f"{certificate.policy}: proven least"
    else:
        moves, changes = counted(surplus_moves, "move"), counted(surplus_changes, "leader change")
        proof = f"{certificate.policy}: {moves} and {changes} over the least"
    lost = f"; no living replica of {counted(len(certificate.lost_slots), 'slot')}" if certificate.lost_slots else ""
    return proof + lost


def answer_text(answered: IntentAnswered) -> str:
    """An operator's intent and its answer, as a short text."""
    asked = f"{answered.kind} by {answered.principal}" if answered.principal else answered.kind
    return f"{asked}: {answered.outcome.value}: {answered.detail}"


def decision_rows(decisions: Sequence[LoggedDecision]) -> Records:
    """A row for each decision.

    It has the moves of the decision's plan and the least possible number, both empty without a plan, and the moves that
    the decision itself carried out. ``leader_changes`` counts those that it carried out.
    """
    rows: list[Record] = []
    for logged in decisions:
        decision = logged.decision
        certificate = decision.certificate
        rows.append(
            {
                "seq": decision.seq,
                "term": decision.term,
                "epoch": decision.epoch,
                "when": when(logged.append_time_ms),
                "causes": [f"{cause.kind.value} {cause.subject} ({cause.evidence})" for cause in decision.causes],
                "moves_planned": certificate.moved if certificate else None,
                "least_moves": certificate.least_moved if certificate else None,
                "moves_carried_out": decision.moves_carried_out,
                "moves_left": decision.moves_left,
                "leader_changes": decision.leader_changes_carried_out,
                "certificate": certificate_text(certificate),
                "shortfalls": list(certificate.shortfalls) if certificate else [],
                "answers": [answer_text(event) for event in decision.events if isinstance(event, IntentAnswered)],
            }
        )
    return rows


def change_rows(found: Sequence[FoundDecision]) -> Records:
    """A row for each row of the slot table that these decisions changed; the slot leader comes first."""
    return [
        {
            "seq": found_decision.logged.decision.seq,
            "slot": change.after.slot_id,
            "before": " ".join(change.before.replicas) or "nobody",
            "after": " ".join(change.after.replicas) or "nobody",
            "cause": change.cause,
        }
        for found_decision in found
        for change in found_decision.rows
    ]


def decision_documents(decisions: Sequence[LoggedDecision]) -> list[dict[str, CanonicalValue]]:
    """Each decision with all fields, its offset and its append time, for programs."""
    documents: list[dict[str, CanonicalValue]] = []
    for logged in decisions:
        plain = to_canonical(logged.decision)
        place: dict[str, CanonicalValue] = {"offset": logged.offset, "append_time_ms": logged.append_time_ms}
        documents.append({**place, **plain} if isinstance(plain, dict) else place)
    return documents


def found_documents(found: Sequence[FoundDecision]) -> CanonicalValue:
    """The same with ``rows``: the rows of the slot table that each changed, and why."""
    documents = decision_documents([found_decision.logged for found_decision in found])
    for document, found_decision in zip(documents, found, strict=True):
        document["rows"] = [
            {"before": to_canonical(change.before), "after": to_canonical(change.after), "cause": change.cause}
            for change in found_decision.rows
        ]
    return list(documents)


def complaint_rows(complaints: Sequence[Complaint]) -> Records:
    """A row for each complaint."""
    return [{"seq": each.seq, "epoch": each.epoch, "complaint": each.sentence} for each in complaints]


def verification_document(verification: LogVerification, complaints: Sequence[Complaint]) -> CanonicalValue:
    """The same for programs."""
    return {
        "decisions": verification.decisions,
        "certificates": verification.certificates,
        "epoch": verification.state.epoch,
        "complaints": [dict(row) for row in complaint_rows(complaints)],
    }


def replay_row(folded: Replay, elapsed_s: float) -> Record:
    """The result of a replay, where it began, and how fast it was."""
    state = folded.state
    return {
        "seq": state.seq,
        "epoch": state.epoch,
        "term": state.term,
        "log_id": state.log_id,
        "state_digest": state.digest(),
        "began_after_seq": folded.began_after,
        "decisions": folded.decisions,
        "elapsed_s": round(elapsed_s, 3),
        "decisions_per_s": round(folded.decisions / elapsed_s) if elapsed_s else None,
    }
