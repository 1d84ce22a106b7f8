"""Bugs in ``controlplane/core/bundles/ownership_channel/monitor.py``."""

from typing import Final

from tests.mutants.mutant import Bug

_TESTS: Final = ("unit/core/bundles/ownership_channel/test_monitor.py",)

BUGS: Final = (
    Bug(
        "a change is stuck after exactly its time",
        "elif record.state.is_in_flight and age_ms > settings.in_flight_ms:",
        "elif record.state.is_in_flight and age_ms >= settings.in_flight_ms:",
        (),
        _TESTS,
    ),
    Bug(
        "a record is forgotten after exactly its time",
        "elif not record.state.is_active and age_ms > settings",
        "elif not record.state.is_active and age_ms >= settings",
        (),
        _TESTS,
    ),
    Bug(
        "of two lost nodes the destination comes first",
        "needed = (record.source, record.destination)",
        "needed = (record.destination, record.source)",
        (),
        _TESTS,
    ),
    Bug(
        "the table is searched while the session is jittery",
        "return None if state is MetadataState.STABLE else",
        "return None if state is not MetadataState.UNSTABLE else",
        (),
        _TESTS,
    ),
)
