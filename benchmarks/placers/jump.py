"""Jump consistent hash: Lamping and Veach, "A Fast, Minimal Memory, Consistent Hash Algorithm", arXiv 1406.2294.

It knows numbered buckets, of which only the last can go. So nodes are numbered as they come, and where one leaves the
node of the last bucket takes its number ("swap-last"). Further replicas: the same key under another salt, until another
node comes out.
"""

from collections.abc import Sequence

from benchmarks.placers.contract import Table, stable_hash
from controlplane.core.slots.minimal.contract import PlacementNode
from controlplane.core.values.identifiers import NodeId


def jump_hash(key: int, buckets: int) -> int:
    """The bucket of a 64-bit key, 0 to ``buckets`` - 1: the paper's figure 1."""
    bucket, candidate = -1, 0
    while candidate < buckets:
        bucket = candidate
        key = (key * 2_862_933_555_777_941_757 + 1) % 2**64
        candidate = int((bucket + 1) * (2**31 / ((key >> 33) + 1)))
    return bucket


class Jump:
    """Jump hash over numbered nodes."""

    name = "jump hash, swap-last"
    heeds_weights = False
    heeds_zones = False

    def __init__(self, slot_count: int, replica_count: int) -> None:
        self._slot_count = slot_count
        self._replica_count = replica_count
        self._buckets: list[NodeId] = []

    def place(self, nodes: Sequence[PlacementNode]) -> Sequence[Table]:
        """See :class:`benchmarks.placers.contract.Placer`."""
        names = [node.node_id for node in nodes]
        for gone in sorted(set(self._buckets).difference(names)):
            last = self._buckets.pop()
            if last != gone:
                self._buckets[self._buckets.index(gone)] = last
        self._buckets += [name for name in names if name not in self._buckets]
        return [tuple(self._holders(slot_id) for slot_id in range(self._slot_count))]

    def _holders(self, slot_id: int) -> tuple[NodeId, ...]:
        holders: dict[NodeId, None] = {}
        salt = 0
        while len(holders) < self._replica_count:
            holders[self._buckets[jump_hash(stable_hash(f"{slot_id}/{salt}"), len(self._buckets))]] = None
            salt += 1
        return tuple(holders)
