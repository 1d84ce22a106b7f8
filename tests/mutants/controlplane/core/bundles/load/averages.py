"""Bugs in ``controlplane/core/bundles/load/averages.py``."""

from typing import Final

from tests.mutants.mutant import Bug

BUGS: Final = (
    Bug(
        "an average weighs its history with one sample too many",
        "before = count - 1",
        "before = count",
        ("time_average",),
    ),
    Bug(
        "an average is taken in another order of operations",
        "(before * old_in + new_in) / count",
        "old_in + (new_in - old_in) / count",
        ("time_average",),
    ),
    Bug(
        "the sums of a node's averages are taken in another order",
        "for bundle_id in bundle_ids:",
        "for bundle_id in reversed(list(bundle_ids)):",
        ("broker_average",),
    ),
    Bug(
        "the short term has eleven samples",
        "SHORT_TERM_SAMPLES: Final = 10",
        "SHORT_TERM_SAMPLES: Final = 11",
        ("fold",),
    ),
    Bug(
        "a bundle without a report is taken for idle",
        "UNSEEN_MESSAGE_RATE_PER_S: Final = 50.0",
        "UNSEEN_MESSAGE_RATE_PER_S: Final = 0.0",
        ("broker_average",),
    ),
)
