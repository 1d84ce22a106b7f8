"""Bugs that are put in on purpose have to be found within a few seeds: a share of them with each change."""

import os
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial

import pytest

from tests.helpers.sizes import sized
from tests.simulation.many import prepare
from tests.simulation.memo import decoding_once
from tests.simulation.mutants.bugs import MUTANTS
from tests.simulation.mutants.hunt import hunt
from tests.simulation.mutants.mutant import Mutant

AT_MOST = 100
HUNTED = MUTANTS[:: sized(4, 1)]


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.bug.partition(":")[0])
def test_a_mutant_can_be_put_in(mutant: Mutant) -> None:
    """Its place in the code still exists. A change of that line has to change the mutant, too."""
    with mutant.applied():
        pass


@pytest.mark.slow
@pytest.mark.parametrize("scene", dict.fromkeys(mutant.scene for mutant in MUTANTS if mutant.scene))
def test_a_scene_is_well_without_its_bug(scene: Callable[[], None]) -> None:
    """A scene without its bug passes, so what it finds is the bug."""
    prepare()
    with decoding_once():
        scene()


@pytest.mark.slow
@pytest.mark.timeout(1_800)
def test_mutants_are_found() -> None:
    """A simulation that misses a bug like these would miss one that is not on purpose."""
    with ProcessPoolExecutor(os.cpu_count(), initializer=prepare) as pool:
        catches = list(pool.map(partial(hunt, at_most=AT_MOST), HUNTED))
    assert [catch.bug for catch in catches if not catch.invariant] == []
