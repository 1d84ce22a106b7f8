"""What can happen to handoffs: three nodes, one bundle and one slot, and the real decisions of leaders that die.

Nodes are simple here: what a row asks of them they have done once they have read it, and they serve by the table that
they read last for as long as that is valid. Each of them reads the table, is heard and dies at any moment; each leader
dies at any moment, and the next one knows only what stands in the logs. Time passes at any moment, too: as long as a
death needs to be noticed, or as long as a release is waited for. Everybody who lives is heard meanwhile, and a reading
that is not of the newest table has ended after it.
"""

from collections.abc import Callable, Hashable, Iterator
from copy import copy
from dataclasses import replace
from functools import partial
from typing import Final, Self

from controlplane.config import HEARTBEATS, MAX_TICK_GAP_MS, MEMBERSHIP
from controlplane.core.bundles.bundle import Bundle
from controlplane.core.bundles.ownership_state import OwnershipState
from controlplane.core.cluster.policy import ClusterPolicy
from controlplane.core.deciding.consent import release_bound_ms
from controlplane.core.deciding.decide import decide
from controlplane.core.intents.intent import IntentKind
from controlplane.core.log.draft import SealedDecision
from controlplane.core.membership.inputs import Heartbeat, NodeJoined
from controlplane.core.membership.node import NodeRole
from controlplane.core.slots.table import Slot
from controlplane.core.values.addresses import Address
from controlplane.core.values.identifiers import Epoch, NodeId
from controlplane.core.values.partitioning import partition_of
from controlplane.errors import ControlPlaneError
from tests.exploration.handoff_nodes import Process, Reading, heartbeat_of, overlap_of
from tests.exploration.handoff_rows import death_row, phase_of, rows_of_decision
from tests.helpers.world import PARTITIONS, World

OLD, NEXT, SPARE = NODES = ("n1", "n2", "n3")
NAMESPACE: Final = "kv"
_POLICY: Final = ClusterPolicy(
    slot_count=1,
    join_linger_ms=0,
    protected_ratio=1.0,
    handoff_limit_ms=8_000,
    copy_limit_ms=8_000,
)
_SHORT_MS: Final = 3_000
"""Longer than the silence limit."""
_LONG_MS: Final = release_bound_ms(_POLICY.silence_limit_ms) + 600
"""Longer than everything else that is waited for."""
_BUCKET_MS: Final = 3_000
_REMEMBERED_MS: Final = 60_000
_BEAT_MS: Final = 1_000
_ROUNDS: Final = 5
"""Times that everybody reads, is heard and decides until nothing is left to do but to wait."""


class Handoffs(World):
    """A cluster in which one handoff is under way.

    Attributes:
        processes: of each node, by name.
        broken: what must not be and is; empty if nothing is wrong.
        rows: the rows of the machine that the last step has used.
    """

    def __init__(self, replica_count: int = 1, *, has_bundle: bool = True) -> None:
        """Three nodes. The first one leads the slot, and owns the bundle if there is one."""
        self.processes: dict[NodeId, Process] = {}
        self.broken = ""
        self.rows: frozenset[str] = frozenset()
        super().__init__(replace(_POLICY, replica_count=replica_count))
        for name in NODES:
            self.start(name)
            self.decide_now()
            if name == OLD and has_bundle:
                self.ordered(IntentKind.CREATE_NAMESPACE, namespace=NAMESPACE, bundles="1")
        for name in NODES:
            self.read(name)
            self.beat(name)
        self.decide_now()

    def fork(self) -> Self:
        """The same world, of which another future may be tried."""
        other = copy(self)
        other.offsets, other.inputs = self.offsets.copy(), [*self.inputs]
        other.observed_from, other._waiting = dict(self.observed_from), [*self._waiting]  # noqa: SLF001 - of its own
        other.processes, other.decisions, other.refusals = dict(self.processes), [], []
        other.rows = frozenset()
        return other

    def ordered(self, kind: IntentKind, **arguments: str) -> Self:
        """This world after an operator has asked for something."""
        self.intent(kind.value, kind.value, **arguments)
        self.decide_now()
        return self

    def ways(self) -> Iterator[tuple[str, Callable[["Handoffs"], object]]]:
        """What can happen next: what it is called, and how to do it to a fork of this world."""
        for name, process in self.processes.items():
            if not process.lives:
                if process.is_first:
                    yield f"{name} starts again", partial(Handoffs.start_again, name=name)
                continue
            if not self._has_read(process) or not process.is_valid:
                yield f"{name} reads the table", partial(Handoffs.read, name=name)
            if self._has_news(name):
                yield f"{name} is heard", partial(Handoffs.be_heard, name=name)
            yield f"{name} dies", partial(Handoffs.die, name=name)
        yield "the leader dies", Handoffs.lose_leader
        if any(not each.is_ending for each in self.state.bundles.namespaces.values()):
            deletion = IntentKind.DELETE_NAMESPACE
            yield "the namespace is deleted", lambda world: world.ordered(deletion, namespace=NAMESPACE)
        yield "a death is noticed", partial(Handoffs.wait, elapsed_ms=_SHORT_MS)
        yield "a release is waited for", partial(Handoffs.wait, elapsed_ms=_LONG_MS)

    def after(self, happen: Callable[["Handoffs"], object]) -> "Handoffs":
        """A fork of this world, in which something has happened, or was found to break."""
        world = self.fork()
        try:
            happen(world)
        except (ControlPlaneError, AssertionError) as error:
            world.broken = f"{type(error).__name__}: {error}"
        world.broken = world.broken or overlap_of(world.processes)
        return world

    def unfinished(self) -> str:
        """What has not ended although everybody does what rows ask for, and enough time passes; empty if all has."""
        world = self.fork()
        if not any(process.lives for process in world.processes.values()):
            world.start(SPARE)
        for elapsed_ms in (_SHORT_MS, _LONG_MS, _LONG_MS):
            for _ in range(_ROUNDS):
                if not any(world.what_is_left()):
                    return ""
                for name in world.living:
                    world.read(name)
                    world.beat(name)
                world.decide_now()
            world.wait(elapsed_ms)
        return f"{list(world.what_is_left())} has not come to an end"

    def what_is_left(self) -> Iterator[str]:
        """What is on its way, ordered, or held by no node that lives."""
        bundles, slots = self.state.bundles, self.state.slots
        yield from (f"the order of {bundle_id}" for bundle_id in bundles.orders)
        yield from (each.bundle_id for each in bundles.by_id.values() if each.owner not in self.living)
        yield from (f"bundle {bundle_id} in flight" for bundle_id in bundles.in_flight)
        yield from (f"namespace {each.name}" for each in bundles.namespaces.values() if each.is_ending)
        yield from (f"the handoff of slot {slot_id}" for slot_id in slots.handoffs)
        yield from (f"slot {each.slot_id}" for each in slots.table if each.leader not in self.living)

    @property
    def living(self) -> list[NodeId]:
        """The nodes of which a process lives."""
        return [name for name, process in self.processes.items() if process.lives]

    def key(self) -> Hashable:
        """What tells this world from others: two that agree in it have the same future, to a few seconds of time."""
        state, seen = self.state, self.observations
        bundles = tuple(self._bundle_key(each) for each in state.bundles.by_id.values())
        orders = tuple(state.bundles.orders.values())
        endings = tuple(each for each in state.bundles.namespaces.values() if each.is_ending)
        rows = tuple(replace(each, leader_epoch=Epoch(0), release_epoch=Epoch(0)) for each in self._shown())
        handoffs = tuple(
            (each.slot_id, each.next_leader, phase_of(each), (self.now_ms - each.began_at_ms) // _BUCKET_MS)
            for each in state.slots.handoffs.values()
        )
        nodes = []
        for name, process in self.processes.items():
            node = state.membership.nodes.get(name)
            beat = seen.latest_heartbeat(name, process.incarnation)
            former = 0 if node is None or not node.replaced_epoch else self._since(name, node.replaced_epoch)
            nodes.append(
                (
                    (process.lives, process.is_first, process.is_valid, self._reading_key(process)),
                    (node.status, node.incarnation == process.incarnation, former) if node is not None else None,
                    self._beat_key(beat),
                )
            )
        planned = tuple(replace(each, leader_epoch=Epoch(0)) for each in state.slots.planned_rows)
        unread = len(self._waiting)
        return bundles, orders, endings, rows, handoffs, tuple(nodes), planned, unread

    # -- inside ------------------------------------------------------------------------------------------------------

    def _bundle_key(self, bundle: Bundle) -> Hashable:
        node = bundle.next_owner if bundle.ownership_state is OwnershipState.ASSIGNING else bundle.owner
        waited = self._since(node, bundle.state_epoch) if bundle.ownership_state.is_in_flight and node else 0
        return replace(bundle, owner_epoch=Epoch(0), state_epoch=Epoch(0), version=0), waited

    def _since(self, name: NodeId, epoch: Epoch) -> int:
        """For how long a node could have read of an epoch, in steps that matter here."""
        return min(self.observations.home_of(name).since_epoch_ms(epoch) // _BUCKET_MS, _LONG_MS // _BUCKET_MS)

    def _reading_key(self, process: Process) -> Hashable:
        """Which of the rows that a node has read are still those of the table, and what it does by the others."""
        now_bundles, now_slots = dict(self.state.bundles.by_id.items()), self._shown()
        return (
            tuple(
                (each.bundle_id, each.ownership_state, now_bundles.get(each.bundle_id) == each, each.owner)
                for each in process.reading.bundles
            ),
            tuple((each in now_slots, each.leader, each.next_leader, each.replicas) for each in process.reading.slots),
        )

    def _beat_key(self, beat: Heartbeat | None) -> Hashable:
        """Which steps a heartbeat says that still count."""
        if beat is None:
            return None
        versions = {each.bundle_id: each.version for each in self.state.bundles.by_id.values()}
        releases = {each.release_epoch for each in self.state.slots.handoffs.values()}
        began = [each.began_epoch for each in self.state.slots.handoffs.values()]
        return (
            tuple(
                (each.bundle_id, each.step)
                for each in beat.bundle_steps
                if versions.get(each.bundle_id) == each.version
            ),
            tuple(each.release_epoch in releases for each in beat.released_slots),
            tuple(beat.table_epoch >= each for each in began),
            tuple((each.status, each.runs) for each in beat.slot_groups),
        )

    def start(self, name: NodeId) -> None:
        """A process of a node begins, and asks to be admitted."""
        known = self.state.membership.nodes.get(name)
        incarnation = known.incarnation + 1 if known else 1
        self.processes[name] = Process(incarnation, is_first=name not in self.processes)
        addresses = (Address("kv", "localhost", 4000),)
        joined = NodeJoined(name, incarnation, NodeRole.DATA, addresses, "", 1, 0, "1", self.now_ms, hands_off=True)
        self.append(MEMBERSHIP, 0, joined)
        self.beat(name)

    def start_again(self, name: NodeId) -> None:
        """The same, and the leader hears of it."""
        self.start(name)
        self.decide_now()

    def _shown(self) -> tuple[Slot, ...]:
        found = (self.state.slots.shown_row(slot_id) for slot_id in self.state.slots.rows)
        return tuple(each for each in found if each is not None)

    def read(self, name: NodeId) -> None:
        """A node reads the newest table, and does what its rows ask for."""
        reading = Reading(self.state.epoch, tuple(self.state.bundles.by_id.values()), self._shown())
        self.processes[name] = replace(self.processes[name], reading=reading, is_valid=True)

    def _has_read(self, process: Process) -> bool:
        """Whether a process has read the newest rows."""
        return process.reading[1:] == (tuple(self.state.bundles.by_id.values()), self._shown())

    def _has_news(self, name: NodeId) -> bool:
        """Whether the node would say something that its latest heartbeat does not."""
        latest = self.observations.latest_heartbeat(name, self.processes[name].incarnation)
        return self._beat_key(latest) != self._beat_key(heartbeat_of(name, self.processes[name], self.now_ms))

    def be_heard(self, name: NodeId) -> None:
        """A node sends a heartbeat, and the leader decides."""
        self.beat(name)
        self.decide_now()

    def die(self, name: NodeId) -> None:
        """A process ends without a word."""
        self._note_death(name)
        self.processes[name] = replace(self.processes[name], lives=False)

    def lose_leader(self) -> None:
        """The next one is started just now, and reads the logs from their beginnings."""
        self._note_death("")
        self.take_over(_REMEMBERED_MS)
        self.decide_now()

    def wait(self, elapsed_ms: int) -> None:
        """Time passes, and ends each reading that is not of the newest table."""
        for at_ms in range(0, elapsed_ms, MAX_TICK_GAP_MS):
            if at_ms % _BEAT_MS == 0:
                for name in self.living:
                    self.beat(name)
            self.tick(MAX_TICK_GAP_MS)
        for name in self.living:
            process = self.processes[name]
            self.processes[name] = replace(process, is_valid=process.is_valid and self._has_read(process))
        self.decide_now()

    def _note_death(self, name: NodeId) -> None:
        """Note in which state of a handoff the node dies, or without a name the leader."""
        for bundle in self.state.bundles.by_id.values():
            owner = bundle.former_owner if bundle.ownership_state is OwnershipState.ASSIGNING else bundle.owner
            who = {owner: "old owner", bundle.next_owner: "next owner", "": "leader"}.get(name)
            if who:
                self.rows |= {death_row("bundle", bundle.ownership_state.value, who)}
        for slot_id, slot in self.state.slots.rows.items():
            handoff = self.state.slots.handoffs.get(slot_id)
            following = handoff.next_leader if handoff is not None else None
            who = {slot.leader: "old owner", following: "next owner", "": "leader"}.get(name)
            if who:
                self.rows |= {death_row("slot", phase_of(handoff), who)}

    def beat(self, name: NodeId) -> None:
        """A node sends a heartbeat."""
        self.append(
            HEARTBEATS, partition_of(name.encode(), PARTITIONS), heartbeat_of(name, self.processes[name], self.now_ms)
        )

    def decide_now(self) -> None:
        """Observe, decide and commit, as :meth:`World.decide` does; that it answers alike twice is shown elsewhere."""
        self.tick()
        self.observe()
        result = decide(self.state, self.observations, self.slot_policies)
        self.observations = result.observations
        if result.sealed is not None:
            self.commit(result.sealed)

    def commit(self, sealed: SealedDecision) -> None:
        """See :meth:`World.commit`; the rows that it uses are noted."""
        before = self.state
        super().commit(sealed)
        self.rows |= frozenset(rows_of_decision(before, sealed.decision, self.state))
