"""Bugs in ``controlplane/core/bundles/load/load_order.py``."""

from typing import Final

from tests.mutants.mutant import Bug

_TESTS: Final = ("unit/core/bundles/load/test_load_order.py",)

BUGS: Final = (
    Bug(
        "averages are rounded to the nearest cell",
        "_truncated(figure / step) for",
        "_rounded(figure / step) for",
        ("compare",),
    ),
    Bug(
        "samples are truncated to a cell",
        "_rounded(rates[0] / throughput)",
        "_truncated(rates[0] / throughput)",
        ("compare",),
    ),
    Bug(
        "half a cell is rounded down",
        "value - floor >= 0.5",
        "value - floor > 0.5",
        ("compare",),
        _TESTS,
    ),
    Bug(
        "the long term is compared before the short one",
        "return _load_figures(history.averages.short_term.load) + _load_figures(history.averages.long_term.load)",
        "return _load_figures(history.averages.long_term.load) + _load_figures(history.averages.short_term.load)",
        ("compare",),
    ),
    Bug(
        "producers do not count in the order of samples",
        "stats.topic_count + stats.consumer_count + stats.producer_count",
        "stats.topic_count + stats.consumer_count",
        ("compare",),
    ),
    Bug(
        "before the grid, a difference of the threshold itself counts",
        "if abs(one - other) > most:",
        "if abs(one - other) >= most:",
        (),
        _TESTS,
    ),
)
