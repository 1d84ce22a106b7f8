"""Decision logs as a whole."""

from collections.abc import Sequence

from controlplane.core.decision import Decision
from controlplane.core.log_verification import LogVerification


def complaints_of(decisions: Sequence[Decision]) -> list[str]:
    """Everything that is wrong with a log."""
    verification = LogVerification()
    found = []
    for decision in decisions:
        found += verification.judge(decision)
        if verification.broken:
            break
    else:
        found += verification.judge_end()
    return [f"seq {each.seq}, epoch {each.epoch}: {each.sentence}" for each in found]
