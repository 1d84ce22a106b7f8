"""Bugs in ``controlplane/topic_reading/table_follower.py``: when it says that the tables shown are the newest ones."""

from typing import Final

from tests.mutants.mutant import Bug

_SAFE: Final = "properties/test_fresh_reading.py::test_a_confirmed_table_holds_everything_that_was_committed_before"
_LIVE: Final = "properties/test_fresh_reading.py::test_epochs_that_never_cease_hold_no_confirmation_up"

BUGS: Final = (
    Bug(
        "every table that is shown is taken for the newest one",
        "confirms = confirms or self._fresh.holds_at(self._next_offset)",
        "confirms = True",
        tests=(_SAFE,),
    ),
    Bug(
        "an end alone confirms",
        "confirms = confirms or self._fresh.holds_at(self._next_offset)",
        "pass",
        tests=(_LIVE,),
    ),
    Bug(
        "a reading is not begun anew when it is asked for",
        "        self._fresh.begin()\n",
        "",
        tests=(_SAFE,),
    ),
)
