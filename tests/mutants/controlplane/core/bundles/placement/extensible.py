"""Bugs in ``controlplane/core/bundles/placement/extensible.py``."""

from typing import Final

from tests.mutants.mutant import Bug

_TESTS: Final = ("unit/core/bundles/placement/test_extensible.py",)

BUGS: Final = (
    Bug(
        "extensible: excluded nodes are candidates",
        "for node_id in context.registered if node_id not in excluded)",
        "for node_id in context.registered)",
        (),
        _TESTS,
    ),
    Bug(
        "extensible: a request that only reads chooses a node",
        "if read_only:",
        "if False:",
        (),
        _TESTS,
    ),
    Bug(
        "extensible: isolation stands before anti-affinity",
        "            AntiAffinityFilter(settings.uses_domains),\n"
        "            IsolationFilter(settings.skips_names_without_port),\n",
        "            IsolationFilter(settings.skips_names_without_port),\n"
        "            AntiAffinityFilter(settings.uses_domains),\n",
        (),
        _TESTS,
    ),
)
