"""A cluster under the policy ``sofa`` on the in-memory world: nodes with skewed clocks that fetch, report late and die.

Every look at the observations is judged by the recorded answers' runner: what is published is its answer to what it was
told, and where nothing is published it would have published nothing.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from controlplane.config import HEARTBEATS
from controlplane.core.cluster.policy import ClusterPolicy
from controlplane.core.log.decision import Decision
from controlplane.core.log.state import State
from controlplane.core.membership.events import NodeAdmitted
from controlplane.core.membership.inputs import Heartbeat
from controlplane.core.membership.node import NodeRole, NodeStatus
from controlplane.core.slots.policies.sofa_memory import with_ranks
from controlplane.core.slots.reports import SlotStatus
from controlplane.core.slots.sofa.table import INITIAL_TABLE
from controlplane.core.slots.table import Slot
from controlplane.core.values.identifiers import Epoch
from controlplane.core.values.partitioning import partition_of
from controlplane.core.values.replica_status import ReplicaStatus
from controlplane.core.verification.sofa_ticks import recorded_tick
from controlplane.errors import PlacementRefusedError
from tests.conformance.record import table_document
from tests.conformance.sofa import Document, ask, mismatch
from tests.helpers.world import PARTITIONS, World

STEP_MS = 100
BEAT_MS = 1_000


@dataclass
class FleetNode:
    """One process.

    Attributes:
        name: of the node.
        incarnation: of the process.
        clock_skew_ms: how far its wall clock is from the log's time.
        fetch_ms: how long it takes to get a slot's data.
        table_lag_ms: how late it learns of a table.
        sync_age_ms: how old its last sync with a slot leader always is.
        gained_at_ms: since when it holds which slot, in which role.
    """

    name: str
    incarnation: int
    clock_skew_ms: int = 0
    fetch_ms: int = 0
    table_lag_ms: int = 0
    sync_age_ms: int = 0
    beats: bool = True
    epoch: int = 0
    slots: tuple[Slot, ...] = ()
    gained_at_ms: dict[int, int] = field(default_factory=dict)

    def learn(self, epoch: int, slots: tuple[Slot, ...], now_ms: int) -> None:
        """Take the next table."""
        self.epoch, self.slots = epoch, slots
        held = {slot.slot_id for slot in slots if self.name in slot.replicas}
        self.gained_at_ms = {slot_id: self.gained_at_ms.get(slot_id, now_ms) for slot_id in held}

    def heartbeat(self, now_ms: int) -> Heartbeat:
        """Its present report."""
        wall_ms = now_ms + self.clock_skew_ms
        statuses = []
        for slot_id, gained_at_ms in sorted(self.gained_at_ms.items()):
            slot = self.slots[slot_id]
            leads = slot.leader == self.name
            ready = now_ms - gained_at_ms >= self.fetch_ms
            status = ReplicaStatus.HEALTHY if ready else ReplicaStatus.MIGRATING
            synced_at_ms = 0 if leads or not ready else wall_ms - self.sync_age_ms
            statuses.append(SlotStatus(slot_id, slot.leader_epoch, leads, status, synced_at_ms))
        return Heartbeat(
            self.name,
            self.incarnation,
            wall_ms,
            Epoch(self.epoch),
            NodeRole.DATA,
            slot_statuses=tuple(statuses),
        )


class SofaFleet:
    """Runs nodes in the world, and checks every decision."""

    def __init__(
        self,
        slot_count: int = 16,
        replicas: int = 2,
        options: Mapping[str, str] | None = None,
        make_world: Callable[[ClusterPolicy], World] = World,
    ) -> None:
        """Begin without nodes."""
        policy = ClusterPolicy(
            slot_count=slot_count, replica_count=replicas, slot_policy="sofa", slot_policy_options=options or {}
        )
        self.world = make_world(policy)
        self.nodes: dict[str, FleetNode] = {}
        self.expected = INITIAL_TABLE
        """The table by the runner's answers alone, each asked about the answer before."""
        self.actions: list[str] = []
        self._heard: dict[tuple[str, int], tuple[int, Heartbeat]] = {}
        self._tables: list[tuple[int, int, tuple[Slot, ...]]] = []
        self._arranged_at = 0

    def join(self, name: str, **behaviour: Any) -> FleetNode:  # noqa: ANN401 - fields of the node
        """Start a process of that node id, in place of a former one."""
        known = self.nodes.get(name)
        node = FleetNode(name, known.incarnation + 1 if known else 1, **behaviour)
        self.nodes[name] = node
        self.world.join(name, node.incarnation)
        return node

    def kill(self, name: str) -> None:
        """Stop the heartbeats of the process."""
        if name in self.nodes:
            self.nodes[name].beats = False

    def run(self, elapsed_ms: int) -> list[Decision]:
        """Let time pass; returns the decisions."""
        decisions = []
        for _ in range(elapsed_ms // STEP_MS):
            self._beat()
            self.world.tick(STEP_MS)
            decisions += self.look()
        return decisions

    def look(self) -> list[Decision]:
        """Decide once, and check the result."""
        before = self.world.state
        decision = self.world.decide()
        after = self.world.state
        if after.epoch > before.epoch:
            self._tables.append((self.world.now_ms, after.epoch, after.slots.table))
        if decision is None:
            self._judge_silence(before)
            return []
        self._judge(before, decision)
        if [slot.replicas for slot in after.slots.table] != [slot.replicas for slot in before.slots.table]:
            # A leader epoch that rises for a new process is no change of SOFARegistry's.
            self._arranged_at = after.epoch
        return [decision]

    def _beat(self) -> None:
        world = self.world
        for name, node in sorted(self.nodes.items()):
            for at_ms, epoch, slots in self._tables:
                if epoch > node.epoch and at_ms + node.table_lag_ms <= world.now_ms and self._is_member(node):
                    node.learn(epoch, slots, world.now_ms)
            phase_ms = sum(name.encode()) * 10 % BEAT_MS // STEP_MS * STEP_MS
            if node.beats and world.now_ms % BEAT_MS == phase_ms:
                beat = node.heartbeat(world.now_ms)
                world.append(HEARTBEATS, partition_of(name.encode(), PARTITIONS), beat)
                self._heard[name, node.incarnation] = (world.now_ms, beat)

    def _is_member(self, node: FleetNode) -> bool:
        row = self.world.state.membership.nodes.get(node.name)
        return row is not None and row.incarnation == node.incarnation and row.lives

    def _judge_silence(self, state: State) -> None:
        """Nothing was decided: then the arranger has nothing to do, or it is not its turn yet."""
        if self.world.now_ms - state.decided_at_ms < 1_000:
            return
        try:
            tick = ask(self._given(self._active(), stable=self._is_stable(state)))
        except PlacementRefusedError:
            return
        assert not tick.published, f"the arranger would have done: {tick.action}"

    def _judge(self, before: State, decision: Decision) -> None:
        """Equal action, slot leaders, follower sets and ranks, and order: by the log, and by the runner's own chain."""
        after = self.world.state
        found = recorded_tick(before, decision, after, self._active())
        assert found is not None, "every decision after the first says what the arranger did"
        assert found.before == self.expected, "what was remembered is not what was published"
        self.actions.append(found.action)
        named = {name for slot in before.slots.table for name in slot.replicas}
        new = {event.node.node_id for event in decision.events if isinstance(event, NodeAdmitted)}
        assert list(found.nodes) == [name for name in self._active() if name not in new & named]
        given = self._given(found.nodes, stable=found.stable)
        try:
            tick = ask(given)
        except PlacementRefusedError:
            assert (found.action, found.published) == ("refused", False)
            assert found.after == found.before
            return
        output = {"action": found.action, "modified": found.published, "table": table_document(found.after)}
        different = mismatch({"op": "arrange", "input": given, "output": {**output, "valid": True}})
        assert different is None, different
        self.expected = with_ranks(tick.table, self.expected)
        assert found.after == self.expected, "the order of followers, or an epoch"
        if found.action in ("balance", "none"):
            assert self._is_stable(before) == (found.action == "balance")
        for row, slot in zip(after.slots.table, self.expected.slots.values(), strict=bool(self.expected.slots)):
            assert (row.leader, set(row.followers)) == (slot.leader, set(slot.followers))

    def _active(self) -> list[str]:
        """The nodes that may hold slots; leaving ones only if there are no others."""
        nodes = self.world.state.membership.nodes.items()
        active = sorted(name for name, node in nodes if node.status is NodeStatus.ACTIVE)
        return active or sorted(name for name, node in nodes if node.status is NodeStatus.DRAINING)

    def _given(self, nodes: Sequence[str], *, stable: bool) -> Document:
        policy = self.world.state.cluster.policy
        return {
            "slotNum": policy.slot_count,
            "replicas": policy.replica_count,
            "protectionNum": int(policy.slot_policy_options.get("protected_nodes", "0")),
            "dataServers": list(nodes),
            "stable": stable,
            "table": None if self.expected == INITIAL_TABLE else table_document(self.expected),
        }

    def _is_stable(self, state: State) -> bool:
        """The gate in the specification's words, from what was appended."""
        for slot in state.slots.table:
            for name in slot.replicas:
                heard = self._heard.get((name, self.world.state.membership.nodes[name].incarnation))
                if heard is None or heard[1].table_epoch < self._arranged_at:
                    return False
                at_ms, beat = heard
                said = next((each for each in beat.slot_statuses if each.slot_id == slot.slot_id), None)
                if said is None or said.leader_epoch != slot.leader_epoch or said.leads != (name == slot.leader):
                    return False
                if said.leads and said.status is not ReplicaStatus.HEALTHY:
                    return False
                age_ms = beat.sent_at_ms - said.last_sync_ms + self.world.now_ms - at_ms
                if not said.leads and (not said.last_sync_ms or age_ms > 180_000):
                    return False
        return True
