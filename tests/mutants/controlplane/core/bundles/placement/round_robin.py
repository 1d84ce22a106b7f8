"""Bugs in ``controlplane/core/bundles/placement/round_robin.py``."""

from typing import Final

from tests.mutants.mutant import Bug

BUGS: Final = (
    Bug(
        "round robin: the count never starts again",
        "0 if memory.selection_count == _GREATEST_COUNT else memory.selection_count + 1",
        "memory.selection_count + 1",
        ("round_robin",),
    ),
    Bug(
        "round robin: the list is renewed at each selection",
        "if len(listed) != len(candidates) or listed[index] not in candidates:",
        "if True:",
        ("round_robin",),
    ),
)
