"""A world in which processes of nodes begin, report what they have done, and end."""

from abc import ABC, abstractmethod

from controlplane.config import HEARTBEATS
from controlplane.core.cluster.policy import ClusterPolicy
from controlplane.core.log.decision import Decision
from controlplane.core.membership.inputs import Heartbeat
from controlplane.core.values.partitioning import partition_of
from tests.helpers.world import PARTITIONS, World


class ProcessWorld(World, ABC):
    """A cluster whose nodes take part in handoffs, unless a test keeps them from doing so.

    Attributes:
        living: the incarnation of each node whose process runs, by name.
        silent: nodes whose processes run, and send no heartbeats for now.
    """

    def __init__(self, policy: ClusterPolicy) -> None:
        """A cluster without nodes."""
        super().__init__(policy)
        self.living: dict[str, int] = {}
        self.silent: set[str] = set()

    @abstractmethod
    def report(self, node_id: str) -> Heartbeat:
        """The heartbeat of a node's process by the newest table."""

    def start(self, *node_ids: str, hands_off: bool = True) -> None:
        """Processes of these nodes begin, with a greater incarnation than before, and are admitted."""
        for node_id in node_ids:
            known = self.state.membership.nodes.get(node_id)
            self.living[node_id] = known.incarnation + 1 if known else 1
            self.join(node_id, self.living[node_id], hands_off=hands_off)
            self.beat(node_id)
        self.go(self.state.cluster.policy.join_linger_ms + 100)

    def die(self, node_id: str) -> None:
        """The process of a node ends without a word."""
        del self.living[node_id]

    def beat(self, node_id: str) -> None:
        """A node sends what it reports."""
        self.append(HEARTBEATS, partition_of(node_id.encode(), PARTITIONS), self.report(node_id))

    def go(self, elapsed_ms: int, step_ms: int = 100) -> list[Decision]:
        """Let time pass; every process that is not silent sends a heartbeat in each step. Returns the decisions."""
        taken = []
        for _ in range(0, elapsed_ms, step_ms):
            for node_id in sorted(self.living.keys() - self.silent):
                self.beat(node_id)
            self.tick(step_ms)
            if (decision := self.decide()) is not None:
                taken.append(decision)
        return taken
