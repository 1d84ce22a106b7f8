"""Bugs in ``controlplane/core/bundles/ownership_channel/flows.py``."""

from typing import Final

from tests.mutants.mutant import Bug

_TESTS: Final = ("unit/core/bundles/ownership_channel/test_flows.py",)

BUGS: Final = (
    Bug(
        "a former owner that was taken for dead keeps its clients when unloads have one phase",
        "return record.is_forced or (record.is_transfer and self.settings.unloads_in_phases)",
        "return record.is_transfer and self.settings.unloads_in_phases",
        (),
        _TESTS,
    ),
    Bug(
        "a transfer disconnects its clients at once",
        "state, disconnects = OwnershipState.ASSIGNING, not self.settings.unloads_in_phases",
        "state, disconnects = OwnershipState.ASSIGNING, True",
        (),
        _TESTS,
    ),
    Bug(
        "a freed bundle is deleted though nobody forced it",
        "case OwnershipState.FREE if record.is_forced:",
        "case OwnershipState.FREE:",
        (),
        _TESTS,
    ),
    Bug(
        "a node that shuts down ignores forced records",
        "if record is None or (self.is_disabled and not record.is_forced):",
        "if record is None or self.is_disabled:",
        (),
        _TESTS,
    ),
)
