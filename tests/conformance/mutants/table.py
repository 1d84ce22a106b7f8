"""All mutants."""

from typing import Final

from tests.conformance.mutants import loads, ownership, placement, ring, shedding, splits

MUTANTS: Final = (
    *loads.MUTANTS,
    *shedding.MUTANTS,
    *placement.MUTANTS,
    *splits.MUTANTS,
    *ownership.MUTANTS,
    *ring.MUTANTS,
)
