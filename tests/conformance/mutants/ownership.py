"""Bugs in the rules for the ownership of bundles: conflicts and transitions."""

from typing import Final

from tests.conformance.mutants.mutant import Mutant

MUTANTS: Final[tuple[Mutant, ...]] = ()
