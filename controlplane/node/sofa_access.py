"""The answers of a node to requests for its slots as a data node of SOFARegistry gives them."""

from collections.abc import Callable
from typing import Final, TypeVar

from controlplane.core.slots.sofa.slot_access import (
    SlotAccess,
    read_between,
    slot_access,
    unknown_data_center,
)
from controlplane.core.values.identifiers import SlotId
from controlplane.node.agent import NodeAgent

DEFAULT_DATA_CENTER: Final = "DefaultDataCenter"
"""SOFARegistry's own default."""

ResultT = TypeVar("ResultT")


class SofaSlotAccess:
    """A profile of an agent's answers for services whose clients speak SOFARegistry's protocol. Thread-safe.

    A node whose session may not serve answers as one that is no replica. A slot that is being released counts as moved.
    """

    def __init__(self, agent: NodeAgent, data_center: str = DEFAULT_DATA_CENTER) -> None:
        """Answer for an agent's slots, which are those of one data centre."""
        self._agent = agent
        self._data_center = data_center

    def check(self, data_center: str, slot_id: SlotId, leader_epoch: int) -> SlotAccess:
        """The answer to a request that was sent by this leader epoch. Names of data centres ignore the case.

        The epoch of the caller's table, which SOFARegistry's requests carry as well, makes no difference there.
        """
        if data_center.casefold() != self._data_center.casefold():
            return unknown_data_center(slot_id)
        epoch, local = self._agent.local_slot(slot_id)
        return slot_access(slot_id, epoch, local, leader_epoch)

    def read(
        self, data_center: str, slot_id: SlotId, leader_epoch: int, read: Callable[[], ResultT]
    ) -> tuple[SlotAccess, ResultT | None]:
        """Read if the slot is served; the result counts only if its leader epoch is still the same afterwards.

        Returns:
            the last answer, and the result; None for a read that was refused.
        """
        return read_between(lambda: self.check(data_center, slot_id, leader_epoch), read)
