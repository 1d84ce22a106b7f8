"""Bugs in ``controlplane/node/session_thread.py``."""

from typing import Final

from tests.mutants.mutant import Bug

_TESTS: Final = ("unit/node/test_heartbeats.py",)
_SETTINGS_OF_THE_TABLE_SHOWN: Final = """
            report.settings and report.settings._replace(slot_count=self._shared.table.settings.slot_count),
            report.statuses,
"""

BUGS: Final = (
    Bug(
        "the settings of a heartbeat are those of an older table than its slots",
        "\n            report.settings,\n            report.statuses,\n",
        _SETTINGS_OF_THE_TABLE_SHOWN,
        tests=_TESTS,
    ),
)
