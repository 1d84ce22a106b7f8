"""Seeds with every run of the tests. ``python -m tests.simulation`` runs more, with the same checks."""

import gc
import os
from collections import Counter
from contextlib import closing
from dataclasses import replace

import pytest

from tests.helpers.sizes import sized
from tests.simulation.audit import AUDITED_ALIKE
from tests.simulation.coverage import MEETS_ALL, what_is_missing
from tests.simulation.fault_kinds import FaultKind
from tests.simulation.many import prepare, run_all
from tests.simulation.plan import choose_plan
from tests.simulation.recreated import run_recreated
from tests.simulation.run import run
from tests.simulation.scheduler import SimulatedThread
from tests.simulation.script import begun, end_scripts
from tests.simulation.shrink import shrink
from tests.simulation.summary import Summary

pytestmark = pytest.mark.slow

AT_LEAST = sized(60, MEETS_ALL)


@pytest.mark.timeout(1_800)
def test_seeds_break_nothing() -> None:
    """All seeds pass, with every kind of fault. No run is small, and together they cover every invariant and event.

    Enough of them run to cover these.
    """
    summary = Summary()
    with closing(run_all(range(MEETS_ALL), os.cpu_count())) as reports:
        for report in reports:
            assert not report.broken, f"python -m tests.simulation --seed {report.seed}"
            summary.add(report)
            if summary.runs >= AT_LEAST and not [*what_is_missing(summary)]:
                break
    assert [*what_is_missing(summary)] == []


def test_runs_that_meet_too_little_are_named() -> None:
    """Passing seeds prove nothing about what none of them did. This one is not audited."""
    prepare()
    summary = Summary()
    summary.add(replace(run(8), faults=Counter()))
    invariants, events, settings, size = what_is_missing(summary)
    assert AUDITED_ALIKE in invariants
    assert "every kind of event" in events
    assert "no run had a cluster with" in settings
    assert "are (0, 0, " in size


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
