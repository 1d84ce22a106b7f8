"""The answers of a data node to requests for its slots (SlotManagerImpl.checkSlotAccess, BatchPutDataHandler).

A request carries the epoch of the slot table by which it was sent, and that of the slot's leader in it.
"""

from collections.abc import Callable
from enum import Enum
from typing import Final, NamedTuple, TypeVar

from controlplane.core.values.identifiers import SlotId

NO_EPOCH: Final = -1
"""Stands for the epochs of a table or a leader that the node does not have."""

ResultT = TypeVar("ResultT")


class SlotAccessStatus(Enum):
    """Whether a data node serves a slot; the values are SOFARegistry's names."""

    ACCEPT = "Accept"
    MIGRATING = "Migrating"
    MOVED = "Moved"
    MISMATCH = "MisMatch"
    UNSUPPORTED = "UnSupport"


class SlotAccess(NamedTuple):
    """An answer, with what the asking node compares its own table with.

    Attributes:
        slot_id: the slot.
        table_epoch: of the answering node's slot table; -1 for an unknown data centre.
        status: whether it serves the slot.
        leader_epoch: of the slot in that table; -1 if the node is no replica of it.
    """

    slot_id: SlotId
    table_epoch: int
    status: SlotAccessStatus
    leader_epoch: int

    @property
    def may_write(self) -> bool:
        """Whether a write is carried out: also while the slot's data is being fetched."""
        return self.status not in (SlotAccessStatus.MOVED, SlotAccessStatus.MISMATCH)

    @property
    def may_read(self) -> bool:
        """Whether a read is carried out."""
        return self.status is SlotAccessStatus.ACCEPT


class LocalSlot(NamedTuple):
    """What a data node knows of a slot of which it is a replica.

    Attributes:
        leads: whether it leads the slot.
        is_migrated: whether it has all of the slot's data.
        leader_epoch: the slot's leader epoch.
    """

    leads: bool
    is_migrated: bool
    leader_epoch: int


def slot_access(slot_id: SlotId, table_epoch: int, local: LocalSlot | None, source_leader_epoch: int) -> SlotAccess:
    """The answer to a request.

    Args:
        slot_id: the slot.
        table_epoch: of the answering node's slot table.
        local: what it knows of the slot; None if it is no replica of it.
        source_leader_epoch: the slot's leader epoch in the table by which the request was sent.
    """
    if local is None:
        return SlotAccess(slot_id, table_epoch, SlotAccessStatus.MOVED, NO_EPOCH)
    if not local.leads:
        status = SlotAccessStatus.MOVED
    elif not local.is_migrated:
        status = SlotAccessStatus.MIGRATING
    elif local.leader_epoch != source_leader_epoch:
        status = SlotAccessStatus.MISMATCH
    else:
        status = SlotAccessStatus.ACCEPT
    return SlotAccess(slot_id, table_epoch, status, local.leader_epoch)


def unknown_data_center(slot_id: SlotId) -> SlotAccess:
    """The answer to a request for a data centre of which the node has no table."""
    return SlotAccess(slot_id, NO_EPOCH, SlotAccessStatus.UNSUPPORTED, NO_EPOCH)


def read_between(check: Callable[[], SlotAccess], read: Callable[[], ResultT]) -> tuple[SlotAccess, ResultT | None]:
    """Read, if the slot is served and its leader epoch is the same afterwards (GetDataHandler, GetDataVersionsHandler).

    Returns:
        the last answer of ``check``, and the result; None for a read that was refused before or after.
    """
    before = check()
    if not before.may_read:
        return before, None
    result = read()
    after = check()
    return after, result if after.leader_epoch == before.leader_epoch else None
