"""Bugs in ``controlplane/core/slots/reports.py``."""

from typing import Final

from tests.mutants.mutant import Bug

BUGS: Final = (
    Bug(
        "slots that are not ready come first where not all fit",
        "key=lambda each: each.status is not ReplicaStatus.HEALTHY",
        "key=lambda each: each.status is ReplicaStatus.HEALTHY",
        tests=("properties/test_slot_groups.py",),
    ),
    Bug(
        "slots that are put together were synced when the last of them was",
        "min(group.last_sync_ms, oldest",
        "max(group.last_sync_ms, oldest",
        tests=("properties/test_slot_groups.py",),
    ),
    Bug(
        "slots that are not ready fill a heartbeat of single statuses",
        "tuple(ready or statuses)",
        "tuple(statuses)",
        tests=("properties/test_slot_groups.py",),
    ),
)
