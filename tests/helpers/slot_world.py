"""A world whose nodes hand slots off, unless a test keeps them from doing so."""

from controlplane.config import HEARTBEATS, MEMBERSHIP
from controlplane.core.cluster.policy import ClusterPolicy
from controlplane.core.log.decision import Decision
from controlplane.core.membership.inputs import Heartbeat, NodeJoined
from controlplane.core.membership.node import NodeRole
from controlplane.core.slots.reports import ReleasedSlots, grouped, runs_of
from controlplane.core.slots.table import Slot
from controlplane.core.values.addresses import Address
from controlplane.core.values.identifiers import Epoch, SlotId
from controlplane.core.values.partitioning import partition_of
from controlplane.core.values.replica_status import ReplicaStatus
from tests.helpers.world import PARTITIONS, World


class SlotWorld(World):
    """A cluster whose nodes copy what they are given, and release what they are told to.

    Attributes:
        copying: nodes that never have the data of a slot that they gain from now on.
        holding: nodes that never say that they have released a slot.
        living: the incarnation of each node whose process runs, by name.
    """

    def __init__(self, policy: ClusterPolicy | None = None) -> None:
        """A cluster without nodes."""
        super().__init__(policy or ClusterPolicy(slot_count=8))
        self.copying: set[str] = set()
        self.holding: set[str] = set()
        self.living: dict[str, int] = {}
        self._has: dict[str, set[SlotId]] = {}

    def start(self, *node_ids: str, hands_off: bool = True) -> None:
        """Processes of these nodes begin, with a greater incarnation than before, and are admitted."""
        for node_id in node_ids:
            known = self.state.membership.nodes.get(node_id)
            self.living[node_id] = known.incarnation + 1 if known else 1
            self._has[node_id] = set()
            addresses = (Address("kv", "localhost", 4000),)
            self.append(
                MEMBERSHIP,
                0,
                NodeJoined(
                    node_id,
                    self.living[node_id],
                    NodeRole.DATA,
                    addresses,
                    "",
                    1,
                    0,
                    "1",
                    self.now_ms,
                    hands_off=hands_off,
                ),
            )
            self.beat(node_id)
        self.go(self.state.cluster.policy.join_linger_ms + 100)

    def die(self, node_id: str) -> None:
        """The process of a node ends without a word."""
        del self.living[node_id]

    def rows(self) -> list[Slot]:
        """The rows that nodes read."""
        return [row for slot_id in self.state.slots.rows if (row := self.state.slots.shown_row(slot_id)) is not None]

    def led(self, node_id: str) -> set[SlotId]:
        """The slots that a node serves by the table: it leads them, and need not release them."""
        return {row.slot_id for row in self.rows() if row.leader == node_id and row.next_leader is None}

    def beat(self, node_id: str) -> None:
        """A heartbeat by the newest table."""
        held = [row for row in self.rows() if node_id in row.replicas]
        has = self._has[node_id]
        has &= {row.slot_id for row in held}
        has |= set() if node_id in self.copying else {row.slot_id for row in held}
        status = {True: ReplicaStatus.HEALTHY, False: ReplicaStatus.MIGRATING}
        told = [row for row in held if row.leader == node_id and row.next_leader is not None]
        epochs = sorted({row.release_epoch for row in told}) if node_id not in self.holding else []
        beat = Heartbeat(
            node_id,
            self.living[node_id],
            self.now_ms,
            Epoch(self.state.epoch),
            NodeRole.DATA,
            slot_groups=grouped((row.slot_id, status[row.slot_id in has], self.now_ms) for row in held),
            released_slots=tuple(
                ReleasedSlots(epoch, runs_of(row.slot_id for row in told if row.release_epoch == epoch))
                for epoch in epochs
            ),
        )
        self.append(HEARTBEATS, partition_of(node_id.encode(), PARTITIONS), beat)

    def go(self, elapsed_ms: int, step_ms: int = 100) -> list[Decision]:
        """Let time pass; every process sends a heartbeat in each step of time."""
        taken = []
        for _ in range(0, elapsed_ms, step_ms):
            for node_id in sorted(self.living):
                self.beat(node_id)
            self.tick(step_ms)
            if (decision := self.decide()) is not None:
                taken.append(decision)
        return taken
