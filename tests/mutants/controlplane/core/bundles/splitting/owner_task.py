"""Bugs in ``controlplane/core/bundles/splitting/owner_task.py``."""

from typing import Final

from tests.mutants.mutant import Bug

_TESTS: Final = ("unit/core/bundles/splitting/test_owner_task.py",)

BUGS: Final = (
    Bug(
        "an owner splits one round too early",
        "if counted[bundle_id] <= settings.max_hits:",
        "if counted[bundle_id] < settings.max_hits:",
        (),
        _TESTS,
    ),
    Bug(
        "an owner splits at the first of several positions",
        "if len(positions) != 1:",
        "if not positions:",
        (),
        _TESTS,
    ),
    Bug(
        "only a bundle with both bounds of another waits for it",
        "if bundle.lower in lowers or bundle.upper in uppers:",
        "if bundle.lower in lowers and bundle.upper in uppers:",
        (),
        _TESTS,
    ),
    Bug(
        "a round has one split too many",
        "elif len(splits) == settings.max_splits_per_round:",
        "elif len(splits) > settings.max_splits_per_round:",
        (),
        _TESTS,
    ),
    Bug(
        "hits stay when a bundle is within its limits again",
        "counted.pop(bundle_id, None)",
        "pass",
        (),
        _TESTS,
    ),
    Bug(
        "an owner may split beyond the namespace's greatest number",
        "if count + accepted < settings.max_bundles_per_namespace:",
        "if count < settings.max_bundles_per_namespace:",
        (),
        _TESTS,
    ),
)
