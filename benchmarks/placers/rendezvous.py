"""Rendezvous hashing, highest random weight: Thaler and Ravishankar, IEEE/ACM Transactions on Networking 6(1), 1998.

With weights after Schindler and Schomaker (SPAA 2005): a node scores ``-weight / ln(u)``, u being its hash with the
slot as a number between 0 and 1. The best scores hold the slot, the best of all leads it.
"""

from collections.abc import Sequence
from heapq import nlargest
from math import log

from benchmarks.placers.contract import Table, stable_hash
from controlplane.core.slots.minimal.contract import PlacementNode


class Rendezvous:
    """Highest random weight, from names and weights alone."""

    name = "rendezvous"
    heeds_weights = True
    heeds_zones = False

    def __init__(self, slot_count: int, replica_count: int) -> None:
        self._slot_count = slot_count
        self._replica_count = replica_count

    def place(self, nodes: Sequence[PlacementNode]) -> Sequence[Table]:
        """See :class:`benchmarks.placers.contract.Placer`."""
        return [
            tuple(
                tuple(
                    node_id
                    for _, node_id in nlargest(
                        self._replica_count, ((_score(slot_id, node), node.node_id) for node in nodes)
                    )
                )
                for slot_id in range(self._slot_count)
            )
        ]


def _score(slot_id: int, node: PlacementNode) -> float:
    unit = (stable_hash(f"{slot_id}/{node.node_id}") + 0.5) / 2**64
    return -node.weight / log(unit) if unit < 1 else float("inf")
