"""Which processes read the routing table from a broker that leads it no longer and was not told.

Such a reading ends well and is out of date. By the documentation it delays what a node learns, until its client asks
for the partition's leader again. So the time of a loss counts from there.
"""

from dataclasses import dataclass, field

from controlplane.core.values.identifiers import NodeId
from controlplane.core.values.positions import TABLE_PLACE
from tests.simulation.invariants.bounds import LOOK_EVERY_MS
from tests.simulation.world import World


@dataclass
class TableReadings:
    """Looks at intervals where the processes of nodes read the table."""

    world: World
    _misled_until_ms: dict[NodeId, int] = field(default_factory=dict)

    def look(self) -> None:
        """Note who asks a former leader. It may do so until the next look."""
        for place, machine in self.world.machines.items():
            if TABLE_PLACE in machine.network.stale_ends:
                self._misled_until_ms[place.removesuffix("-again")] = self.world.scheduler.now_ms + LOOK_EVERY_MS

    def known_for_ms(self, node_id: NodeId, since_ms: int) -> int:
        """For how long the processes of a node have been able to read what stands in the table since then."""
        return self.world.scheduler.now_ms - max(since_ms, self._misled_until_ms.get(node_id, 0))
