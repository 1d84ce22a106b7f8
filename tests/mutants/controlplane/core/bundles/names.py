"""Bugs in ``controlplane/core/bundles/names.py``."""

from typing import Final

from tests.mutants.mutant import Bug

_TESTS: Final = ("unit/core/bundles/shedding/test_exclusions.py",)

BUGS: Final = (
    Bug(
        "a host with a colon is taken for internal",
        "(?:pulsar|sla-monitor)/[^:/]+:[0-9]+",
        "(?:pulsar|sla-monitor)/[^/]+:[0-9]+",
        ("threshold_shed", "overload_shed", "uniform_shed", "avg_shed"),
        _TESTS,
    ),
)
