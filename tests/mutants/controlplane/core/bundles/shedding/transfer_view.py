"""Bugs in ``controlplane/core/bundles/shedding/transfer_view.py``."""

from typing import Final

from tests.mutants.mutant import Bug

_TESTS: Final = (
    "unit/core/bundles/shedding/test_transfer.py",
    "unit/core/bundles/shedding/test_exclusions.py",
    "unit/core/bundles/profiles/test_chosen_rules.py",
)

BUGS: Final = (
    Bug(
        "transfers: a node with a load that cannot be true stays in the view",
        "for node_id, load in view.loads.items() if wrong_nodes[node_id] is None}",
        "for node_id, load in view.loads.items()}",
        (),
        _TESTS,
    ),
    Bug(
        "transfers: a bundle with a throughput that cannot be true stays in the view",
        "tuple(each for each in bundles if is_plausible_amount(each.bytes_per_s))",
        "bundles",
        (),
        _TESTS,
    ),
)
