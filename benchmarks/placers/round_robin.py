"""Kafka's round-robin assignor (``org.apache.kafka.clients.consumer.RoundRobinAssignor``).

All partitions in order are dealt to the members in order, one each, again and again. Further replicas: the members that
follow. With one topic this is "slot modulo number of nodes".
"""

from collections.abc import Sequence

from benchmarks.placers.contract import Table
from controlplane.core.slots.minimal.contract import PlacementNode


class RoundRobin:
    """One slot a node in turn, from the names alone."""

    name = "Kafka round-robin"
    heeds_weights = False
    heeds_zones = False

    def __init__(self, slot_count: int, replica_count: int) -> None:
        self._slot_count = slot_count
        self._replica_count = replica_count

    def place(self, nodes: Sequence[PlacementNode]) -> Sequence[Table]:
        """See :class:`benchmarks.placers.contract.Placer`."""
        names = [node.node_id for node in nodes]
        return [
            tuple(
                tuple(names[(slot_id + replica) % len(names)] for replica in range(self._replica_count))
                for slot_id in range(self._slot_count)
            )
        ]
