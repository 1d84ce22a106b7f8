"""Bugs in ``controlplane/core/bundles/ownership_channel/lost_nodes.py``."""

from typing import Final

from tests.mutants.mutant import Bug

_TESTS: Final = ("unit/core/bundles/ownership_channel/test_lost_nodes.py",)

BUGS: Final = (
    Bug(
        "a session counts as stable after exactly three minutes",
        "age_ms > JITTER_MS",
        "age_ms >= JITTER_MS",
        (),
        _TESTS,
    ),
    Bug(
        "a health check is repeated four times",
        "if retry >= _MAX_HEALTH_CHECK_RETRIES:",
        "if retry > _MAX_HEALTH_CHECK_RETRIES:",
        (),
        _TESTS,
    ),
    Bug(
        "a second notice puts a clean-up off",
        "    if node_id in clean_ups.due_ms:",
        "    if not node_id:",
        (),
        _TESTS,
    ),
)
