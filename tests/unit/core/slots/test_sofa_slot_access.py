"""A data node's answers, decision by decision as in SlotManagerImpl.checkSlotAccess and its handlers."""

import pytest

from controlplane.core.slots.sofa.slot_access import (
    LocalSlot,
    SlotAccess,
    SlotAccessStatus,
    read_between,
    slot_access,
    unknown_data_center,
)
from controlplane.core.values.identifiers import SlotId

SLOT = SlotId(3)
ACCEPT, MIGRATING, MOVED, MISMATCH, UNSUPPORTED = SlotAccessStatus


@pytest.mark.parametrize(
    ("local", "source_leader_epoch", "status", "leader_epoch"),
    [
        (None, 7, MOVED, -1),
        (LocalSlot(leads=False, is_migrated=True, leader_epoch=7), 7, MOVED, 7),
        (LocalSlot(leads=False, is_migrated=False, leader_epoch=7), 6, MOVED, 7),
        (LocalSlot(leads=True, is_migrated=False, leader_epoch=7), 7, MIGRATING, 7),
        (LocalSlot(leads=True, is_migrated=False, leader_epoch=7), 6, MIGRATING, 7),
        (LocalSlot(leads=True, is_migrated=True, leader_epoch=7), 6, MISMATCH, 7),
        (LocalSlot(leads=True, is_migrated=True, leader_epoch=7), 8, MISMATCH, 7),
        (LocalSlot(leads=True, is_migrated=True, leader_epoch=7), 7, ACCEPT, 7),
    ],
)
def test_decisions(
    local: LocalSlot | None, source_leader_epoch: int, status: SlotAccessStatus, leader_epoch: int
) -> None:
    """In this order: no replica, not the leader, not migrated, another leader epoch."""
    assert slot_access(SLOT, 20, local, source_leader_epoch) == SlotAccess(SLOT, 20, status, leader_epoch)


def test_an_unknown_data_centre_has_neither_table_nor_leader() -> None:
    """The epoch is that of SlotTable.INIT."""
    assert unknown_data_center(SLOT) == SlotAccess(SLOT, -1, UNSUPPORTED, -1)


def test_writes_pass_while_migrating_and_reads_do_not() -> None:
    """BatchPutDataHandler refuses only what was moved, or goes by another leader epoch."""
    answers = [SlotAccess(SLOT, 1, status, 1) for status in SlotAccessStatus]
    assert [each.status for each in answers if each.may_write] == [ACCEPT, MIGRATING, UNSUPPORTED]
    assert [each.status for each in answers if each.may_read] == [ACCEPT]


def test_a_read_counts_if_the_leader_epoch_is_the_same_afterwards() -> None:
    """The status afterwards makes no difference: the data was whole when it was read."""

    def reading(*answers: SlotAccess) -> tuple[SlotAccess, str | None, int]:
        left, reads = list(answers), []

        def read() -> str:
            reads.append("read")
            return "value"

        answer, result = read_between(lambda: left.pop(0), read)
        return answer, result, len(reads)

    before, moved = SlotAccess(SLOT, 1, ACCEPT, 4), SlotAccess(SLOT, 2, MOVED, 4)
    assert reading(before, before) == (before, "value", 1)
    assert reading(before, moved) == (moved, "value", 1)
    later = SlotAccess(SLOT, 2, ACCEPT, 5)
    assert reading(before, later) == (later, None, 1)
    for status in (MIGRATING, MOVED, MISMATCH, UNSUPPORTED):
        refused = SlotAccess(SLOT, 1, status, 4)
        assert reading(refused) == (refused, None, 0)
