"""Bugs in ``controlplane/topic_reading/fresh_reading.py``: a table that may be too old is confirmed, or none is."""

from typing import Final

from tests.mutants.mutant import Bug

_SAFE: Final = "properties/test_fresh_reading.py::test_a_confirmed_table_holds_everything_that_was_committed_before"
_LOST: Final = "unit/topic_reading/test_table_ends.py::test_an_end_before_one_that_was_told_confirms_too"

BUGS: Final = (
    Bug(
        "a reading is confirmed one record before the high watermark",
        "offset >= self._until",
        "offset >= self._until - 1",
        tests=(_SAFE,),
    ),
    Bug(
        "a reading is confirmed by the high watermark of an earlier fetch",
        "self._until: int | None = None",
        "self._until: int | None = getattr(self, '_until', None)",
        tests=(_SAFE,),
    ),
    Bug(
        "the last stable offset confirms a reading",
        "end.high_watermark if self._until is None",
        "end.offset if self._until is None",
        tests=(_SAFE,),
    ),
    Bug(
        "one high watermark is believed, whichever broker answered it",
        "_TOLD_TWICE: Final = 2",
        "_TOLD_TWICE: Final = 1",
        tests=(_SAFE,),
    ),
    Bug(
        "of two high watermarks the lower one is believed",
        "max(self._until, mark)",
        "min(self._until, mark)",
        tests=(_SAFE,),
    ),
    Bug(
        "an end behind which the topic has lost records confirms nothing",
        "min(self._until, end.high_watermark)",
        "self._until",
        tests=(_LOST,),
    ),
)
