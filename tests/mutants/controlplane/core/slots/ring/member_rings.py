"""Bugs in ``controlplane/core/slots/ring/member_rings.py``."""

from typing import Final

from tests.mutants.mutant import Bug

_TESTS: Final = ("unit/core/slots/test_member_rings.py",)

BUGS: Final = (
    Bug(
        "a joining node is not written to",
        "frozenset({MemberState.JOINING, MemberState.RUNNING, MemberState.MERGING})",
        "frozenset({MemberState.RUNNING, MemberState.MERGING})",
        (),
        _TESTS,
    ),
    Bug(
        "a node that missed writes is written to before it is given them",
        "frozenset({MemberState.JOINING, MemberState.RUNNING, MemberState.MERGING})",
        "frozenset(MemberState) - _NEVER_USED - {MemberState.NOT_JOINED}",
        (),
        _TESTS,
    ),
    Bug(
        "writes go to the primary ring only",
        "return (self.primary.replicas(key, count) | after) - {self.primary.owner(key)}",
        "return self.primary.replicas(key, count)",
        (),
        _TESTS,
    ),
    Bug(
        "the minority ring says who may be read",
        "return self.primary.replicas(key, count) | {self.primary.owner(key)}",
        "return self.minority.replicas(key, count) | {self.minority.owner(key)}",
        (),
        _TESTS,
    ),
    Bug(
        "a node that leaves twice takes places from others",
        "elif not wanted and node in ring.nodes:",
        "elif not wanted:",
        (),
        _TESTS,
    ),
)
