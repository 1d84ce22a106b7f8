"""Bugs in ``controlplane/core/deciding/decide.py``."""

from typing import Final

from tests.mutants.mutant import Bug

BUGS: Final = (
    Bug(
        "a tick that names a decision of the future is believed",
        "believed = _without_forged_ticks(state, observations)",
        "believed = observations",
        tests=("unit/core/membership/test_brokers_clocks.py",),
    ),
    Bug(
        "a deposed leader forgets the ticks of its successors",
        "believed = _without_forged_ticks(state, observations)",
        "believed = observations = _without_forged_ticks(state, observations)",
        tests=("unit/core/membership/test_brokers_clocks.py",),
    ),
)
