"""Bugs in ``controlplane/service/dead_letters.py``."""

from typing import Final

from tests.mutants.mutant import Bug

BUGS: Final = (
    Bug(
        "letters of heartbeats count among the inputs for which a controller reads nothing more",
        "return len(self._gating)",
        "return self.unwritten",
        tests=("unit/service/test_dead_letters.py", "unit/service/test_controller_inputs.py"),
    ),
)
