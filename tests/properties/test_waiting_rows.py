"""Rows that wait for the handoff of their leadership, in logs that leaders write and in altered ones."""

from dataclasses import replace

import pytest

from controlplane.core.cluster.policy import ClusterPolicy
from controlplane.core.log.decision import Decision
from controlplane.core.log.events import Event
from controlplane.core.slots.events import PlanMade, SlotsAssigned
from tests.helpers.logs import complaints_of, with_last
from tests.helpers.slot_world import SlotWorld


def _handed_off_with_new_followers() -> list[Decision]:
    """A log up to the decision that admits n2 and n3: rows of n1 get n3 at once, and wait for n2 to copy and lead."""
    world = SlotWorld(ClusterPolicy(slot_count=8, replica_count=3))
    world.start("n1")
    world.join("n2", hands_off=True)
    world.join("n3", hands_off=True)
    while not world.state.slots.handoffs:
        world.go(100)
    assert [event for event in world.decisions[-1].events if isinstance(event, SlotsAssigned)]
    return world.decisions


@pytest.mark.parametrize(
    ("followers", "expected"),
    [
        ((), "waits for its planned row without followers of ('n1', 'n3')"),
        (("n2",), "waits for its planned row, and changes meanwhile to ('n1', 'n2')"),
        (("n2", "n3"), "waits for its planned row, and changes meanwhile to ('n1', 'n2', 'n3')"),
    ],
)
def test_a_slot_that_lacks_replicas_gets_those_of_its_planned_row_at_once(
    followers: tuple[str, ...], expected: str
) -> None:
    """A leadership that waits for a copy is no reason to leave the slot with fewer copies, nor to give it others."""
    decisions = _handed_off_with_new_followers()
    assert complaints_of(decisions) == []
    waiting = next(row for event in decisions[-1].events if isinstance(event, PlanMade) for row in event.rows)
    assert (waiting.leader, waiting.followers) == ("n2", ("n1", "n3"))

    def forged(event: Event) -> Event:
        if not isinstance(event, SlotsAssigned):
            return event
        rows = (replace(row, followers=followers) if row.slot_id == waiting.slot_id else row for row in event.slots)
        return replace(event, slots=tuple(rows))

    complaints = complaints_of(with_last(decisions, tuple(map(forged, decisions[-1].events))))
    assert any(f"slot {waiting.slot_id} {expected}" in complaint for complaint in complaints), complaints
