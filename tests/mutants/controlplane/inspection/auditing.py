"""Bugs in ``controlplane/inspection/auditing.py``."""

from typing import Final

from tests.mutants.mutant import Bug

_TESTS: Final = ("properties/test_audit.py",)

BUGS: Final = (
    Bug(
        "an end before the positions of a decision is taken for the end of the inputs",
        "return max(self._next[place], 0 if end is None else end.offset) < last",
        "return end is None and self._next[place] < last",
        tests=_TESTS,
    ),
    Bug(
        "ticks of a cluster that goes on count as news of the inputs that an audit misses",
        "progress=not brought.isdisjoint(missing)",
        "progress=bool(brought)",
        tests=_TESTS,
    ),
    Bug(
        "records that were appended after the reading began count as news of the inputs that an audit misses",
        "if record.offset < self._present.get(place, 0):",
        "if True:",
        tests=_TESTS,
    ),
    Bug(
        "an end in front of an open transaction is taken for the end of the inputs",
        "and not end.awaits_marker",
        "and True",
        tests=_TESTS,
    ),
    Bug(
        "the end of a broker that lags is taken for the end of the inputs",
        "and self._present.get(place, 0) <= end.offset",
        "and True",
        tests=_TESTS,
    ),
    Bug(
        "an end that was waited for is waited for again at each decision",
        "self._ends = {}\n        self._source.reader",
        "self._ends = {}\n        self._short = {}\n        self._source.reader",
        tests=_TESTS,
    ),
)
