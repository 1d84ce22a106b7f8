"""The strategy that takes one node after the other (Pulsar's RoundRobinBrokerSelector)."""

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from controlplane.core.bundles.placement.contract import BundleToPlace, Selection

_GREATEST_COUNT: Final = 2**31 - 1


class RoundRobinMemory(NamedTuple):
    """The number of selections, and the list of candidates that positions refer to.

    The number starts again at 0 after 2^31 - 1. The list is that of an earlier selection as long as it has as many
    candidates as now, so nodes keep their positions while candidates arrive in another order.
    """

    selection_count: int = 0
    listed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RoundRobin:
    """Choose the candidate at the position ``selection_count`` modulo the number of candidates, whatever its load."""

    name: str = "RoundRobinBrokerSelector"
    first_memory: RoundRobinMemory = field(default_factory=RoundRobinMemory)

    def select(
        self,
        bundle: BundleToPlace,  # noqa: ARG002 - every bundle is placed alike
        candidates: Sequence[str],
        view: object,  # noqa: ARG002 - loads do not count
        memory: RoundRobinMemory,
    ) -> Selection[RoundRobinMemory]:
        """The next candidate; the remembered list is renewed if its length or the node at the position do not fit."""
        if not candidates:
            return Selection((), memory)
        index = memory.selection_count % len(candidates)
        listed = memory.listed
        if len(listed) != len(candidates) or listed[index] not in candidates:
            listed = tuple(candidates)
        count = 0 if memory.selection_count == _GREATEST_COUNT else memory.selection_count + 1
        return Selection((listed[index],), RoundRobinMemory(count, listed))

    def after_pick(
        self,
        bundle: BundleToPlace,  # noqa: ARG002
        node_id: str,  # noqa: ARG002
        view: object,  # noqa: ARG002
        memory: RoundRobinMemory,
    ) -> RoundRobinMemory:
        """The memory as it is: the turn went on with the selection."""
        return memory

    def retain(self, memory: RoundRobinMemory, active: AbstractSet[str]) -> RoundRobinMemory:  # noqa: ARG002
        """The memory as it is: a node that has gone is found missing when its turn comes."""
        return memory
