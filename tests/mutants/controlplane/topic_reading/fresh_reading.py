"""Bugs in ``controlplane/topic_reading/fresh_reading.py``: a table that may be too old is confirmed, or none is."""

from typing import Final

from tests.mutants.mutant import Bug

_SAFE: Final = "properties/test_fresh_reading.py::test_a_confirmed_table_holds_everything_that_was_committed_before"
_LIVE: Final = "properties/test_fresh_reading.py::test_epochs_that_never_cease_hold_no_confirmation_up"

BUGS: Final = (
    Bug(
        "a reading is confirmed one record before the high watermark",
        "offset >= self._until",
        "offset >= self._until - 1",
        tests=(_SAFE,),
    ),
    Bug(
        "a reading is confirmed by the high watermark of an earlier fetch",
        "self._until = None\n\n    def take",
        "self._until = self._until\n\n    def take",
        tests=(_SAFE,),
    ),
    Bug(
        "the last stable offset confirms a reading",
        "else end.high_watermark",
        "else end.offset",
        tests=(_SAFE,),
    ),
    Bug(
        "a reading follows the high watermark as it grows",
        "if self._until is None:",
        "if batch.records or batch.ended:",
        tests=(_LIVE,),
    ),
)
