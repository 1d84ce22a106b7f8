"""All mutants."""

from typing import Final

from tests.conformance.mutants import filters, loads, ownership, placement, ring, shedding, splits, transfer

MUTANTS: Final = (
    *loads.MUTANTS,
    *shedding.MUTANTS,
    *transfer.MUTANTS,
    *filters.MUTANTS,
    *placement.MUTANTS,
    *splits.MUTANTS,
    *ownership.MUTANTS,
    *ring.MUTANTS,
)
