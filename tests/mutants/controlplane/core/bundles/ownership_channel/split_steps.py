"""Bugs in ``controlplane/core/bundles/ownership_channel/split_steps.py``."""

from typing import Final

from tests.mutants.mutant import Bug

_TESTS: Final = ("unit/core/bundles/ownership_channel/test_flows.py",)

BUGS: Final = (
    Bug(
        "a part of a divided bundle loses the record that it has",
        "if child_id not in records)",
        ")",
        (),
        _TESTS,
    ),
    Bug(
        "a division is tried eight times",
        "return RETRY_DELAY_MS if attempts < MAX_ATTEMPTS else None",
        "return RETRY_DELAY_MS if attempts <= MAX_ATTEMPTS else None",
        (),
        _TESTS,
    ),
)
