"""What an audit found, as a document and as rows."""

from collections import Counter
from collections.abc import Sequence

from controlplane.core.audit.log_audit import Difference, LogAudit
from controlplane.core.values.canonical import Plain
from controlplane.inspection.rows import Row, Rows

DIFFERENCE_FIELDS = ("seq", "epoch", "field", "recorded", "retaken", "causes", "inputs")


def difference_rows(differences: Sequence[Difference]) -> Rows:
    """A row for each field that differs."""
    return [_row(each) for each in differences]


def _row(difference: Difference) -> Row:
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


def audit_document(judging: LogAudit, followed: Counter[str], differences: Sequence[Difference]) -> Plain:
    """All of it; ``followed`` counts the decisions that were only followed, by the reason."""
    return {
        "decisions": judging.decisions,
        "retaken": judging.retaken,
        "first_retaken": judging.first_retaken,
        "epoch": judging.state.epoch,
        "broken": judging.broken,
        "followed": [{"reason": reason, "decisions": count} for reason, count in followed.items()],
        "differences": [dict(row) for row in difference_rows(differences)],
    }
