"""Bugs in ``controlplane/core/deciding/expiry.py``."""

from typing import Final

from tests.mutants.mutant import Bug

_TESTS: Final = ("properties/test_cuts.py::test_nodes_that_die_together_are_fenced_one_interval_after_the_first",)

BUGS: Final = (
    Bug(
        "further nodes are due at their limit",
        "limit_ms = draft.state.cluster.silence_limit_ms + draft.state.cluster.heartbeat_interval_ms",
        "limit_ms = draft.state.cluster.silence_limit_ms",
        tests=_TESTS,
    ),
    Bug(
        "the first node of a window is due one interval after its limit",
        "if silent and not fenced:",
        "if False:",
        tests=_TESTS,
    ),
)
