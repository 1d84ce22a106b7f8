"""Bugs in ``controlplane/core/deciding/decide.py``."""

from typing import Final

from tests.mutants.mutant import Bug

BUGS: Final = (
    Bug(
        "a tick that names a decision of the future is believed",
        "_without_forged_ticks(state, since_last_decision(state, _without_old_news(state, observations)))",
        "since_last_decision(state, _without_old_news(state, observations))",
        tests=("unit/core/membership/test_brokers_clocks.py",),
    ),
)
