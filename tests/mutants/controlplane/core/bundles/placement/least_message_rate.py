"""Bugs in ``controlplane/core/bundles/placement/least_message_rate.py``."""

from typing import Final

from tests.mutants.mutant import Bug

_TESTS: Final = ("unit/core/bundles/placement/test_strategies.py",)

BUGS: Final = (
    Bug(
        "least rate: a node at the threshold is overloaded",
        "if usage > self.settings.overloaded_percent / 100.0:",
        "if usage >= self.settings.overloaded_percent / 100.0:",
        ("select_least_long_term",),
        _TESTS,
    ),
    Bug(
        "least rate: preallocated bundles do not count",
        "return preallocated + node.averages.long_term.message_rate_per_s",
        "return node.averages.long_term.message_rate_per_s",
        ("select_least_long_term",),
    ),
    Bug(
        "least rate: preallocated bundles are added in another order",
        "for bundle in node.preallocated.values():",
        "for bundle in reversed(list(node.preallocated.values())):",
        ("select_least_long_term",),
        _TESTS,
    ),
    Bug(
        "least rate: the short term counts",
        "bundle.averages.long_term.load.message_rate_per_s",
        "bundle.averages.short_term.load.message_rate_per_s",
        ("select_least_long_term", "assign"),
        _TESTS,
    ),
)
