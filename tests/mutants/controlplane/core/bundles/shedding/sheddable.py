"""Bugs in ``controlplane/core/bundles/shedding/sheddable.py``."""

from typing import Final

from tests.mutants.mutant import Bug

_TESTS: Final = ("unit/core/bundles/shedding/test_exclusions.py",)

BUGS: Final = (
    Bug(
        "bundles are taken beyond a target that is reached exactly",
        "if chosen and not marked < target:",
        "if chosen and not marked <= target:",
        ("threshold_shed", "overload_shed"),
        _TESTS,
    ),
    Bug(
        "the least busy bundles are taken first",
        ", reverse=True)",
        ")",
        ("threshold_shed", "overload_shed", "uniform_shed", "avg_shed"),
    ),
    Bug(
        "equally busy bundles are taken in reverse order",
        "measured.sort(key=lambda each: total_order(each.traffic), reverse=True)",
        "measured.sort(key=lambda each: total_order(each.traffic))\n    measured.reverse()",
        ("threshold_shed", "overload_shed", "uniform_shed", "avg_shed"),
    ),
    Bug(
        "long-term traffic decides which bundle is taken",
        "measure(each.averages.short_term.load)",
        "measure(each.averages.long_term.load)",
        ("threshold_shed", "overload_shed", "uniform_shed", "avg_shed"),
        _TESTS,
    ),
    Bug(
        "bundles of a node's own namespaces are unloaded",
        " and not serves_health_checks(namespace_of(bundle_id))",
        "",
        ("threshold_shed", "overload_shed", "uniform_shed", "avg_shed"),
        _TESTS,
    ),
    Bug(
        "bundles that were unloaded recently are unloaded again",
        "if bundle_id not in view.recently_unloaded and",
        "if",
        ("threshold_shed", "overload_shed", "uniform_shed", "avg_shed"),
    ),
)
