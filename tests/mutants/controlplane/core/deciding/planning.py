"""Bugs in ``controlplane/core/deciding/planning.py``."""

from typing import Final

from tests.mutants.mutant import Bug

BUGS: Final = (
    Bug(
        "what a process reported before it was admitted again counts",
        "if not 0 < report.table_epoch < admitted_in.get(node_id, Epoch(0))",
        "if True",
        tests=("unit/core/deciding/test_slot_handoffs.py",),
    ),
)
