"""Bugs in ``controlplane/core/bundles/load/leader_fold.py``."""

from typing import Final

from tests.mutants.mutant import Bug

_LEADER_FOLD_TESTS: Final = ("unit/core/bundles/load/test_leader_fold.py",)
_MODULAR_TESTS: Final = ("unit/core/bundles/placement/test_modular.py",)

BUGS: Final = (
    Bug(
        "quirk A is gone: an unchanged report is sampled once",
        "if settings.samples_unchanged_reports or before is None",
        "if before is None",
        ("fold",),
    ),
    Bug(
        "quirk B is gone: preallocations of other nodes stay",
        "ended |= preallocated.keys() - owned_by_leader",
        "pass",
        ("fold",),
    ),
    Bug(
        "a preallocation ends as soon as the bundle has a history",
        "ended = {each for each in preallocated if each in serves and each in bundles}",
        "ended = {each for each in preallocated if each in bundles}",
        ("fold",),
        _LEADER_FOLD_TESTS,
    ),
    Bug(
        "a preallocation to a node without a report never ends",
        "if node in serves else node in registered)",
        "if node in serves else True)",
        (),
        _LEADER_FOLD_TESTS,
    ),
    Bug(
        "a preallocation stays in the map of bundles when its node has reported it",
        "if (bundle not in serves[node] if",
        "if (True if",
        (),
        _LEADER_FOLD_TESTS,
    ),
    Bug(
        "a bundle that is assigned to another node stays preallocated to the former one",
        "if bundle_id in held:",
        "if False:",
        (),
        _MODULAR_TESTS,
    ),
    Bug(
        "bundles that nobody reports stay known",
        "else tuple(each for each in bundles if each not in reported)",
        "else ()",
        ("fold",),
    ),
    Bug(
        "preallocations of dead nodes stay",
        "loads.node_of_preallocated.items() if node not in gone}",
        "loads.node_of_preallocated.items()}",
        ("fold",),
        _LEADER_FOLD_TESTS,
    ),
    Bug(
        "a quota counts more than a stored history",
        "if bundle_id in self.histories:",
        "if bundle_id in self.histories and bundle_id not in self.quotas:",
        ("fold",),
        _LEADER_FOLD_TESTS,
    ),
    Bug(
        "as many histories are stored for all nodes as for one",
        "count = max_bundles_per_node * len(loads.nodes)",
        "count = max_bundles_per_node",
        ("fold",),
        _LEADER_FOLD_TESTS,
    ),
)
