"""When the tasks of both load managers run, and what holds them back."""

from dataclasses import replace

import pytest

from controlplane.core.bundles.leading.manager_tasks import (
    Gate,
    Task,
    TaskAnswer,
    TaskFacts,
    TaskMemory,
    TaskRound,
    TaskSettings,
    due_tasks,
)
from controlplane.core.bundles.load.report_rule import ReportSettings
from controlplane.core.bundles.ownership_channel.settings import OwnershipSettings
from controlplane.core.bundles.profiles.composition import compose
from controlplane.core.bundles.profiles.values import PULSAR_2_MODULAR, PULSAR_4_2_EXTENSIBLE, PULSAR_4_2_MODULAR
from controlplane.core.bundles.settings.manager_settings import ManagerSettings, TaskPeriods
from controlplane.core.bundles.splitting.limits import SplitSettings

MODULAR = compose(PULSAR_4_2_MODULAR).settings(TaskSettings)
EXTENSIBLE = compose(PULSAR_4_2_EXTENSIBLE).settings(TaskSettings)
BOTH = pytest.mark.parametrize("settings", [MODULAR, EXTENSIBLE], ids=["modular", "extensible"])
LEADER = TaskFacts(is_leader=True, live_nodes=2, reporting_nodes=2, has_new_reports=True, has_new_stats=True)
FOLLOWER = replace(LEADER, is_leader=False)
START, SECOND, MINUTE = 1_000_000, 1_000, 60_000


def rounds(settings: TaskSettings, facts: TaskFacts, *times_ms: int, memory: TaskMemory | None = None) -> TaskRound:
    """The last of several rounds, the first of which is the node's start."""
    found = due_tasks(settings, memory or TaskMemory(), START, facts)
    for each in times_ms:
        found = due_tasks(settings, found.memory, START + each, facts)
    return found


def answer(found: TaskRound, task: Task) -> TaskAnswer:
    """The answer for one task."""
    return next(each for each in found.answers if each.task is task)


@pytest.mark.parametrize(
    ("settings", "task", "first_ms", "period_ms"),
    [
        (MODULAR, Task.MEASURE_HOST, 0, MINUTE),
        (MODULAR, Task.MEASURE_BUNDLES, MINUTE, MINUTE),
        (MODULAR, Task.REPORT, 5 * SECOND, 5 * SECOND),
        (MODULAR, Task.SHED, MINUTE, MINUTE),
        (MODULAR, Task.STORE_AVERAGES, 15 * MINUTE, 15 * MINUTE),
        (EXTENSIBLE, Task.MEASURE_HOST, 0, MINUTE),
        (EXTENSIBLE, Task.MEASURE_BUNDLES, MINUTE, MINUTE),
        (EXTENSIBLE, Task.REPORT, 5 * SECOND, 5 * SECOND),
        (EXTENSIBLE, Task.REPORT_BUSIEST, 5 * SECOND, 5 * SECOND),
        (EXTENSIBLE, Task.SPLIT, MINUTE, MINUTE),
        (EXTENSIBLE, Task.SHED, MINUTE, MINUTE),
        (EXTENSIBLE, Task.FIND_STUCK, 0, MINUTE),
        (EXTENSIBLE, Task.CHECK_ROLE, 2 * MINUTE, 2 * MINUTE),
    ],
)
def test_each_task_has_its_period(settings: TaskSettings, task: Task, first_ms: int, period_ms: int) -> None:
    """The periods are Pulsar's defaults."""
    at_start = due_tasks(settings, TaskMemory(), START, LEADER)
    assert (task in at_start.due) is (first_ms == 0)
    before = rounds(settings, LEADER, first_ms + period_ms - 1)
    assert answer(before, task).next_at_ms == START + first_ms + period_ms
    assert answer(before, task).gate is (None if first_ms else Gate.NOT_DUE)
    assert answer(rounds(settings, LEADER, first_ms, first_ms + period_ms - 1), task).gate is Gate.NOT_DUE
    assert answer(rounds(settings, LEADER, first_ms, first_ms + period_ms), task).gate is None


def test_periods_are_settings() -> None:
    """Each by its knob; a change counts from the task's last time on."""
    settings = TaskSettings(
        ManagerSettings(EXTENSIBLE.manager.manager),
        TaskPeriods(shed_min=2, split_min=3, host_usage_min=4, stats_s=7, first_stats_s=9),
        ReportSettings(interval_ms=100),
        SplitSettings(),
        OwnershipSettings(monitor_s=11),
    )
    found = due_tasks(settings, TaskMemory(), START, LEADER)
    assert {each.task: (each.next_at_ms or 0) - START for each in found.answers} == {
        Task.MEASURE_HOST: 4 * MINUTE,
        Task.MEASURE_BUNDLES: 9 * SECOND,
        Task.REPORT: 100,
        Task.REPORT_BUSIEST: 100,
        Task.SPLIT: 3 * MINUTE,
        Task.SHED: 2 * MINUTE,
        Task.FIND_STUCK: 11 * SECOND,
        Task.CHECK_ROLE: 2 * MINUTE,
    }
    faster = replace(settings, periods=TaskPeriods(shed_min=1))
    assert answer(due_tasks(faster, found.memory, START + MINUTE, LEADER), Task.SHED).gate is None
    averages = replace(MODULAR, periods=TaskPeriods(store_averages_min=1))
    assert answer(rounds(averages, LEADER, MINUTE), Task.STORE_AVERAGES).gate is None


@BOTH
def test_times_that_were_missed_are_left_out(settings: TaskSettings) -> None:
    """A node that was stopped for a while does not shed several times at once when it goes on."""
    late = rounds(settings, LEADER, 10 * MINUTE + 7)
    assert answer(late, Task.SHED) == (Task.SHED, None, START + 11 * MINUTE)
    again = due_tasks(settings, late.memory, START + 10 * MINUTE + 7, LEADER)
    assert answer(again, Task.SHED).gate is Gate.NOT_DUE
    # A clock that was set back waits for its old time.
    assert answer(due_tasks(settings, late.memory, START, LEADER), Task.SHED) == (
        Task.SHED,
        Gate.NOT_DUE,
        START + 11 * MINUTE,
    )


@pytest.mark.parametrize(
    ("settings", "tasks"),
    [
        (MODULAR, {Task.SPLIT, Task.SHED, Task.STORE_AVERAGES}),
        (EXTENSIBLE, {Task.SHED, Task.FIND_STUCK}),
    ],
)
def test_some_tasks_are_for_the_leader(settings: TaskSettings, tasks: set[Task]) -> None:
    """A new leader sheds a period after it has become one, whatever it did before. The search begins at once."""
    found = rounds(settings, FOLLOWER, 15 * MINUTE)
    assert {each.task for each in found.answers if each.gate is Gate.NOT_LEADER} == tasks
    elected = due_tasks(settings, found.memory, START + 15 * MINUTE + 1, LEADER)
    assert answer(elected, Task.SHED) == (Task.SHED, Gate.NOT_DUE, START + 16 * MINUTE + 1)
    assert (Task.FIND_STUCK in elected.due) is (settings is EXTENSIBLE)
    deposed = due_tasks(settings, elected.memory, START + 16 * MINUTE, FOLLOWER)
    again = due_tasks(settings, deposed.memory, START + 17 * MINUTE, LEADER)
    assert answer(again, Task.SHED).gate is Gate.NOT_DUE


@BOTH
@pytest.mark.parametrize(
    ("changed", "facts", "gate"),
    [
        (ManagerSettings(is_enabled=False), LEADER, Gate.BALANCER_OFF),
        (ManagerSettings(sheds=False), LEADER, Gate.SHEDDING_OFF),
        (ManagerSettings(), replace(LEADER, live_nodes=1), Gate.TOO_FEW_NODES),
        (ManagerSettings(), replace(LEADER, running=frozenset({Task.SHED})), Gate.STILL_RUNNING),
        (ManagerSettings(is_enabled=False, sheds=False), replace(LEADER, live_nodes=1), Gate.BALANCER_OFF),
        (ManagerSettings(), replace(LEADER, reporting_nodes=1, has_new_reports=False), None),
    ],
)
def test_what_holds_shedding_back(
    settings: TaskSettings, changed: ManagerSettings, facts: TaskFacts, gate: Gate | None
) -> None:
    """The first gate is the reason; the task is asked again a period later."""
    settings = replace(settings, manager=replace(changed, manager=settings.manager.manager))
    found = rounds(settings, facts, MINUTE)
    assert answer(found, Task.SHED) == (Task.SHED, gate, START + 2 * MINUTE)
    assert answer(due_tasks(settings, found.memory, START + MINUTE + 1, LEADER), Task.SHED).gate is Gate.NOT_DUE


@pytest.mark.parametrize(
    ("facts", "splits", "gate"),
    [
        (LEADER, True, None),
        (replace(LEADER, has_new_reports=False), True, Gate.NO_NEWS),
        (LEADER, False, Gate.SPLITTING_OFF),
        (FOLLOWER, True, Gate.NOT_LEADER),
        (replace(LEADER, reporting_nodes=1), True, Gate.TOO_FEW_NODES),
        (replace(LEADER, live_nodes=1), True, None),
    ],
)
def test_the_modular_leader_looks_for_splits_when_reports_have_changed(
    facts: TaskFacts, splits: bool, gate: Gate | None
) -> None:
    """It needs a second node with a report, to which a half could go."""
    settings = replace(MODULAR, split=replace(MODULAR.split, is_enabled=splits))
    found = due_tasks(settings, TaskMemory(), START, facts)
    assert answer(found, Task.SPLIT) == (Task.SPLIT, gate, None)
    # Every node takes the reports in, so that a new leader knows the averages.
    assert answer(found, Task.TAKE_REPORTS_IN).gate is (None if facts.has_new_reports else Gate.NO_NEWS)


def test_pulsar_2_splits_with_a_single_node() -> None:
    """It has no such gate."""
    settings = compose(PULSAR_2_MODULAR).settings(TaskSettings)
    found = due_tasks(settings, TaskMemory(), START, replace(LEADER, reporting_nodes=0))
    assert answer(found, Task.SPLIT).gate is None


@pytest.mark.parametrize(
    ("is_enabled", "splits", "facts", "gate"),
    [
        (True, True, FOLLOWER, None),
        (True, True, replace(FOLLOWER, live_nodes=1, has_new_stats=False), None),
        (False, True, LEADER, Gate.BALANCER_OFF),
        (True, False, LEADER, Gate.SPLITTING_OFF),
        (True, True, replace(LEADER, running=frozenset({Task.SPLIT})), Gate.STILL_RUNNING),
    ],
)
def test_every_extensible_owner_looks_for_splits(is_enabled: bool, splits: bool, facts: TaskFacts, gate: Gate) -> None:
    """It splits its own bundles, and needs neither a leader nor another node."""
    settings = replace(
        EXTENSIBLE,
        manager=replace(EXTENSIBLE.manager, is_enabled=is_enabled),
        split=replace(EXTENSIBLE.split, is_enabled=splits),
    )
    assert answer(rounds(settings, facts, MINUTE), Task.SPLIT).gate is gate


def test_reports() -> None:
    """The modular manager's depend on the switch; the extensible manager's busiest bundles need new figures."""
    off = replace(MODULAR, manager=replace(MODULAR.manager, is_enabled=False))
    assert answer(rounds(off, LEADER, 5 * SECOND), Task.REPORT).gate is Gate.BALANCER_OFF
    assert answer(rounds(off, LEADER, 15 * MINUTE), Task.STORE_AVERAGES).gate is Gate.BALANCER_OFF
    off = replace(EXTENSIBLE, manager=replace(EXTENSIBLE.manager, is_enabled=False))
    quiet = rounds(off, replace(LEADER, has_new_stats=False), 5 * SECOND)
    assert answer(quiet, Task.REPORT).gate is None
    assert answer(quiet, Task.REPORT_BUSIEST).gate is Gate.NO_NEWS
