"""Bugs in ``controlplane/core/bundles/placement/contract.py``."""

from typing import Final

from tests.mutants.mutant import Bug

BUGS: Final = (
    Bug(
        "the nodes with the most are kept instead of those with the least",
        "least = min(measured",
        "least = max(measured",
        ("even_bundles",),
    ),
)
