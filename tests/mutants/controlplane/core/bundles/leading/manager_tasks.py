"""Bugs in ``controlplane/core/bundles/leading/manager_tasks.py``."""

from typing import Final

from tests.mutants.mutant import Bug

_TESTS: Final = ("unit/core/bundles/leading/test_manager_tasks.py",)

BUGS: Final = (
    Bug(
        "a new leader sheds at the time of the old one",
        "            began.pop(task, None)\n",
        "",
        (),
        _TESTS,
    ),
    Bug(
        "times that were missed are made up for",
        "began[task] += max(0, passed) * period_ms",
        "began[task] += period_ms if passed > 0 else 0",
        (),
        _TESTS,
    ),
    Bug(
        "a task runs a period too early",
        "if passed > 0 else Gate.NOT_DUE",
        "if passed >= 0 else Gate.NOT_DUE",
        (),
        _TESTS,
    ),
    Bug(
        "splitting needs one node more",
        "nodes >= (settings",
        "nodes > (settings",
        (),
        _TESTS,
    ),
    Bug(
        "the leader looks for splits with a single node",
        "(Gate.NO_NEWS, Gate.SPLITTING_OFF, Gate.NOT_LEADER, Gate.TOO_FEW_NODES)",
        "(Gate.NO_NEWS, Gate.SPLITTING_OFF, Gate.NOT_LEADER)",
        (),
        _TESTS,
    ),
)
