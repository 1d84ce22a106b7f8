"""Bugs in ``controlplane/core/bundles/ownership_channel/cleanup.py``."""

from typing import Final

from tests.mutants.mutant import Bug

_TESTS: Final = ("unit/core/bundles/ownership_channel/test_lost_nodes.py",)

BUGS: Final = (
    Bug(
        "an overridden owner is not the source",
        "former_owner = former.destination if state is OwnershipState.OWNED else former.source",
        "former_owner = former.source",
        (),
        _TESTS,
    ),
    Bug(
        "an owner that gets its bundle again is its source",
        "source = None if former_owner == chosen else former_owner",
        "source = former_owner",
        (),
        _TESTS,
    ),
    Bug(
        "a node that shuts down releases a bundle to itself",
        "releases = gracefully and source is not None",
        "releases = gracefully",
        (),
        _TESTS,
    ),
    Bug(
        "a former owner's bundles are cleaned up with it",
        "if owns or (record.source == node_id and record.state.is_in_flight):",
        "if owns or (record.source == node_id and record.state.is_active):",
        (),
        _TESTS,
    ),
    Bug(
        "a namespace that only begins like the system's comes last",
        "namespace_of(bundle_id) == SYSTEM_NAMESPACE",
        "bundle_id.startswith(SYSTEM_NAMESPACE)",
        (),
        _TESTS,
    ),
    Bug(
        "a node that shuts down in health is not cleaned up",
        "if is_healthy and not gracefully:",
        "if is_healthy:",
        (),
        _TESTS,
    ),
)
