"""A small cluster with one handoff, of a slot's leadership or of a bundle; the log tells when each step is taken.

Four nodes. The first one has what is handed off, the last one is to have it next: it holds no bundle before, so that
placement chooses it as well.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import Enum
from functools import partial
from itertools import pairwise
from typing import Final

from controlplane.core.bundles.events import BundleOrdersEnded, BundlesAssigned, BundleSplit
from controlplane.core.bundles.orders import EndedOrder
from controlplane.core.bundles.ownership_state import OwnershipState
from controlplane.core.cluster.policy import ClusterPolicy
from controlplane.core.intents.events import IntentAnswered, IntentOutcome
from controlplane.core.log.decision import Decision
from controlplane.core.log.events import Event
from controlplane.core.log.state import State
from controlplane.core.routing.hashing import slot_of
from controlplane.core.slots.events import SlotHandoffsChanged, SlotsAssigned
from controlplane.core.values.identifiers import NodeId, SlotId
from controlplane.core.verification.invariants import check
from controlplane.node import Access, NodeAgent
from tests.simulation.handoffs.service import Misconduct, ScriptedService
from tests.simulation.scheduler import Process
from tests.simulation.script import Script, bounds_of
from tests.simulation.service import KEYS
from tests.simulation.setting import CONTROLLERS, NODES, Setting

OLD, OTHER, THIRD, NEXT = NODES[:4]
NAMESPACE: Final = "kv"
SETTING: Final = Setting(
    ClusterPolicy(
        slot_count=8,
        silence_limit_ms=2_000,
        join_linger_ms=100,
        handoff_limit_ms=4_000,
        copy_limit_ms=4_000,
    )
)
BOUNDS: Final = bounds_of(SETTING)
USUALLY_MS: Final = 1_000
"""Log time that a step takes at most if nothing holds it up."""
_WELL_WITHIN_MS: Final = 8_000
_RANGES_TILE: Final = "the bundles of a namespace tile its hash space"
_ONE_SERVES: Final = "every slot and every bundle is served by one living node at the end"


class Handoff(Enum):
    """What is handed off; the value is its name."""

    SLOT_WITH_COPY = "leadership with a copy"
    SLOT_IN_SYNC = "leadership in sync"
    UNLOAD = "unload"
    TRANSFER = "transfer"
    SPLIT = "split"
    SPLIT_BY_OWNER = "split where the owner finds the bounds"

    @property
    def is_of_slot(self) -> bool:
        """Whether it is that of a slot."""
        return self in {Handoff.SLOT_WITH_COPY, Handoff.SLOT_IN_SYNC}

    @property
    def is_split(self) -> bool:
        """Whether the owner stays."""
        return self in {Handoff.SPLIT, Handoff.SPLIT_BY_OWNER}


class Step(Enum):
    """A step; the value is its name."""

    ORDERED = "before prepare"
    """The operator asks just now."""
    PREPARE = "prepare"
    """The next leader begins to copy."""
    RELEASE = "release"
    """The slot leader, or the owner, is told to release."""
    ASSIGN = "assign"
    """The next leader leads the slot, or the next owner is told to open the bundle."""
    SERVE = "serve"
    """The next owner owns the bundle."""
    SPLITTING = "splitting"
    """The owner is told to divide the bundle."""
    CHILDREN = "children made"
    """The parts are there."""


STEPS: Final = {
    Handoff.SLOT_WITH_COPY: (Step.ORDERED, Step.PREPARE, Step.RELEASE, Step.ASSIGN),
    Handoff.SLOT_IN_SYNC: (Step.ORDERED, Step.RELEASE, Step.ASSIGN),
    Handoff.UNLOAD: (Step.ORDERED, Step.RELEASE, Step.ASSIGN, Step.SERVE),
    Handoff.TRANSFER: (Step.ORDERED, Step.RELEASE, Step.ASSIGN, Step.SERVE),
    Handoff.SPLIT: (Step.ORDERED, Step.SPLITTING, Step.CHILDREN),
    Handoff.SPLIT_BY_OWNER: (Step.ORDERED, Step.SPLITTING, Step.CHILDREN),
}
"""The steps of each handoff to which nothing happens, in order."""
_STEP_OF_ROW: Final = {
    OwnershipState.RELEASING: Step.RELEASE,
    OwnershipState.ASSIGNING: Step.ASSIGN,
    OwnershipState.OWNED: Step.SERVE,
    OwnershipState.SPLITTING: Step.SPLITTING,
}


@dataclass
class Scene(Script):
    """One handoff in a cluster that is well.

    Attributes:
        handoff: which one.
        next_node: the node that is next.
        misconduct: which callbacks of which nodes raise or hang.
        steps: the steps that the log shows, each with the log time of its decision.
        ended: the orders that have ended.
        mended: what undoes the faults that last.
        struck_at_ms: virtual time at which the fault has struck; None before.
    """

    setting: Setting = SETTING
    handoff: Handoff = Handoff.TRANSFER
    next_node: NodeId = NEXT
    misconduct: Misconduct = field(default_factory=Misconduct)
    steps: list[tuple[Step, int]] = field(default_factory=list)
    ended: list[EndedOrder] = field(default_factory=list)
    mended: list[Callable[[], object]] = field(default_factory=list)
    struck_at_ms: int | None = None
    _slot_id: SlotId = -1
    _bundle_id: str = ""
    _waits_for: Step | None = None
    _strike: Callable[["Scene"], object] = lambda _: None

    def start(self) -> None:
        """Start two controllers and four nodes, and create a namespace with a bundle for each node but the last."""
        self.log.on_decision += [self._note, self._see]
        self.world.new_service = partial(ScriptedService, self.misconduct)
        for name in CONTROLLERS[:2]:
            self.world.start_controller(name)
        for name in (OLD, OTHER, THIRD, NEXT):
            self.world.start_node(name)
        self.go_on_until(lambda: len(self.state.membership.nodes) == len((OLD, OTHER, THIRD, NEXT)), 2_000)
        self.ask("namespace", "create_namespace", namespace=NAMESPACE, bundles="3")
        self.go_on_until(lambda: not any(self.unserved()) and self.state.bundles.by_id, 3_000)
        served = {self._slot(key) for key in KEYS}
        slots = (slot for slot in self.state.slots.table if slot.leader == OLD and slot.slot_id in served)
        if self.handoff is Handoff.SLOT_IN_SYNC:
            slot = next(slots)
            (self.next_node,) = slot.followers
        else:
            slot = next(each for each in slots if NEXT not in each.followers)
        self._slot_id = slot.slot_id
        self._bundle_id = next(each.bundle_id for each in self.state.bundles.by_id.values() if each.owner == OLD)

    def order(self, strike: Callable[["Scene"], object], when: Step | None) -> None:
        """An operator orders the handoff, and something happens exactly when the log shows a step first."""
        self._strike, self._waits_for = strike, when
        if when is Step.ORDERED:
            self._strike_now()
        if self.handoff.is_of_slot:
            self.ask("order", "pin_slots", slots=str(self._slot_id), node=self.next_node, leads="true")
        elif self.handoff is Handoff.TRANSFER:
            self.ask("order", "transfer_bundles", bundles=self._bundle_id, node=NEXT)
        elif self.handoff is Handoff.UNLOAD:
            self.ask("order", "unload_bundles", bundles=self._bundle_id)
        elif self.handoff is Handoff.SPLIT:
            self.ask("order", "split_bundles", bundles=self._bundle_id, by="number", numbers="2")
        else:
            self.ask("order", "split_bundles", bundles=self._bundle_id, by="range_equally_divide")

    def to_the_end(self, within_ms: int, lasts_ms: int = 0) -> None:
        """Go on until the handoff has ended and what has happened has lasted, then mend it, and until all is well.

        Args:
            within_ms: virtual time within which the order has ended.
            lasts_ms: virtual time for which the fault lasts at least.
        """
        self.go_on_until(lambda: self.has_ended, within_ms)
        assert self.struck_at_ms is not None or self._waits_for is None, f"the log shows no {self._waits_for}"
        self.go_on(max((self.struck_at_ms or 0) + lasts_ms - self.world.scheduler.now_ms, 0))
        for mend in self.mended:
            mend()
        self.go_on_until(lambda: self.is_well() and self.has_ended and not any(self.unserved()), _WELL_WITHIN_MS)
        self.judge_end()
        check(self.state, {})
        self.verdicts.judge(_ONE_SERVES, not any(self.unserved()), lambda: list(self.unserved()))
        self.verdicts.require()

    @property
    def has_ended(self) -> bool:
        """Whether the order was answered, and nothing of it stands or is on its way."""
        state = self.state
        if not self.answered("order"):
            return False
        return not (state.slots.handoffs or state.slots.plan or state.bundles.orders or state.bundles.in_flight)

    @property
    def owner(self) -> NodeId | None:
        """The node that leads the slot, or owns the bundle or its first part; None without one."""
        if self.handoff.is_of_slot:
            return self.state.slots.table[self._slot_id].leader
        lower = int(self._bundle_id.rpartition("/")[2].partition("_")[0], 16)
        found = (each for each in self.state.bundles.by_id.values() if each.lower == lower)
        return next((each.owner for each in found), None)

    @property
    def bundle_id(self) -> str:
        """The bundle that is handed off."""
        return self._bundle_id

    @property
    def came_of_it(self) -> EndedOrder | None:
        """What came of the order for the bundle; None if none has ended."""
        return next((each for each in self.ended if each.bundle_id == self._bundle_id), None)

    def longest_step_ms(self) -> int:
        """The longest log time between two steps that the log shows."""
        return max((after - before for (_, before), (_, after) in pairwise(self.steps)), default=0)

    def answer(self, intent_id: str) -> IntentOutcome:
        """The answer to an intent that has one."""
        found = (each for each in self.events(IntentAnswered) if isinstance(each, IntentAnswered))
        return next(each.outcome for each in found if each.intent_id == intent_id)

    def upgrade(self, name: NodeId) -> None:
        """A node is drained, ends and is started again, and the cluster is well after that."""
        self.world.stop_node(name, drain=True)
        self.go_on_until(lambda: name not in self.world.agents, BOUNDS.unsaid_release_ms + _WELL_WITHIN_MS)
        self.world.start_node(name)
        self.go_on_until(lambda: self.is_well() and not any(self.unserved()), _WELL_WITHIN_MS)

    def unserved(self) -> Iterator[str]:
        """The keys that not exactly one node serves, by its slot or by its bundle."""
        for key in KEYS:
            for what, accepts in (("slot", _accepts_slot), ("bundle", _accepts_bundle)):
                names = [name for name, agent in self.world.agents.items() if accepts(agent, key)]
                if len(names) != 1 and (what == "slot" or self.state.bundles.namespaces):
                    yield f"{key} is served by {names}, by its {what}"

    def look(self, process: Process | None) -> None:
        """See :meth:`Script.look`; raw ownership is looked at after each turn of the two nodes, too."""
        if process is not None and process.name in {OLD, self.next_node} and not self.stops_watching:
            self.watches.planned.look()
        super().look(process)

    def _see(self, before: State, decision: Decision, after: State) -> None:
        for event in decision.events:
            if isinstance(event, BundleOrdersEnded):
                self.ended += event.ended
            for step in self._steps_of(event, before):
                self.steps.append((step, decision.decided_at_ms))
        self._judge_ranges(after)
        if self._waits_for in {step for step, _ in self.steps} and self.struck_at_ms is None:
            self._strike_now()

    def _strike_now(self) -> None:
        self.struck_at_ms = self.world.scheduler.now_ms
        self._strike(self)

    def _steps_of(self, event: Event, before: State) -> Iterator[Step]:
        match event:
            case SlotHandoffsChanged(handoffs=handoffs) if self.handoff.is_of_slot:
                mine = [each for each in handoffs if each.slot_id == self._slot_id]
                yield from (Step.RELEASE if each.releases else Step.PREPARE for each in mine)
            case SlotsAssigned(slots=slots) if self.handoff.is_of_slot:
                rows = [each for each in slots if each.slot_id == self._slot_id]
                former = before.slots.table[self._slot_id].leader if rows else None
                yield from (Step.ASSIGN for each in rows if each.leader != former)
            case BundlesAssigned(bundles=bundles) if not self.handoff.is_of_slot:
                states = (each.ownership_state for each in bundles if each.bundle_id == self._bundle_id)
                yield from (_STEP_OF_ROW[state] for state in states if state in _STEP_OF_ROW)
            case BundleSplit(bundle_id=self._bundle_id):
                yield Step.CHILDREN
            case _:
                pass

    def _judge_ranges(self, state: State) -> None:
        for namespace in state.bundles.namespaces:
            ranges = sorted(
                (each.lower, each.end) for each in state.bundles.by_id.values() if each.namespace == namespace
            )
            tiles = [0, *(end for _, end in ranges)] == [*(lower for lower, _ in ranges), 1 << 32]
            self.verdicts.judge(_RANGES_TILE, tiles, f"{namespace}: {ranges}")

    def _slot(self, key: str) -> SlotId:
        return slot_of(key, len(self.state.slots.table), self.state.cluster.policy.hash_function)


def scene(handoff: Handoff) -> Scene:
    """A cluster that is well, in which nothing was ordered yet."""
    begun = Scene("named", handoff=handoff)
    begun.start()
    return begun


def _accepts_slot(agent: NodeAgent, key: str) -> bool:
    table = agent.table
    return table is not None and agent.ownership(table.slot_for(key).slot_id).access is Access.ACCEPT


def _accepts_bundle(agent: NodeAgent, key: str) -> bool:
    return agent.bundle_of(NAMESPACE, key).access is Access.ACCEPT
