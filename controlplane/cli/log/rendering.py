"""The results of checks of the decision log, in sentences."""

from collections.abc import Sequence

from controlplane.core.verification.log_verification import Complaint, LogVerification


def verification_line(verification: LogVerification, complaints: Sequence[Complaint], epoch: int | None) -> str:
    """The extent and the result of the check of the whole log or of one epoch, in a sentence."""
    newest, certificates = verification.state.epoch, verification.certificates
    checked = f"{verification.decisions:,} decisions up to epoch {newest}, {certificates:,} certificates"
    checked += "" if epoch is None else f"; of epoch {epoch}"
    outcome = "every one holds"
    if complaints:
        outcome = "1 complaint" if len(complaints) == 1 else f"{len(complaints):,} complaints"
    return f"{checked}: {outcome}"
