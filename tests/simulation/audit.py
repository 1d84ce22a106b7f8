"""The audit of a run: every decision is retaken from the inputs in its log."""

from controlplane.core.audit.log_audit import LogAudit
from controlplane.inspection.auditing import Auditor
from controlplane.testing import MemoryLogReader
from tests.helpers.sources import source_at_rest
from tests.simulation.world import World

AUDITED_ALIKE = "decisions are taken alike again from the inputs in the log"


def what_the_audit_finds(world: World) -> list[str]:
    """The differences of a run's retaken decisions, and the decisions that could not be retaken."""
    log_audit = LogAudit()
    log, inputs = (source_at_rest(MemoryLogReader(world.cluster, world.broker)) for _ in range(2))
    found = []
    for audited in Auditor(log_audit, log, inputs).run():
        if audited.followed_because:
            found.append(f"decision {audited.seq} cannot be taken again: {audited.followed_because}")
        found += [str(difference) for difference in audited.differences]
    return found
