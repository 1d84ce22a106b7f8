"""Bugs in ``controlplane/node/slot_line.py``."""

from typing import Final

from tests.mutants.mutant import Bug

_TESTS: Final = ("unit/node/test_slot_line.py",)

BUGS: Final = (
    Bug(
        "a call that hangs holds up all slots",
        "        call.is_hung, self._running = True, None",
        "        call.is_hung = True",
        tests=_TESTS,
    ),
    Bug(
        "what is due for a slot does not wait for a call about it that hangs",
        "        waits: set[SlotId] = set().union(*(call.slot_ids for call in self._hung))",
        "        waits: set[SlotId] = set()",
        tests=_TESTS,
    ),
    Bug(
        "a change overtakes an earlier one of its slot that waits",
        "                self._behind.append(rest)\n                waits |= rest.slot_ids",
        "                self._behind.append(rest)",
        tests=_TESTS,
    ),
    Bug(
        "a release waits for the tables that were not told",
        "        self._news.appendleft(_Change(None, changes))",
        "        self._news.append(_Change(None, changes))",
        tests=_TESTS,
    ),
    Bug(
        "a further call is made however many hang",
        " or len(self._hung) >= self._settings.hung_calls_at_most:",
        ":",
        tests=_TESTS,
    ),
)
