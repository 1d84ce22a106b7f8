"""Groups of slots of equal status say what one status for each slot says, in a fraction of the bytes."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.codec.inputs import MAX_RECORD_BYTES, encode_input
from controlplane.core.membership.inputs import Heartbeat
from controlplane.core.membership.node import NodeRole
from controlplane.core.slots.reports import SlotReport, SlotStatus, few, grouped, merged, statuses_in
from controlplane.core.slots.sync import is_stable
from controlplane.core.slots.table import Slot
from controlplane.core.values.identifiers import Epoch, SlotId
from controlplane.core.values.replica_status import ReplicaStatus

SLOTS = 24
HELD = st.dictionaries(
    st.integers(0, SLOTS - 1).map(SlotId), st.tuples(st.sampled_from(ReplicaStatus), st.sampled_from([0, 40, 90]))
).map(lambda held: [(slot_id, *alike) for slot_id, alike in sorted(held.items())])
LEADERS = st.lists(st.sampled_from(["n1", "n2"]), min_size=SLOTS, max_size=SLOTS)


def said_one_by_one(held: list[tuple[SlotId, ReplicaStatus, int]], slots: tuple[Slot, ...]) -> tuple[SlotStatus, ...]:
    """The statuses that node n1 reports if it uses this table and sends one for each slot."""
    statuses = []
    for slot_id, status, last_sync_ms in held:
        leads = slots[slot_id].leader == "n1"
        statuses.append(SlotStatus(slot_id, slots[slot_id].leader_epoch, leads, status, 0 if leads else last_sync_ms))
    return tuple(statuses)


@given(HELD, LEADERS)
def test_groups_hold_every_slot_with_its_status(
    held: list[tuple[SlotId, ReplicaStatus, int]], leaders: list[str]
) -> None:
    """A leader that knows the node's table reads from the groups what the node knows."""
    slots = tuple(Slot(SlotId(number), leader, (), Epoch(3)) for number, leader in enumerate(leaders))
    assert statuses_in(grouped(held), "n1", Epoch(3), slots) == said_one_by_one(held, slots)


@given(HELD, LEADERS, LEADERS)
def test_groups_of_an_older_table_count_for_as_much_as_single_statuses(
    held: list[tuple[SlotId, ReplicaStatus, int]], before: list[str], after: list[str]
) -> None:
    """The table has changed since the node read it. What is ready, and what is in sync, is the same in both ways."""
    old = tuple(Slot(SlotId(number), leader, (), Epoch(3)) for number, leader in enumerate(before))
    new = tuple(slot.assigned(leader, ("n1",), Epoch(4)) for slot, leader in zip(old, after, strict=True))
    one_by_one, in_groups = said_one_by_one(held, old), statuses_in(grouped(held), "n1", Epoch(3), new)
    assert [(each.slot_id, each.status) for each in in_groups] == [(each.slot_id, each.status) for each in one_by_one]
    others = SlotReport(tuple(SlotStatus(slot.slot_id, slot.leader_epoch, True, ReplicaStatus.HEALTHY, 0)
                              for slot in new if slot.leader == "n2"), Epoch(4), 100, 0)  # fmt: skip
    said = [{"n1": SlotReport(way, Epoch(3), 100, 0), "n2": others} for way in (one_by_one, in_groups)]
    assert is_stable(new, said[0], max_sync_gap_ms=50) == is_stable(new, said[1], max_sync_gap_ms=50)


@given(HELD)
def test_merged_groups_hold_every_slot_with_its_status_and_no_later_sync(
    held: list[tuple[SlotId, ReplicaStatus, int]],
) -> None:
    """A follower may seem to be behind where it is not, never the other way round; one group a status is left."""
    groups = merged(grouped(held))
    assert len(groups) == len({status for _, status, _ in held})
    said = {slot_id: group for group in groups for slot_id in group.slot_ids}
    assert {slot_id: group.status for slot_id, group in said.items()} == {each[0]: each[1] for each in held}
    assert all(said[slot_id].last_sync_ms <= last_sync_ms for slot_id, _, last_sync_ms in held)


def test_whatever_a_node_holds_some_of_it_fits_and_what_is_ready_goes_first() -> None:
    """Every second slot is ready, at times of its own: neither runs nor times can be put together."""
    slots = 300_000
    statuses = ReplicaStatus.HEALTHY, ReplicaStatus.MIGRATING
    held = [(SlotId(number), statuses[number % 2], number) for number in range(slots)]
    groups = merged(grouped(held))
    single = [SlotStatus(slot_id, 1_000_000, False, status, 2**41) for slot_id, status, _ in held]
    assert len(encode_input(Heartbeat("n1", 1, 0, Epoch(1), NodeRole.DATA, slot_groups=groups))) <= MAX_RECORD_BYTES
    assert (
        len(encode_input(Heartbeat("n1", 1, 0, Epoch(1), NodeRole.DATA, slot_statuses=few(single)))) < MAX_RECORD_BYTES
    )
    assert [group.status for group in groups] == [ReplicaStatus.HEALTHY]
    assert {each.status for each in few(single)} == {ReplicaStatus.HEALTHY}
    unready = [each for each in single if each.status is ReplicaStatus.MIGRATING]
    assert few(unready)
    assert few([]) == ()


@pytest.mark.parametrize(("slot_count", "held_count"), [(32_768, 16_384), (131_072, 65_536)])
def test_many_slots_that_lie_at_random_fit_into_a_heartbeat(slot_count: int, held_count: int) -> None:
    """Slots of a node are no long ranges: placement moves as few as it can, so neighbours end up anywhere."""
    slot_ids = sorted(random.Random(7).sample(range(slot_count), held_count))
    groups = grouped((SlotId(slot_id), ReplicaStatus.HEALTHY, 1_700_000_000_000) for slot_id in slot_ids)
    beat = Heartbeat("n1", 1, 0, Epoch(9), NodeRole.DATA, slot_groups=groups)
    assert len(encode_input(beat)) < MAX_RECORD_BYTES / 3
    assert len(encode_input(beat)) < 1.5 * held_count
