"""A run whose events are written down instead of chosen: for cases that have a name."""

import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final
from unittest.mock import patch

from controlplane.core.cluster.events import TermOpened
from controlplane.core.cluster.image import ClusterImage
from controlplane.core.cluster.policy import HANDOFFS_FROM_LEVEL, ClusterPolicy
from controlplane.core.election.steps import ControllerPhase
from controlplane.core.log.decision import Decision
from controlplane.core.log.events import Event
from controlplane.core.log.state import State
from controlplane.core.values.identifiers import ControllerId, NodeId, Term
from controlplane.node import session_thread
from tests.helpers.fencing_bounds import Bounds
from tests.simulation.invariants.healing import what_did_not_heal
from tests.simulation.plan import Item
from tests.simulation.run import Run
from tests.simulation.scheduler import Process
from tests.simulation.setting import CLIENTS, CONTROLLERS, LEASE, NODES, Setting
from tests.simulation.world import World

SAME_LEADER: Final = "a leader that does what others could do is not replaced"
USUAL: Final = Setting(ClusterPolicy(slot_count=64, silence_limit_ms=2_000, join_linger_ms=100))


_UNDER_WAY: Final[list["Script"]] = []


@dataclass
class Script(Run):
    """A run in which all processes start at the beginning and the test causes all events. Every invariant is checked.

    Attributes:
        setting: the kind of cluster.
        decisions: all committed decisions.
    """

    setting: Setting = USUAL
    decisions: list[Decision] = field(default_factory=list)
    _watched: list[tuple[ControllerPhase, Callable[[str], None]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        """See :class:`Run`; it is ended by :func:`end_scripts`."""
        super().__post_init__()
        _UNDER_WAY.append(self)

    def choose_setting(self) -> Setting:
        """The one that was given."""
        return self.setting

    def items(self) -> tuple[Item, ...]:
        """Nothing by chance."""
        return ()

    def start(self) -> None:
        """Start all processes."""
        self.log.on_decision.append(self._note)
        for name in CONTROLLERS:
            self.world.start_controller(name)
        for name in NODES:
            self.world.start_node(name)
        for name in CLIENTS:
            self.world.start_client(name)

    def go_on(self, milliseconds: int) -> None:
        """Let virtual time pass."""
        self.world.scheduler.run_until(self.world.scheduler.now_ms + milliseconds, self.look)

    def go_on_until(self, condition: Callable[[], object], within_ms: int) -> None:
        """Let virtual time pass until something is so."""
        deadline_ms = self.world.scheduler.now_ms + within_ms
        while not condition():
            assert self.world.scheduler.now_ms < deadline_ms, f"it did not come true within {within_ms} ms"
            self.go_on(10)

    def when(self, step: ControllerPhase, happens: Callable[[str], None]) -> None:
        """Let something happen to the next controller that is in a step, once."""
        self._watched.append((step, happens))

    def look(self, process: Process | None) -> None:
        """See :meth:`Run.look`."""
        if self.stops_watching:
            return
        super().look(process)
        running = self.world.running.get(process.name) if process is not None else None
        if running is None or not self._watched:
            return
        step = running.controller.phase
        for watched in [each for each in self._watched if each[0] is step]:
            self._watched.remove(watched)
            watched[1](running.name)

    def pause(self, name: str, milliseconds: int) -> None:
        """Pause a process."""
        self.world.machines[name].process.paused_until_ms = self.world.scheduler.now_ms + milliseconds

    def require_same_leader(self, terms: Sequence[tuple[Term, ControllerId]], answered_within_ms: int) -> None:
        """An operator is answered soon again, all is well, and no term was opened since there were these."""
        self.ask("after", "exclude_node", node="n3")
        self.go_on_until(lambda: self.answered("after"), answered_within_ms)
        self.go_on_until(self.is_well, 8_000)
        self.verdicts.judge(SAME_LEADER, self.terms == list(terms), f"{self.terms[len(terms) :]} after {terms}")
        self.judge_end()

    def spread_heartbeats(self) -> None:
        """Pause each node beyond its next heartbeat, so that the heartbeats are spread over their interval."""
        names = sorted(self.world.agents)
        for number, name in enumerate(names):
            self.pause(name, 750 + number * 750 // len(names))
        self.go_on(2_000)

    def cut_fleet(self, *, off: bool) -> None:
        """Cut all nodes off from Kafka at one moment, or connect them again."""
        for name in self.world.agents:
            self.world.machines[name].network.kafka = not off
        if off:
            self.watches.cut.begin()

    def ask(self, intent_id: str, kind: str, **arguments: str) -> None:
        """An operator asks for something."""
        self.world.ask(intent_id, kind, arguments)

    def answered(self, intent_id: str) -> bool:
        """Whether an intent has its answer in the log."""
        return bool(self.log.answers[intent_id])

    @property
    def state(self) -> State:
        """The state by the log."""
        return self.log.state

    @property
    def leaders(self) -> list[str]:
        """The controllers that take themselves for the leader."""
        running = self.world.running.items()
        return [
            name
            for name, each in running
            if each.controller.phase in {ControllerPhase.LEADING, ControllerPhase.AWAITING_ANSWER}
        ]

    @property
    def terms(self) -> list[tuple[Term, ControllerId]]:
        """The terms that were opened until now, with their leaders, in order; also where checks are off."""
        self.log.look()
        return [(event.term, event.controller_id) for event in self.events(TermOpened) if isinstance(event, TermOpened)]

    def events(self, kind: type[Event]) -> list[Event]:
        """The committed events of a kind, in order."""
        return [event for decision in self.decisions for event in decision.events if isinstance(event, kind)]

    def is_well(self) -> bool:
        """Whether every condition of a quiet, healthy cluster holds."""
        return bool(self.leaders) and not any(what_did_not_heal(self.world, self.log))

    def _note(self, _: State, decision: Decision, __: State) -> None:
        self.decisions.append(decision)


def bounds_of(setting: Setting, brokers: int = 1) -> Bounds:
    """What is promised in such a cluster."""
    return Bounds(brokers, cluster=ClusterImage(setting.policy), lease=LEASE, tick_ms=setting.tick_interval_ms)


def begun(setting: Setting = USUAL) -> Script:
    """A cluster that is well."""
    script = Script("named", setting=setting)
    script.start()
    script.go_on_until(lambda: script.state.membership.nodes.keys() == set(NODES) and script.is_well(), 5_000)
    return script


@contextmanager
def agents_of_before() -> Iterator[None]:
    """All agents are of a release before handoffs: what is planned moves by one row, and nothing is released first."""
    with patch.object(session_thread, "HANDOFFS_FROM_LEVEL", sys.maxsize):
        yield


@contextmanager
def nodes_of_before(world: World, names: Collection[NodeId]) -> Iterator[None]:
    """The agents of these nodes are of such a release; the names may change, for processes that start from then on."""
    with patch.object(session_thread, "HANDOFFS_FROM_LEVEL", _LevelOf(world, names)):
        yield


class _LevelOf:
    """The level from which agents take part in handoffs, as the running process compares with it."""

    def __init__(self, world: World, names: Collection[NodeId]) -> None:
        self._world, self._names = world, names

    def __le__(self, level: int) -> bool:
        """Whether the running process hands off in a cluster of this level."""
        return level >= HANDOFFS_FROM_LEVEL and self._world.scheduler.running_name not in self._names


def end_scripts() -> None:
    """End the threads of every script: one that waits for ever keeps its world in memory."""
    while _UNDER_WAY:
        _UNDER_WAY.pop().world.scheduler.end()
