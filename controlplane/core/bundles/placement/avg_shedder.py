"""The strategy that follows the plan of a shedder (Pulsar's AvgShedder in its role as a placement)."""

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from controlplane.core.bundles.load.view import LoadView
from controlplane.core.bundles.placement.contract import BundleToPlace, Selection
from controlplane.core.bundles.shedding.avg_shedder import AvgShedder
from controlplane.core.bundles.shedding.avg_shedder_plan import AvgShedderMemory


@dataclass(frozen=True, slots=True)
class PlannedNodePlacement:
    """Choose the node that the shedder planned for a bundle; without a plan, any candidate is as good as another.

    Its memory is the shedder's: the caller hands each of the two what the other one left. (Pulsar draws a random number
    and takes the candidate at its CRC-32 modulo their number, in the order of names: an even draw like any other.)
    """

    shedder: AvgShedder = field(default_factory=AvgShedder)

    @property
    def name(self) -> str:
        """The name of the shedder."""
        return self.shedder.name

    @property
    def first_memory(self) -> AvgShedderMemory:
        """No plan."""
        return self.shedder.first_memory

    def select(
        self, bundle: BundleToPlace, candidates: Sequence[str], view: LoadView, memory: AvgShedderMemory
    ) -> Selection[AvgShedderMemory]:
        """The planned node alone, or the candidates by name."""
        return Selection(self.shedder.best(bundle.bundle_id, candidates, view, memory), memory)

    def after_pick(
        self, bundle: BundleToPlace, node_id: str, view: LoadView, memory: AvgShedderMemory
    ) -> AvgShedderMemory:
        """A plan by averages holds the pick, too."""
        return self.shedder.after_pick(bundle.bundle_id, node_id, view, memory)

    def retain(self, memory: AvgShedderMemory, active: AbstractSet[str]) -> AvgShedderMemory:
        """The memory as it is: a plan for a missing node is not followed."""
        return self.shedder.retain(memory, active)
