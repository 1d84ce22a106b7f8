"""Bugs in ``controlplane/service/look_back.py``."""

from typing import Final

from tests.mutants.mutant import Bug

_TESTS: Final = ("unit/service/test_input_reader.py",)

BUGS: Final = (
    Bug(
        "a controller that starts reads back without a bound",
        "firsts[place] = max(found[place], ends[place] - LOOK_BACK_RECORDS)",
        "firsts[place] = found[place]",
        tests=_TESTS,
    ),
)
