"""Bugs in ``controlplane/core/bundles/shedding/transfer.py``."""

from typing import Final

from tests.mutants.mutant import Bug

_TRANSFER_TESTS: Final = ("unit/core/bundles/shedding/test_transfer.py",)
_UNLOADING_TESTS: Final = ("unit/core/bundles/leading/test_unloading.py",)

BUGS: Final = (
    Bug(
        "transfer: the condition holds once too seldom",
        "if hits <= settings.hit_count:",
        "if hits < settings.hit_count:",
        ("transfer_shed",),
    ),
    Bug(
        "transfer: the target deviation itself is too much",
        "if self.spread.deviation > target:",
        "if self.spread.deviation >= target:",
        ("transfer_shed",),
        _TRANSFER_TESTS,
    ),
    Bug(
        "transfer: a sole reported bundle may go",
        "if reported <= 1:",
        "if reported < 1:",
        ("transfer_shed",),
        _TRANSFER_TESTS,
    ),
    Bug(
        "transfer: one pair more than the greatest number",
        "self._pairs < self._settings.max_pairs",
        "self._pairs <= self._settings.max_pairs",
        ("transfer_shed",),
    ),
    Bug(
        "transfer: hits stay after bundles have moved",
        "TransferMemory(0, unloaded)",
        "TransferMemory(hits, unloaded)",
        ("transfer_shed",),
    ),
    Bug(
        "transfer: a node cools down after an unload that failed",
        "if outcome is UnloadOutcome.UNLOADED else memory",
        "if outcome else memory",
        (),
        _UNLOADING_TESTS,
    ),
    Bug(
        "transfer: the least loaded node takes from every other",
        "self._least += 1",
        "self._least += 0",
        ("transfer_shed",),
    ),
)
