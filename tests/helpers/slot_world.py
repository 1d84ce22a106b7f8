"""A world whose nodes hand slots off."""

from controlplane.core.cluster.policy import ClusterPolicy
from controlplane.core.log.draft import SealedDecision
from controlplane.core.membership.inputs import Heartbeat
from controlplane.core.membership.node import NodeRole
from controlplane.core.slots.reports import ReleasedSlots, grouped, runs_of
from controlplane.core.slots.table import Slot
from controlplane.core.values.identifiers import Epoch, SlotId
from controlplane.core.values.replica_status import ReplicaStatus
from tests.helpers.process_world import ProcessWorld


class SlotWorld(ProcessWorld):
    """A cluster whose nodes copy what they are given, and release what they are told to.

    Attributes:
        copying: nodes that never have the data of a slot that they gain from now on.
        holding: nodes that never say that they have released a slot.
        has: the slots of which each node has all the data, by name.
    """

    def __init__(self, policy: ClusterPolicy | None = None) -> None:
        """A cluster without nodes."""
        self.has: dict[str, set[SlotId]] = {}
        super().__init__(policy or ClusterPolicy(slot_count=8))
        self.copying: set[str] = set()
        self.holding: set[str] = set()

    def start(self, *node_ids: str, hands_off: bool = True) -> None:
        """Processes of these nodes begin, which have no data."""
        self.has |= {node_id: set() for node_id in node_ids}
        super().start(*node_ids, hands_off=hands_off)

    def come_back(self, node_id: str, *, hands_off: bool = True) -> None:
        """The process of a node that was fenced asks to be admitted again, before it sends a heartbeat."""
        self.join(node_id, self.living[node_id], hands_off=hands_off)

    def commit(self, sealed: SealedDecision) -> None:
        """A decision is taken over. What a node loses by it, it has no more, whenever it reads that."""
        super().commit(sealed)
        for node_id in self.has:
            lives = (node := self.state.membership.nodes.get(node_id)) is not None and node.lives
            self.has[node_id] &= {row.slot_id for row in self.rows() if lives and node_id in row.replicas}

    def rows(self) -> list[Slot]:
        """The rows that nodes read."""
        return [row for slot_id in self.state.slots.rows if (row := self.state.slots.shown_row(slot_id)) is not None]

    def led(self, node_id: str) -> set[SlotId]:
        """The slots that a node serves by the table: it leads them, and need not release them."""
        return {row.slot_id for row in self.rows() if row.leader == node_id and row.next_leader is None}

    def report(self, node_id: str) -> Heartbeat:
        """A heartbeat by the newest table, with what the node has and what it has released."""
        node = self.state.membership.nodes.get(node_id)
        is_member = node is not None and node.lives and node.incarnation == self.living[node_id]
        held = [row for row in self.rows() if is_member and node_id in row.replicas]
        has = self.has[node_id]
        has |= set() if node_id in self.copying else {row.slot_id for row in held}
        status = {True: ReplicaStatus.HEALTHY, False: ReplicaStatus.MIGRATING}
        told = [row for row in held if row.leader == node_id and row.next_leader is not None]
        epochs = sorted({row.release_epoch for row in told}) if node_id not in self.holding else []
        return Heartbeat(
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
