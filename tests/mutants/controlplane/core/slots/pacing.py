"""Bugs in ``controlplane/core/slots/pacing.py``."""

from typing import Final

from tests.mutants.mutant import Bug

_TESTS: Final = ("unit/core/deciding/test_slot_handoffs.py",)

BUGS: Final = (
    Bug(
        "lost followers are not replaced before the leadership has moved",
        "tuple(sorted([*left, *new[:places]]))",
        "tuple(sorted(left))",
        tests=_TESTS,
    ),
    Bug(
        "the dead stay in a row until its leadership has moved",
        "if name in request.survivors]",
        "if name]",
        tests=_TESTS,
    ),
    Bug(
        "a row that waits for its leadership gets more replicas than are planned",
        "places = max(len(planned.followers) - len(left), 0)",
        "places = len(planned.followers)",
        tests=_TESTS,
    ),
)
