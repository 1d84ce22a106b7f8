"""The result of an audit, as a document and as rows."""

from collections import Counter
from collections.abc import Sequence

from controlplane.core.audit.log_audit import Difference, LogAudit
from controlplane.core.values.canonical import CanonicalValue
from controlplane.inspection.records import Record, Records

DIFFERENCE_FIELDS = ("seq", "epoch", "field", "recorded", "retaken", "causes", "inputs")


def difference_rows(differences: Sequence[Difference]) -> Records:
    """A row for each field that differs."""
    return [_row(each) for each in differences]


def _row(difference: Difference) -> Record:
    return {
        "seq": difference.seq,
        "epoch": difference.epoch,
        "term": difference.term,
        "field": difference.field,
        "recorded": difference.recorded,
        "retaken": difference.retaken,
        "causes": list(difference.causes),
        "inputs": list(difference.inputs),
    }


def audit_document(log_audit: LogAudit, followed: Counter[str], differences: Sequence[Difference]) -> CanonicalValue:
    """The whole result; ``followed`` counts the decisions that were only followed, by reason."""
    return {
        "decisions": log_audit.decisions,
        "retaken": log_audit.retaken,
        "first_retaken": log_audit.first_retaken,
        "epoch": log_audit.state.epoch,
        "broken": log_audit.broken,
        "followed": [{"reason": reason, "decisions": count} for reason, count in followed.items()],
        "differences": [dict(row) for row in difference_rows(differences)],
    }
