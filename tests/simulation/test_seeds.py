"""Some hundred seeds with every run of the tests; many more with ``python -m tests.simulation``."""

import gc
import os
from collections import Counter

import pytest

from controlplane.core.cluster.events import FeatureLevelRaised
from controlplane.core.log.events import EVENT_TYPES, Event
from tests.simulation.audit import AUDITED_ALIKE
from tests.simulation.fault_kinds import FaultKind
from tests.simulation.invariants.fencing import DEAD_ARE_FENCED, HEARD_IN_TIME
from tests.simulation.invariants.healing import ALL_ANSWERED, LIVENESS
from tests.simulation.invariants.log_watch import ANSWERED_ONCE, CONTINUES, KEPT, ONE_LEADER, POSITIONS, WHOLE
from tests.simulation.invariants.losses import STOPS_IN_TIME
from tests.simulation.invariants.ownership import ONE_OWNER
from tests.simulation.invariants.readers import ALIKE, COMMITTED, FORWARD
from tests.simulation.many import prepare, run_all
from tests.simulation.plan import choose_plan
from tests.simulation.recreated import run_recreated
from tests.simulation.run import ABOVE_FLOOR, NO_PROCESS_ENDS, NOT_ANOTHERS, run
from tests.simulation.scheduler import SimulatedThread
from tests.simulation.script import begun, end_scripts
from tests.simulation.shrink import shrink

NEVER = {FeatureLevelRaised}
"""A log of the simulation begins at the newest level; tests/integration/test_feature_levels.py raises one."""

pytestmark = pytest.mark.slow

SEEDS = range(500)
INVARIANTS = frozenset(
    {
        ABOVE_FLOOR,
        ALIKE,
        ALL_ANSWERED,
        ANSWERED_ONCE,
        AUDITED_ALIKE,
        COMMITTED,
        CONTINUES,
        DEAD_ARE_FENCED,
        FORWARD,
        HEARD_IN_TIME,
        KEPT,
        LIVENESS,
        NO_PROCESS_ENDS,
        NOT_ANOTHERS,
        ONE_LEADER,
        ONE_OWNER,
        POSITIONS,
        STOPS_IN_TIME,
        WHOLE,
    }
)


@pytest.mark.timeout(1_800)
def test_seeds_break_nothing() -> None:
    """Whatever their faults are; no run is a small one, and every invariant is really looked at."""
    checked: Counter[str] = Counter()
    happened: set[type[Event]] = set()
    for report in run_all(SEEDS, os.cpu_count()):
        assert not report.broken, f"python -m tests.simulation --seed {report.seed}"
        assert len(report.faults) >= 4
        assert report.faults.total() >= 6
        assert report.events >= 2_000
        assert report.virtual_ms >= 20_000
        checked += report.checked
        happened |= report.happened
    assert checked.keys() == INVARIANTS
    assert set(EVENT_TYPES) - happened == NEVER, "tests/simulation/workload.py has to let every kind of event happen"


def test_a_seed_is_a_run() -> None:
    """The same faults, the same turns, the same decisions: a failing seed can be looked at again."""
    prepare()
    assert run(7) == run(7)


def test_a_run_leaves_no_thread_behind() -> None:
    """One that still waits would keep its whole world in memory: ten thousand runs would take it all, and crawl."""
    prepare()
    before = _threads_in_memory()
    run(7)
    run_recreated(7)
    begun()
    end_scripts()
    assert _threads_in_memory() == before


def _threads_in_memory() -> int:
    gc.collect()
    return sum(isinstance(thing, SimulatedThread) for thing in gc.get_objects())


def test_partitions_are_added_by_one_item_of_a_plan_at_most() -> None:
    """It adds some twice; topics of a cluster that somebody runs do not grow all the time."""
    counts = [sum(item.kind is FaultKind.PARTITIONS_ADDED for item in choose_plan(str(seed))) for seed in range(200)]
    assert set(counts) == {0, 1}


def test_shrinking_keeps_what_is_needed() -> None:
    """A plan that fails because of two of its items is shrunk to these two."""
    items = choose_plan("7")
    needed = {items[2].number, items[-3].number}
    tried = []

    def fails(only: frozenset[int]) -> bool:
        tried.append(only)
        return needed <= only

    assert {item.number for item in shrink(items, fails)} == needed
    assert len(tried) < 5 * len(items)


def test_an_item_does_the_same_without_the_others() -> None:
    """Otherwise a shrunk run would be another one."""
    items = choose_plan("7")
    assert choose_plan("7", frozenset({items[4].number})) == (items[4],)
