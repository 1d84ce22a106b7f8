"""The cluster of a scenario: the real core in virtual time, and node processes that send heartbeats."""

from collections.abc import Collection
from dataclasses import dataclass

from controlplane.config import HEARTBEATS
from controlplane.core.cluster.policy import ClusterPolicy
from controlplane.core.log.decision import Decision
from controlplane.core.log.state import State
from controlplane.core.membership.inputs import Heartbeat
from controlplane.core.membership.node import NodeRole
from controlplane.core.slots.reports import SlotStatus
from controlplane.core.values.identifiers import NodeId
from controlplane.core.values.inputs import Refusal
from controlplane.core.values.partitioning import partition_of
from controlplane.core.values.replica_status import ReplicaStatus
from tests.helpers.world import PARTITIONS, START_MS, World
from tests.scenarios.engine.script import ScenarioError

STEP_MS = 100
"""Log time between two ticks, after each of which the leader decides."""
HEARTBEAT_INTERVAL_MS = 1_000


@dataclass(frozen=True, slots=True)
class Process:
    """A node's process that runs, whatever the control plane thinks of it."""

    incarnation: int
    role: NodeRole


class Cluster:
    """What the commands of a scenario work on.

    Attributes:
        processes: the node processes that run, by the node's name.
        leader: the controller that ticks and decides.
        intents: how many intents were asked, for their ids.
    """

    def __init__(self) -> None:
        """Nothing yet: the command ``policy`` begins the log."""
        self.processes: dict[NodeId, Process] = {}
        self.leader = "c1"
        self.intents = 0
        self._world: World | None = None
        self._shown_decisions = 0
        self._shown_refusals = 0

    @property
    def world(self) -> World:
        """The log of inputs with its leader.

        Raises:
            ScenarioError: no policy has begun it.
        """
        if self._world is None:
            raise ScenarioError("a scenario begins with the command 'policy'")
        return self._world

    @property
    def state(self) -> State:
        """After the last decision."""
        return self.world.state

    def begin(self, policy: ClusterPolicy) -> None:
        """Open the first term of a new log.

        Raises:
            ScenarioError: there is a log already.
        """
        if self._world is not None:
            raise ScenarioError("there is a policy already: change it with 'intent change_policy'")
        self._world = World(policy)

    def beat(self, node_id: NodeId, incarnation: int, role: NodeRole, *, ready: bool = True) -> None:
        """Append a heartbeat that reports every slot that the table gives the node, as ready or as still migrating."""
        world = self.world
        status = ReplicaStatus.HEALTHY if ready else ReplicaStatus.MIGRATING
        statuses = tuple(
            SlotStatus(slot.slot_id, slot.leader_epoch, slot.leader == node_id, status, world.now_ms)
            for slot in world.state.slots.table
            if node_id in slot.replicas
        )
        beat = Heartbeat(node_id, incarnation, world.now_ms, world.state.epoch, role, slot_statuses=statuses)
        world.append(HEARTBEATS, partition_of(node_id.encode(), PARTITIONS), beat)

    def run(self, elapsed_ms: int, silent: Collection[NodeId] = (), unready: Collection[NodeId] = ()) -> None:
        """Let time pass. Every process that is not silent sends a heartbeat each second; the leader decides each tick.

        Raises:
            ScenarioError: the time is no multiple of a step.
        """
        for _ in range(_steps(elapsed_ms)):
            self._beat_when_due(silent, unready)
            self.world.tick(STEP_MS, (self.leader,))
            self.world.decide()

    def run_without_controllers(self, elapsed_ms: int, silent: Collection[NodeId] = ()) -> None:
        """Let time pass while no controller ticks or decides; processes that are not silent send heartbeats.

        Raises:
            ScenarioError: the time is no multiple of a step.
        """
        for _ in range(_steps(elapsed_ms)):
            self._beat_when_due(silent, ())
            self.world.now_ms += STEP_MS

    def _beat_when_due(self, silent: Collection[NodeId], unready: Collection[NodeId]) -> None:
        if (self.world.now_ms - START_MS) % HEARTBEAT_INTERVAL_MS:
            return
        for node_id, process in sorted(self.processes.items()):
            if node_id not in silent:
                self.beat(node_id, process.incarnation, process.role, ready=node_id not in unready)

    def new_decisions(self) -> list[Decision]:
        """The decisions that were not shown yet."""
        shown, self._shown_decisions = self._shown_decisions, len(self.world.decisions)
        return self.world.decisions[shown:]

    def new_refusals(self) -> list[Refusal]:
        """The refused inputs that were not shown yet."""
        shown, self._shown_refusals = self._shown_refusals, len(self.world.refusals)
        return self.world.refusals[shown:]


def _steps(elapsed_ms: int) -> int:
    if elapsed_ms % STEP_MS:
        raise ScenarioError(f"time passes in steps of {STEP_MS} ms")
    return elapsed_ms // STEP_MS
