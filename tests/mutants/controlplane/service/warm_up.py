"""Bugs in ``controlplane/service/warm_up.py``."""

from typing import Final

from tests.mutants.mutant import Bug

_TESTS: Final = ("unit/service/test_warm_up.py",)

BUGS: Final = (
    Bug(
        "the writer of dead letters is not served while a controller starts",
        "self._components.dead_letters.listen()",
        "pass",
        tests=_TESTS,
    ),
    Bug(
        "the writer of ticks is not served while the log is read",
        "self._ticker.serve_idle()",
        "pass",
        tests=_TESTS,
    ),
)
