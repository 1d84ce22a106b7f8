"""Which tasks of a load manager are due, and which gate holds one back.

Both managers of Pulsar run tasks by the clock, some on every node and some on the leader alone: the leader of the
modular manager, the owner of the ownership channel of the extensible one. A gate is asked when a task's time has come.
What a task's rule finds out itself, such as a load that has not changed enough to be reported, is that rule's answer.
"""

from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from enum import Enum
from typing import Final, NamedTuple

from controlplane.core.bundles.load.report_rule import ReportSettings
from controlplane.core.bundles.ownership_channel.settings import OwnershipSettings
from controlplane.core.bundles.settings.manager_settings import ManagerSettings, TaskPeriods
from controlplane.core.bundles.settings.managers import Manager, manager_named
from controlplane.core.bundles.splitting.limits import SplitSettings

_MS_PER_S: Final = 1_000
_MS_PER_MIN: Final = 60_000
_ROLE_CHECK_MS: Final = 120_000
_MIN_NODES_TO_SHED: Final = 2


class Task(Enum):
    """What a load manager does now and then."""

    MEASURE_HOST = "measure-host"
    """Measure the machine."""
    MEASURE_BUNDLES = "measure-bundles"
    """Measure the node's bundles."""
    REPORT = "report"
    """Refresh the node's load, and report it if ``load.report_rule`` says so."""
    REPORT_BUSIEST = "report-busiest"
    """Report the node's busiest bundles (extensible)."""
    TAKE_REPORTS_IN = "take-reports-in"
    """Fold all reports into the averages (modular)."""
    SPLIT = "split"
    """Look for bundles to split: those of all nodes (modular), or the node's own (extensible)."""
    SHED = "shed"
    """Look for bundles to unload, and unload them."""
    STORE_AVERAGES = "store-averages"
    """Take the reports in, and store the averages of bundles and nodes (modular)."""
    FIND_STUCK = "find-stuck"
    """Search the ownership table for what is stuck (extensible)."""
    CHECK_ROLE = "check-role"
    """Make sure that the node does what its role asks for, leader or not (extensible)."""


class Gate(Enum):
    """Why a task does not run now."""

    NOT_LEADER = "not-leader"
    """It is for the leader. Its first time comes a period after the node has become the leader."""
    NOT_DUE = "not-due"
    """Its time has not come."""
    NO_NEWS = "no-news"
    """Nothing has changed that it could take in."""
    BALANCER_OFF = "balancer-off"
    """``loadBalancerEnabled`` is off."""
    SHEDDING_OFF = "shedding-off"
    """``loadBalancerSheddingEnabled`` is off."""
    SPLITTING_OFF = "splitting-off"
    """``loadBalancerAutoBundleSplitEnabled`` is off."""
    TOO_FEW_NODES = "too-few-nodes"
    """There is no other node that could take a bundle."""
    STILL_RUNNING = "still-running"
    """The former run has not ended."""


@dataclass(frozen=True, slots=True)
class TaskSettings:
    """The settings on which periods and gates depend."""

    manager: ManagerSettings = field(default_factory=ManagerSettings)
    periods: TaskPeriods = field(default_factory=TaskPeriods)
    report: ReportSettings = field(default_factory=ReportSettings)
    split: SplitSettings = field(default_factory=SplitSettings)
    ownership: OwnershipSettings = field(default_factory=OwnershipSettings)


@dataclass(frozen=True, slots=True)
class TaskFacts:
    """What gates ask about.

    Attributes:
        is_leader: whether this node leads.
        live_nodes: number of registered nodes, this one included.
        reporting_nodes: number of nodes with a report.
        has_new_reports: a node came, went or reported since reports were last taken in (modular).
        has_new_stats: bundles were measured since the busiest were last reported (extensible).
        running: tasks whose former run has not ended.
    """

    is_leader: bool
    live_nodes: int
    reporting_nodes: int
    has_new_reports: bool = False
    has_new_stats: bool = False
    running: AbstractSet[Task] = frozenset()


class TaskAnswer(NamedTuple):
    """Whether a task runs now.

    Attributes:
        task: the task.
        gate: what holds it back; None if it runs now.
        next_at_ms: when its time comes next; None if it waits for news, or for its node to lead.
    """

    task: Task
    gate: Gate | None
    next_at_ms: int | None


@dataclass(frozen=True, slots=True)
class TaskMemory:
    """When the time of each task came last.

    Attributes:
        began_at_ms: by the task's value, the latest multiple of its period since it was started; the caller's clock.
    """

    began_at_ms: Mapping[str, int] = field(default_factory=dict)


class TaskRound(NamedTuple):
    """The answers for all tasks of a manager, in the order in which due ones run, and the new memory."""

    answers: tuple[TaskAnswer, ...]
    memory: TaskMemory

    @property
    def due(self) -> tuple[Task, ...]:
        """The tasks to run now, in order."""
        return tuple(each.task for each in self.answers if each.gate is None)


class _Row(NamedTuple):
    """A task of a manager.

    Attributes:
        task: the task.
        period_ms: its period; None for a task that runs upon news.
        gates: its gates, in the order in which they are asked.
        first_ms: the time to its first run; None for a period.
    """

    task: Task
    period_ms: Callable[[TaskSettings], int] | None
    gates: tuple[Gate, ...] = ()
    first_ms: Callable[[TaskSettings], int] | None = None


_MEASURING: Final = (
    _Row(Task.MEASURE_HOST, lambda its: its.periods.host_usage_min * _MS_PER_MIN, first_ms=lambda _its: 0),
    _Row(
        Task.MEASURE_BUNDLES,
        lambda its: its.periods.stats_s * _MS_PER_S,
        first_ms=lambda its: its.periods.first_stats_s * _MS_PER_S,
    ),
)
_SHEDDING: Final = _Row(
    Task.SHED,
    lambda its: its.periods.shed_min * _MS_PER_MIN,
    (Gate.NOT_LEADER, Gate.STILL_RUNNING, Gate.BALANCER_OFF, Gate.SHEDDING_OFF, Gate.TOO_FEW_NODES),
)
_TASKS: Final[Mapping[Manager, tuple[_Row, ...]]] = {
    Manager.MODULAR: (
        *_MEASURING,
        _Row(Task.REPORT, lambda its: its.report.interval_ms, (Gate.BALANCER_OFF,)),
        _Row(Task.TAKE_REPORTS_IN, None, (Gate.NO_NEWS,)),
        _Row(Task.SPLIT, None, (Gate.NO_NEWS, Gate.SPLITTING_OFF, Gate.NOT_LEADER, Gate.TOO_FEW_NODES)),
        _SHEDDING,
        _Row(
            Task.STORE_AVERAGES,
            lambda its: its.periods.store_averages_min * _MS_PER_MIN,
            (Gate.NOT_LEADER, Gate.BALANCER_OFF),
        ),
    ),
    Manager.EXTENSIBLE: (
        *_MEASURING,
        _Row(Task.REPORT, lambda its: its.report.interval_ms),
        _Row(Task.REPORT_BUSIEST, lambda its: its.report.interval_ms, (Gate.NO_NEWS,)),
        _Row(
            Task.SPLIT,
            lambda its: its.periods.split_min * _MS_PER_MIN,
            (Gate.STILL_RUNNING, Gate.BALANCER_OFF, Gate.SPLITTING_OFF),
        ),
        _SHEDDING,
        _Row(
            Task.FIND_STUCK,
            lambda its: its.ownership.monitor_s * _MS_PER_S,
            (Gate.NOT_LEADER, Gate.STILL_RUNNING),
            first_ms=lambda _its: 0,
        ),
        _Row(Task.CHECK_ROLE, lambda _its: _ROLE_CHECK_MS),
    ),
}


def due_tasks(settings: TaskSettings, memory: TaskMemory, now_ms: int, facts: TaskFacts) -> TaskRound:
    """The tasks that run now.

    A task's time comes at multiples of its period since it was started, which is the first call of this function; for a
    task of the leader, the first call in which the node leads. Times that were missed are left out. A time at which a
    gate holds the task back is over, too: the gate is asked again a period later. A change of a period counts from the
    last time on.

    Args:
        settings: periods and switches as they are now.
        memory: the memory that the former call returned; at first an empty one.
        now_ms: the node's clock.
        facts: what gates ask about.

    Raises:
        ConfigurationError: the settings name no known load manager.
    """
    began = dict(memory.began_at_ms)
    answers = []
    for row in _TASKS[manager_named(settings.manager.manager)]:
        task = row.task.value
        if row.period_ms is None:
            answers.append(TaskAnswer(row.task, _closed(row, settings, facts), None))
        elif Gate.NOT_LEADER in row.gates and not facts.is_leader:
            began.pop(task, None)
            answers.append(TaskAnswer(row.task, Gate.NOT_LEADER, None))
        else:
            period_ms = row.period_ms(settings)
            if task not in began:
                first_ms = period_ms if row.first_ms is None else row.first_ms(settings)
                began[task] = now_ms + first_ms - period_ms
            passed = (now_ms - began[task]) // period_ms
            gate = _closed(row, settings, facts) if passed > 0 else Gate.NOT_DUE
            began[task] += max(0, passed) * period_ms
            answers.append(TaskAnswer(row.task, gate, began[task] + period_ms))
    return TaskRound(tuple(answers), TaskMemory(began))


def _closed(row: _Row, settings: TaskSettings, facts: TaskFacts) -> Gate | None:
    """The first gate that holds the task back; None if none does."""
    splits = row.task is Task.SPLIT
    has_news = facts.has_new_stats if row.task is Task.REPORT_BUSIEST else facts.has_new_reports
    nodes = facts.reporting_nodes if splits else facts.live_nodes
    open_gates = {
        Gate.NOT_LEADER: facts.is_leader,
        Gate.NO_NEWS: has_news,
        Gate.BALANCER_OFF: settings.manager.is_enabled,
        Gate.SHEDDING_OFF: settings.manager.sheds,
        Gate.SPLITTING_OFF: settings.split.is_enabled,
        Gate.TOO_FEW_NODES: nodes >= (settings.split.min_nodes if splits else _MIN_NODES_TO_SHED),
        Gate.STILL_RUNNING: row.task not in facts.running,
    }
    return next((gate for gate in row.gates if not open_gates[gate]), None)
