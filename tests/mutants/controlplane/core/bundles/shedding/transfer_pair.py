"""Bugs in ``controlplane/core/bundles/shedding/transfer_pair.py``."""

from typing import Final

from tests.mutants.mutant import Bug

_TESTS: Final = ("unit/core/bundles/shedding/test_transfer.py",)

BUGS: Final = (
    Bug(
        "transfer: quirk D is gone: a swap's gain always counts",
        "if self.rules.counts_swap_gain:",
        "if True:",
        ("transfer_shed",),
    ),
    Bug(
        "transfer: the last reported bundle goes, too",
        "if remaining <= 1:",
        "if remaining < 1:",
        ("transfer_shed",),
    ),
    Bug(
        "transfer: a bundle that two nodes name moves twice",
        "self.view.top_bundles[self.busy], self.chosen)",
        "self.view.top_bundles[self.busy])",
        (),
        _TESTS,
    ),
    Bug(
        "transfer: a bundle that moves comes back in the same swap",
        "self.chosen, of_both))",
        "self.chosen))",
        (),
        _TESTS,
    ),
    Bug(
        "transfer: a bundle that reaches the target exactly needs a swap",
        "bundle.bytes_per_s > target:",
        "bundle.bytes_per_s >= target:",
        ("transfer_shed",),
        _TESTS,
    ),
    Bug(
        "transfer: each swap looks at all bundles again",
        "found = self._swap(in_exchange,",
        "found = self._swap(iter(self.view.top_bundles.get(self.idle, ())),",
        ("transfer_shed",),
        _TESTS,
    ),
    Bug(
        "transfer: a swap may leave the busy node as busy as it was",
        "_SWAP_SHARE: Final = 0.75",
        "_SWAP_SHARE: Final = 1.0",
        ("transfer_shed",),
        _TESTS,
    ),
    Bug(
        "transfer: a swap may not make both nodes equal",
        "if more <= rest < limit * _SWAP_SHARE:",
        "if more < rest < limit * _SWAP_SHARE:",
        ("transfer_shed",),
        _TESTS,
    ),
    Bug(
        "transfer: a swap may bring a node to the limit itself",
        "if new_rest < limit and new_more < limit:",
        "if new_rest <= limit and new_more <= limit:",
        ("transfer_shed",),
        _TESTS,
    ),
    Bug(
        "transfer: bundles with policies move",
        "if not self.rules.sheds_bundles_with_policies and",
        "if False and",
        ("transfer_shed",),
    ),
)
