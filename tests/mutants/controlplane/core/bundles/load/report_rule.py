"""Bugs in ``controlplane/core/bundles/load/report_rule.py``."""

from typing import Final

from tests.mutants.mutant import Bug

_TESTS: Final = ("unit/core/bundles/load/test_report_rule.py",)

BUGS: Final = (
    Bug(
        "the greatest age of a report is the interval itself",
        "age_ms > settings.max_interval_min",
        "age_ms >= settings.max_interval_min",
        ("need_update",),
        _TESTS,
    ),
    Bug(
        "a change of exactly the threshold is reported",
        "_greatest_change(changes, settings) > settings.threshold_percent",
        "_greatest_change(changes, settings) >= settings.threshold_percent",
        ("need_update",),
        _TESTS,
    ),
    Bug(
        "a load after none is no change",
        "return 0.0 if present == 0 else math.inf",
        "return 0.0",
        ("need_update",),
    ),
    Bug(
        "a change is a percentage of the present value",
        "abs((former - present) / former)",
        "abs((former - present) / (present or 1))",
        ("need_update",),
    ),
    Bug(
        "usages are compared in percent of the former one",
        "100.0 * abs(usages[0] - usages[1])",
        "percent_change(*usages)",
        ("need_update",),
    ),
    Bug(
        "a forced report is written without a session",
        "if not connected:",
        "if not connected and not forced:",
        (),
        _TESTS,
    ),
    Bug(
        "the extensible report ages from its measurement",
        "now_ms - local.reported_at_ms",
        "now_ms - local.updated_at_ms",
        (),
        _TESTS,
    ),
)
