"""Bugs in ``controlplane/core/bundles/splitting/named_algorithms.py``."""

from typing import Final

from tests.mutants.mutant import Bug

_TESTS: Final = ("unit/core/bundles/splitting/test_execution.py", "unit/core/bundles/splitting/test_algorithms.py")

BUGS: Final = (
    Bug(
        "an unknown algorithm is refused when a split is carried out",
        "return self.by_name.get(name, self.by_name[self.default])",
        "return self.configured(name)",
        (),
        _TESTS,
    ),
)
