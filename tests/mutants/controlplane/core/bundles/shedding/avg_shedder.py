"""Bugs in ``controlplane/core/bundles/shedding/avg_shedder.py``."""

from typing import Final

from tests.mutants.mutant import Bug

_TESTS: Final = ("unit/core/bundles/shedding/test_avg_shedder.py",)

BUGS: Final = (
    Bug(
        "avg: a difference of the low threshold itself is no hit",
        "if difference < settings.low_difference:",
        "if difference <= settings.low_difference:",
        ("avg_shed",),
        _TESTS,
    ),
    Bug(
        "avg: a difference of the high threshold itself is no hit",
        "if difference < settings.high_difference:",
        "if difference <= settings.high_difference:",
        ("avg_shed",),
        _TESTS,
    ),
    Bug(
        "avg: a rate of the minimum itself is moved",
        "if by_rate.measured > by_rate.limit:",
        "if by_rate.measured >= by_rate.limit:",
        ("avg_shed",),
        _TESTS,
    ),
    Bug(
        "avg: a bundle that fits exactly stays",
        "if 0 < bundle.traffic <= remaining:",
        "if 0 < bundle.traffic < remaining:",
        ("avg_shed",),
        _TESTS,
    ),
    Bug(
        "avg: the node in the middle has no pair",
        "range((len(by_score) + 1) // 2)",
        "range(len(by_score) // 2)",
        ("avg_shed",),
    ),
    Bug(
        "avg: one hit more than needed",
        "counts.setdefault(node_id, 0) >= needed",
        "counts.setdefault(node_id, 0) > needed",
        ("avg_shed",),
    ),
    Bug(
        "avg: a missing count does not become 0",
        "counts.setdefault(node_id, 0)",
        "counts.get(node_id, 0)",
        ("avg_shed",),
    ),
    Bug(
        "avg: 4.2.4 plans by the bundle's name",
        "return view.bundles.get(bundle_id, BundleHistory(UNSEEN_BUNDLE))",
        "return None",
        ("avg_shed",),
        _TESTS,
    ),
    Bug(
        "avg: a plan by name leads to an overloaded node",
        "if self.settings.plans_by_averages or not self._is_overloaded(planned.node_id, view):",
        "if True:",
        ("avg_shed",),
        _TESTS,
    ),
    Bug(
        "avg: a plan is not followed",
        "return (planned.node_id,)",
        "return by_name",
        ("avg_shed",),
        _TESTS,
    ),
)
