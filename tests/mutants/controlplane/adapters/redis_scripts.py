"""Bugs in ``controlplane/adapters/redis_scripts.py``, which simulated lease stores do not run."""

from typing import Final

from tests.mutants.mutant import Bug

_CONTRACT: Final = "contracts/test_lease_valkey.py::TestValkeyLease"
_MARKS: Final = (f"{_CONTRACT}::test_the_latest_mark_of_a_log_is_remembered",)
_ACKNOWLEDGEMENTS: Final = (
    f"{_CONTRACT}::test_the_latest_acknowledgement_of_another_contender_is_told",
    f"{_CONTRACT}::test_the_contender_that_misses_no_partition_is_told_of",
    "contracts/test_lease_valkey.py::test_a_note_from_a_time_ahead_is_replaced",
)

BUGS: Final = (
    Bug(
        "an older mark overwrites a later one",
        "if stored[1] == ARGV[1] and tonumber(stored[2] or '0') >= tonumber(ARGV[3]) then return {'kept'} end",
        "",
        tests=_MARKS,
    ),
    Bug(
        "a mark of a former log is kept",
        "if stored[1] == ARGV[1] and tonumber(stored[2] or '0') >=",
        "if tonumber(stored[2] or '0') >=",
        tests=_MARKS,
    ),
    Bug(
        "an earlier acknowledgement overwrites a later one",
        "if stored_ms > at_ms and stored_ms <= now_ms then return end",
        "",
        tests=_ACKNOWLEDGEMENTS,
    ),
    Bug(
        "an acknowledgement from a time ahead is kept",
        "if stored_ms > at_ms and stored_ms <= now_ms then return end",
        "if stored_ms > at_ms then return end",
        tests=_ACKNOWLEDGEMENTS,
    ),
    Bug(
        "the last acknowledgement is noted for the worst partition",
        "note('worst_owner', 'worst_at_ms', now_ms - tonumber(ARGV[3]))",
        "note('worst_owner', 'worst_at_ms', now_ms - tonumber(ARGV[2]))",
        tests=_ACKNOWLEDGEMENTS,
    ),
)
