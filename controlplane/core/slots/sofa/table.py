"""SOFARegistry's slot table: slots with leader epochs, and the epoch that orders tables."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from controlplane.core.slots.sofa.refusals import InvalidSlotTableError

EpochSource: TypeAlias = Callable[[], int]
"""Mints the next epoch, greater than every earlier one (DatumVersionUtil.nextId)."""

INITIAL_EPOCH = -1
"""The epoch of the table before the first one (SlotTable.INIT)."""


@dataclass(frozen=True, slots=True)
class SofaSlot:
    """One slot.

    Attributes:
        slot_id: 0 to slot count - 1.
        leader: a node; None or empty only in invalid tables.
        leader_epoch: minted when ``leader`` last changed.
        followers: a set, in the order in which Java iterates it.
    """

    slot_id: int
    leader: str | None
    leader_epoch: int
    followers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SofaTable:
    """All slots by id, and the table's epoch."""

    epoch: int
    slots: Mapping[int, SofaSlot]

    @property
    def nodes(self) -> set[str]:
        """Every node that leads or follows a slot."""
        leaders = {slot.leader for slot in self.slots.values() if slot.leader is not None}
        return leaders.union(*(slot.followers for slot in self.slots.values()))

    def check(self) -> None:
        """Check that the table may be published (SlotTableUtils.isValidSlotTable).

        Raises:
            InvalidSlotTableError: a slot has no leader, or its leader also follows it.
        """
        for slot in self.slots.values():
            if not slot.leader:
                raise InvalidSlotTableError(f"slot {slot.slot_id} has no leader")
            if slot.leader in slot.followers:
                raise InvalidSlotTableError(f"slot {slot.slot_id}: its leader {slot.leader} also follows it")


INITIAL_TABLE = SofaTable(INITIAL_EPOCH, {})
