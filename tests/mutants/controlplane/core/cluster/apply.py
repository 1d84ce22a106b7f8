"""Bugs in ``controlplane/core/cluster/apply.py``."""

from typing import Final

from tests.mutants.mutant import Bug

BUGS: Final = (
    Bug(
        "a limit that falls as the level rises shows in the table before",
        "return _dated(replace(cluster, feature_level=feature_level), Epoch(epoch + 1))",
        "return _dated(replace(cluster, feature_level=feature_level), epoch)",
        tests=("unit/core/membership/test_silence_limit.py",),
    ),
)
