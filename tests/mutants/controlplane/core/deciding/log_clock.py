"""Bugs in ``controlplane/core/deciding/log_clock.py``."""

from typing import Final

from tests.mutants.mutant import Bug

_TESTS: Final = ("unit/core/membership/test_forged_ticks.py",)

BUGS: Final = (
    Bug(
        "ticks from before a decision date it",
        "views[number].without_names_before(at_offset, note.seq, note.new_epoch)",
        "views[number]",
        tests=_TESTS,
    ),
    Bug(
        "ticks from before a table date it",
        "Epoch(state.epoch + (not has_changed_rows))",
        "Epoch(state.epoch + 1)",
        tests=_TESTS,
    ),
)
