"""The cluster of a scenario: the real core in virtual time, and node processes that send heartbeats."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import NamedTuple

from controlplane.config import HEARTBEATS
from controlplane.core.bundles.reports import BundleStepReport
from controlplane.core.cluster.policy import ClusterPolicy
from controlplane.core.log.decision import Decision
from controlplane.core.log.state import State
from controlplane.core.membership.inputs import Heartbeat
from controlplane.core.membership.node import NodeRole
from controlplane.core.slots.reports import ReleasedSlots, SlotStatus, grouped, runs_of
from controlplane.core.slots.table import Slot
from controlplane.core.values.identifiers import NodeId
from controlplane.core.values.inputs import Refusal
from controlplane.core.values.partitioning import partition_of
from controlplane.core.values.replica_status import ReplicaStatus
from tests.helpers.bundle_world import STEP_OF, node_to_act
from tests.helpers.world import PARTITIONS, START_MS, World
from tests.scenarios.engine.script import ScenarioError

STEP_MS = 100
"""Log time between two ticks, after each of which the leader decides."""
HEARTBEAT_INTERVAL_MS = 1_000


@dataclass(frozen=True, slots=True)
class Process:
    """A node's process that runs, whatever the control plane thinks of it.

    Attributes:
        incarnation: its incarnation.
        role: the node's role.
        hands_off: whether it takes part in handoffs, as its join says.
    """

    incarnation: int
    role: NodeRole
    hands_off: bool = False


class _Steps(NamedTuple):
    """Steps of handoffs that a process has done.

    Attributes:
        slots: the slots that it has released.
        bundles: what it has done for bundles.
    """

    slots: tuple[ReleasedSlots, ...] = ()
    bundles: tuple[BundleStepReport, ...] = ()


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
        self._said: dict[NodeId, _Steps] = {}
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

    def beat(self, node_id: NodeId, process: Process, *, ready: bool = True, idle: bool = False) -> None:
        """Append a heartbeat that reports every slot that the table gives the node, as ready or as still migrating.

        If the process takes part in handoffs and is not idle, it has done all that the table tells it to, and says so.
        """
        world = self.world
        status = ReplicaStatus.HEALTHY if ready else ReplicaStatus.MIGRATING
        # What the table gives a node before its process is admitted, it gives to a former process.
        is_early = process.hands_off and not self._is_member(node_id, process)
        rows = [] if is_early else [row for row in self._rows() if node_id in row.replicas]
        beat = Heartbeat(node_id, process.incarnation, world.now_ms, world.state.epoch, process.role)
        if process.hands_off:
            steps = _Steps() if idle or is_early else self._steps(node_id)
            self._said[node_id] = steps
            beat = beat._replace(
                slot_groups=grouped((row.slot_id, status, world.now_ms) for row in rows),
                bundle_steps=steps.bundles,
                released_slots=steps.slots,
            )
        else:
            beat = beat._replace(
                slot_statuses=tuple(
                    SlotStatus(row.slot_id, row.leader_epoch, row.leader == node_id, status, world.now_ms)
                    for row in rows
                )
            )
        world.append(HEARTBEATS, partition_of(node_id.encode(), PARTITIONS), beat)

    def run(
        self,
        elapsed_ms: int,
        silent: Collection[NodeId] = (),
        unready: Collection[NodeId] = (),
        idle: Collection[NodeId] = (),
    ) -> None:
        """Let time pass. The leader decides each tick.

        Every process that is not silent sends a heartbeat each second, and at once when it has done a step of a handoff
        and is not idle.

        Raises:
            ScenarioError: the time is no multiple of a step.
        """
        for _ in range(_steps_of_time(elapsed_ms)):
            self._beat_when_due(silent, unready, idle)
            self.world.tick(STEP_MS, (self.leader,))
            self.world.decide()

    def run_without_controllers(self, elapsed_ms: int, silent: Collection[NodeId] = ()) -> None:
        """Let time pass while no controller ticks or decides; processes that are not silent send heartbeats.

        Raises:
            ScenarioError: the time is no multiple of a step.
        """
        for _ in range(_steps_of_time(elapsed_ms)):
            self._beat_when_due(silent, (), ())
            self.world.now_ms += STEP_MS

    def _beat_when_due(self, silent: Collection[NodeId], unready: Collection[NodeId], idle: Collection[NodeId]) -> None:
        is_due = not (self.world.now_ms - START_MS) % HEARTBEAT_INTERVAL_MS
        for node_id, process in sorted(self.processes.items()):
            if node_id not in silent and (is_due or (node_id not in idle and self._has_news(node_id, process))):
                self.beat(node_id, process, ready=node_id not in unready, idle=node_id in idle)

    def _has_news(self, node_id: NodeId, process: Process) -> bool:
        """Whether a process has done a step of a handoff that none of its heartbeats has said."""
        takes_part = process.hands_off and self._is_member(node_id, process)
        steps = self._steps(node_id) if takes_part else _Steps()
        return steps not in (_Steps(), self._said.get(node_id))

    def _is_member(self, node_id: NodeId, process: Process) -> bool:
        node = self.state.membership.nodes.get(node_id)
        return node is not None and node.lives and node.incarnation == process.incarnation

    def _rows(self) -> list[Slot]:
        """The slots as nodes read them."""
        slots = self.state.slots
        return [row for slot_id in slots.rows if (row := slots.shown_row(slot_id)) is not None]

    def _steps(self, node_id: NodeId) -> "_Steps":
        """What the table tells a node to do of handoffs."""
        told = [row for row in self._rows() if row.leader == node_id and row.next_leader is not None]
        bundles = self.state.bundles
        return _Steps(
            tuple(
                ReleasedSlots(epoch, runs_of(row.slot_id for row in told if row.release_epoch == epoch))
                for epoch in sorted({row.release_epoch for row in told})
            ),
            tuple(
                BundleStepReport(bundle_id, bundle.version, STEP_OF[bundle.ownership_state])
                for bundle_id in bundles.in_flight
                if node_to_act(bundle := bundles.by_id[bundle_id]) == node_id
            ),
        )

    def new_decisions(self) -> list[Decision]:
        """The decisions that were not shown yet."""
        shown, self._shown_decisions = self._shown_decisions, len(self.world.decisions)
        return self.world.decisions[shown:]

    def new_refusals(self) -> list[Refusal]:
        """The refused inputs that were not shown yet."""
        shown, self._shown_refusals = self._shown_refusals, len(self.world.refusals)
        return self.world.refusals[shown:]


def _steps_of_time(elapsed_ms: int) -> int:
    if elapsed_ms % STEP_MS:
        raise ScenarioError(f"time passes in steps of {STEP_MS} ms")
    return elapsed_ms // STEP_MS
