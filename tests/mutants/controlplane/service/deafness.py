"""Bugs in ``controlplane/service/deafness.py``."""

from typing import Final

from tests.mutants.mutant import Bug

BUGS: Final = (
    Bug(
        "takes a record for unread that cannot be read now",
        "if place not in ends:  # no controller could read it now",
        "ends = {place: 0, **ends}\n            if False:",
        tests=("unit/service/test_deafness.py",),
    ),
)
