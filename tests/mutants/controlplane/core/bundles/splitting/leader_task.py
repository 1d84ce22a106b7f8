"""Bugs in ``controlplane/core/bundles/splitting/leader_task.py``."""

from typing import Final

from tests.mutants.mutant import Bug

BUGS: Final = (
    Bug(
        "short-term rates are compared with the limits",
        "history.averages.long_term.load.message_rate_per_s",
        "history.averages.short_term.load.message_rate_per_s",
        ("bundle_split",),
    ),
    Bug(
        "producers are no sessions",
        "latest.consumer_count + latest.producer_count",
        "latest.consumer_count",
        ("bundle_split",),
    ),
)
