"""One run: a cluster starts, works, is subject to its seed's faults, and has to be healthy at the end."""

import random
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from controlplane.core.election.steps import ControllerPhase
from controlplane.core.log.events import Event
from controlplane.core.values.identifiers import ControllerId, NodeId, Term
from controlplane.errors import ControlPlaneError
from controlplane.node import FencingToken
from tests.simulation.audit import AUDITED_ALIKE, what_the_audit_finds
from tests.simulation.fault_kinds import FaultKind
from tests.simulation.faults import HEALED_MS, Injector
from tests.simulation.invariants.bounds import LOOK_EVERY_MS
from tests.simulation.invariants.fencing import FencingWatch
from tests.simulation.invariants.healing import ALL_ANSWERED, LIVENESS, what_did_not_heal
from tests.simulation.invariants.log_watch import LogWatch
from tests.simulation.invariants.losses import LossWatch
from tests.simulation.invariants.ownership import OwnershipWatch
from tests.simulation.invariants.readers import ReaderWatch
from tests.simulation.invariants.table_readings import TableReadings
from tests.simulation.invariants.verdicts import BrokenInvariantError, Verdicts
from tests.simulation.invariants.watches import Watches
from tests.simulation.memo import decoding_once
from tests.simulation.plan import Item, choose_plan
from tests.simulation.scheduler import Process
from tests.simulation.service import KEYS
from tests.simulation.setting import (
    CLIENTS,
    CONTROLLERS,
    NODES,
    OBSERVER,
    Setting,
    SettingKind,
    choose_setting,
    with_unusual,
)
from tests.simulation.work_kinds import WorkKind
from tests.simulation.workload import Workload
from tests.simulation.world import World

ABOVE_FLOOR: Final = "every granted term is above the floor that was named"
NOT_ANOTHERS: Final = "no lease is granted while it is another's"
NO_PROCESS_ENDS: Final = "no process ends by itself"
END_MS: Final = 20_500
_USUAL_LIMIT_MS: Final = 3_000
LAST_CALL_MS: Final = 12_200
_LOOK_FOR_HEALING_MS: Final = 500
_ARRIVALS: Final = 5
_ARRIVAL_MS: Final = 100
_AUDITED_SEEDS: Final = ("4", "7")
"""Last digits: an audit costs nearly as much as a run."""


@dataclass(frozen=True)
class Report:
    """The result of a run.

    Attributes:
        seed: of the run.
        broken: what was wrong; empty if nothing was.
        invariant: which one did not hold; empty if all did.
        virtual_ms: how long it lasted.
        events: deliveries and wake-ups, those of ticks left out.
        decisions: that were committed.
        terms: that were opened.
        healed_ms: how long after the last fault everything was well again.
        faults: how many of each kind.
        work: how much of each kind.
        coverage: how many faults of each kind met a controller in each step of its loop.
        checked: how often each invariant was looked at.
        happened: the kinds of events that were committed.
        settings: what was unusual about its cluster.
    """

    seed: str
    broken: str
    invariant: str
    virtual_ms: int
    events: int
    decisions: int
    terms: int
    healed_ms: int
    faults: Counter[FaultKind]
    work: Counter[WorkKind]
    coverage: Counter[tuple[FaultKind, ControllerPhase]]
    checked: Counter[str]
    happened: frozenset[type[Event]]
    settings: frozenset[SettingKind]


@dataclass
class Run:
    """A run under way.

    Attributes:
        seed: its name, a number as text.
        only: the items of its plan that happen; None lets all.
        faults, work, coverage: what has happened, as in :class:`Report`.
        waiting: faults that wait for a controller in a certain step.
        stops_watching: whether checks are off, because the log now has decisions that this version cannot read.
    """

    seed: str
    only: Collection[int] | None = None
    faults: Counter[FaultKind] = field(default_factory=Counter)
    work: Counter[WorkKind] = field(default_factory=Counter)
    coverage: Counter[tuple[FaultKind, ControllerPhase]] = field(default_factory=Counter)
    waiting: list[Item] = field(default_factory=list)
    stops_watching: bool = False

    def __post_init__(self) -> None:
        """Create everything, without starting a process."""
        self.setting = self.choose_setting()
        self.world = World(self.seed, self.setting)
        self.verdicts = Verdicts()
        self.log = LogWatch(self.world, self.verdicts)
        self.readers = ReaderWatch(self.verdicts)
        fencing = FencingWatch(self.world, self.verdicts)
        self.log.on_decision.append(fencing.see)
        self.owners = OwnershipWatch(self.verdicts)
        readings = TableReadings(self.world)
        self.losses = LossWatch(self.world, self.verdicts, KEYS, readings)
        self.log.on_decision.append(self.losses.see)
        self.world.on_write = self._judge_write
        self.world.stores.on_grant = self._judge_grant
        self.injector = Injector(self.world)
        self.watches = Watches(self.world, self.log, self.verdicts, fencing, self.injector, readings)
        self.world.scheduler.at(LOOK_EVERY_MS, self._look_at_intervals)
        self.workload = Workload(self.world, lambda: self.log.state)
        self.healed_ms: int | None = None

    def choose_setting(self) -> Setting:
        """The kind of cluster."""
        usual = choose_setting(random.Random(f"setting of {self.seed}"))
        return with_unusual(usual, random.Random(f"unusual about {self.seed}"))

    def _judge_grant(self, owner: ControllerId, other: ControllerId, floor: Term, term: Term) -> None:
        self.verdicts.judge(ABOVE_FLOOR, term > floor, f"term {term} for {floor}")
        self.verdicts.judge(NOT_ANOTHERS, not other, f"{owner} is granted the lease of another process, {other}'s")

    def _judge_write(self, node_id: NodeId, process: object, key: str, token: FencingToken) -> None:
        self.owners.accepted(node_id, process, key, token)
        self.losses.accepted(node_id, key)

    def to_its_end(self) -> Report:
        """Run it to its end or to the first violation. Its threads end with it."""
        try:
            return self._report()
        finally:
            self.world.scheduler.end()

    def _report(self) -> Report:
        broken = invariant = ""
        try:
            self.begin()
            self.world.scheduler.run_until(self.end_ms, self.look)
            self._let_arrive()
            self.judge_end()
        except BrokenInvariantError as error:
            broken, invariant = f"at {self.world.scheduler.now_ms} ms: {error}", error.invariant
        return Report(
            self.seed,
            broken,
            invariant,
            self.world.scheduler.now_ms,
            self.world.scheduler.events,
            self.log.state.seq,
            self.log.state.term,
            self.healed_ms or 0,
            self.faults,
            self.work,
            self.coverage,
            self.verdicts.checked,
            frozenset(self.log.happened),
            self.setting.kinds,
        )

    def begin(self) -> None:
        """Start all processes, and schedule all work and faults."""
        world, at = self.world, self.world.scheduler.at
        self.workload.let_names_go(self.setting.gone_names)
        for name in CONTROLLERS:
            world.start_controller(name)
        if self.setting.has_observer:
            world.start_controller(OBSERVER, follow_only=True)
        for name in NODES:
            world.start_node(name)
        for name in CLIENTS:
            world.start_client(name)
        at(LAST_CALL_MS, self._call_last)
        at(random.Random(f"copy of {self.seed}").randint(1_000, 9_000), self.injector.remember_leases)
        for item in self.items():
            at(item.at_ms, partial(self._happen, item))
        at(HEALED_MS, self.world.broker.end_commit_faults)
        at(HEALED_MS, self.workload.tidy_up)
        at(HEALED_MS, self._look_for_healing)

    def items(self) -> tuple[Item, ...]:
        """The work and faults of the plan."""
        return choose_plan(self.seed, self.only)

    @property
    def end_ms(self) -> int:
        """When it ends: late enough for a node that dies last to be fenced, by a slow clock of a broker."""
        beyond_usual_ms = max(self.setting.policy.silence_limit_ms - _USUAL_LIMIT_MS, 0)
        return END_MS + beyond_usual_ms * 6 // 5

    def _happen(self, item: Item) -> None:
        if isinstance(item.kind, WorkKind):
            self.workload.do(item.kind, random.Random(item.seed), f"item-{item.number}")
            self.work[item.kind] += 1
        elif item.step is None:
            self._inject(item, item.kind, "")
        else:
            self.waiting.append(item)
            for name in CONTROLLERS:
                self._meet(name)

    def _inject(self, item: Item, kind: FaultKind, controller: str) -> None:
        """Let a fault happen, and note in which step it met the controller that it is about."""
        self.injector.leader = self.log.state.leader
        choose = random.Random(item.seed)
        met = controller or self.injector.choose_controller(choose)
        if met in self.world.running:
            self.coverage[kind, self.world.running[met].controller.phase] += 1
        self.injector.inject(kind, choose, met)
        self.faults[kind] += 1

    def _meet(self, name: str) -> None:
        """Let those faults happen that wait for the step in which this controller is now."""
        running = self.world.running.get(name)
        if running is None:
            return
        step = running.controller.phase
        met = next((item for item in self.waiting if item.step is step), None)
        if met is not None and isinstance(met.kind, FaultKind):
            self.waiting.remove(met)
            self._inject(met, met.kind, name)

    def _call_last(self) -> None:
        """What has waited in vain happens now."""
        waiting, self.waiting = self.waiting, []
        for item in waiting:
            if isinstance(item.kind, FaultKind):
                self._inject(item, item.kind, "")

    def look(self, process: Process | None) -> None:
        """Check the effects of the last turn, which was of ``process``, None for the world.

        Raises:
            BrokenInvariantError: something that must never be.
        """
        world = self.world
        self.log.look()
        if process is not None:
            shows = world.agents.get(process.name) or world.clients.get(process.name)
            if shows is not None:
                try:
                    table = shows.table
                except ControlPlaneError as error:
                    self.verdicts.judge(NO_PROCESS_ENDS, False, f"{process.name} follows no longer: {error}")
                else:
                    self.readers.look(process.name, process, table, self.log.states)
            elif self.waiting and process.name in CONTROLLERS:
                self._meet(process.name)
        self.judge_failures()
        self.verdicts.require()

    def judge_failures(self) -> None:
        """No process has a reason to end in a run like this."""
        failures = self.world.failures
        self.verdicts.judge(NO_PROCESS_ENDS, not failures, lambda: "; ".join(str(failure) for failure in failures))

    def _look_at_intervals(self) -> None:
        if not self.stops_watching:
            self.watches.look()
        self.world.scheduler.at(self.world.scheduler.now_ms + LOOK_EVERY_MS, self._look_at_intervals)

    def _look_for_healing(self) -> None:
        if not any(what_did_not_heal(self.world, self.log)):
            self.healed_ms = self.world.scheduler.now_ms - HEALED_MS
        else:
            self.world.scheduler.at(self.world.scheduler.now_ms + _LOOK_FOR_HEALING_MS, self._look_for_healing)

    def _let_arrive(self) -> None:
        """What was decided just now is on its way to its readers."""
        scheduler = self.world.scheduler
        for _ in range(_ARRIVALS):
            if any(what_did_not_heal(self.world, self.log)):
                scheduler.run_until(scheduler.now_ms + _ARRIVAL_MS, self.look)

    def judge_end(self) -> None:
        """Everything is well again.

        Raises:
            BrokenInvariantError: it is not.
        """
        missing = list(what_did_not_heal(self.world, self.log))
        self.verdicts.judge(LIVENESS, not missing, "; ".join(missing))
        unanswered = self.world.intents_sent - self.log.answers.keys()
        self.verdicts.judge(ALL_ANSWERED, not unanswered, sorted(unanswered))
        self.log.check_whole()
        if self.seed.endswith(_AUDITED_SEEDS):
            different = what_the_audit_finds(self.world)
            self.verdicts.judge(AUDITED_ALIKE, not different, different)
        self.verdicts.require()


def run(seed: int | str, only: Collection[int] | None = None) -> Report:
    """Run one seed to its end, or to the first violation."""
    with decoding_once():
        return Run(str(seed), only).to_its_end()
