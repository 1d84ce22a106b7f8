"""Kafka's range assignor (``org.apache.kafka.clients.consumer.RangeAssignor``).

The partitions of a topic in order are dealt out as contiguous ranges to the members in order; the first ones get one
more where it does not come out even. Further replicas: the members that follow, as brokers without racks get theirs.
"""

from collections.abc import Sequence

from benchmarks.placers.contract import Table
from controlplane.core.slots.minimal.contract import PlacementNode


class Ranges:
    """Contiguous ranges of slots, from the names alone."""

    name = "Kafka range"
    heeds_weights = False
    heeds_zones = False

    def __init__(self, slot_count: int, replica_count: int) -> None:
        self._slot_count = slot_count
        self._replica_count = replica_count

    def place(self, nodes: Sequence[PlacementNode]) -> Sequence[Table]:
        """See :class:`benchmarks.placers.contract.Placer`."""
        names = [node.node_id for node in nodes]
        length, longer = divmod(self._slot_count, len(names))
        owners = [index for index in range(len(names)) for _ in range(length + (index < longer))]
        return [
            tuple(
                tuple(names[(owner + replica) % len(names)] for replica in range(self._replica_count))
                for owner in owners
            )
        ]
