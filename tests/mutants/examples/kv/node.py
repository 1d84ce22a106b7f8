"""Bugs in ``examples/kv/node.py``."""

from typing import Final

from tests.mutants.mutant import Bug

_TESTS: Final = ("examples/test_kv_tables.py",)
_DROPS_REWRITTEN_SLOTS: Final = """
        before = self._adopted
        if before is not None and table.epoch > before.epoch + 1:
            self._held -= {slot.slot_id for slot in table.slots if slot is not before.slots[slot.slot_id]}
        rows = {}
"""

BUGS: Final = (
    Bug(
        "a request drops slots whose rows were rewritten in skipped epochs",
        "\n        rows = {}\n",
        _DROPS_REWRITTEN_SLOTS,
        tests=_TESTS,
    ),
)
