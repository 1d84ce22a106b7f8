"""Bugs in ``controlplane/inspection/auditing.py``."""

from typing import Final

from tests.mutants.mutant import Bug

_FILE: Final = "properties/test_audit.py"
_LIVING: Final = (f"{_FILE}::test_inputs_that_were_lost_are_waited_for_once_beside_a_cluster_that_goes_on",)

BUGS: Final = (
    Bug(
        "an end before the positions of a decision is taken for the end of the inputs",
        "return max(self._next[place], 0 if end is None else end.offset) < last",
        "return end is None and self._next[place] < last",
        tests=(f"{_FILE}::test_an_end_before_the_positions_of_a_decision_is_waited_for",),
    ),
    Bug(
        "records of other partitions count as news of the inputs that an audit misses",
        "progress=not brought.isdisjoint(missing)",
        "progress=bool(brought)",
        tests=_LIVING,
    ),
    Bug(
        "records that were appended after the reading began count as news of the inputs that an audit misses",
        "if record.offset < self._present.get(place, 0):",
        "if True:",
        tests=_LIVING,
    ),
    Bug(
        "an end in front of an open transaction is taken for the end of the inputs",
        "and not end.awaits_marker",
        "and True",
        tests=(f"{_FILE}::test_an_end_in_front_of_an_open_transaction_is_no_end",),
    ),
    Bug(
        "the end of a broker that lags is taken for the end of the inputs",
        "and self._present.get(place, 0) <= end.offset",
        "and True",
        tests=(f"{_FILE}::test_the_end_of_a_broker_that_lags_is_no_end",),
    ),
    Bug(
        "an end that was waited for is waited for again at each decision",
        "self._ends = {}\n        self._source.reader",
        "self._ends = {}\n        self._short = {}\n        self._source.reader",
        tests=_LIVING,
    ),
)
