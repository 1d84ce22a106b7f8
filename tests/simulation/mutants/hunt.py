"""Plays a mutant's scene, or runs seeds against it, until something shows it."""

from typing import NamedTuple

from tests.simulation.invariants.verdicts import BrokenInvariantError
from tests.simulation.memo import decoding_once
from tests.simulation.mutants.mutant import Mutant
from tests.simulation.recreated import run_recreated
from tests.simulation.run import run
from tests.simulation.script import end_scripts


class Catch(NamedTuple):
    """How a mutant was found.

    Attributes:
        bug: which one.
        seeds: how many seeds it took; none if its scene was enough, all that were tried if it was not found.
        invariant: what it broke; empty if it was not found.
    """

    bug: str
    seeds: int
    invariant: str


def hunt(mutant: Mutant, at_most: int) -> Catch:
    """Play its scene if it has one, then try its seed, then seeds from 0 on."""
    one = run_recreated if mutant.recreated else run
    with mutant.applied():
        if mutant.scene is not None:
            try:
                with decoding_once():
                    mutant.scene()
            except BrokenInvariantError as error:
                return Catch(mutant.bug, 0, error.invariant)
            finally:
                end_scripts()
        first = [] if mutant.seed is None else [mutant.seed]
        for tried, seed in enumerate([*first, *range(at_most - len(first))], start=1):
            report = one(seed)
            if report.broken:
                return Catch(mutant.bug, tried, report.invariant)
    return Catch(mutant.bug, at_most, "")
