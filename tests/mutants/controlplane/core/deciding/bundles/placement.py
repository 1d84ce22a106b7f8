"""Bugs in ``controlplane/core/deciding/bundles/placement.py``."""

from typing import Final

from tests.mutants.mutant import Bug

_TESTS: Final = ("unit/core/deciding/bundles/test_round_costs.py",)

BUGS: Final = (
    Bug(
        "a choice does not count for the next one",
        "heappush(heap, (count + 1, chosen))",
        "heappush(heap, (count, chosen))",
        tests=_TESTS,
    ),
    Bug(
        "a node that is passed by is forgotten",
        "count, chosen = heapreplace(heap, passed_by)",
        "count, chosen = heappop(heap)",
        tests=_TESTS,
    ),
)
