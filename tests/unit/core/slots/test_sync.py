"""The gate that SOFARegistry's balancing waits for, case by case."""

from collections.abc import Callable

import pytest

from controlplane.core.slots.reports import SlotReport, SlotStatus
from controlplane.core.slots.sync import is_stable
from controlplane.core.slots.table import Slot
from controlplane.core.values.identifiers import Epoch
from controlplane.core.values.replica_status import ReplicaStatus

GAP_MS = 180_000
SENT_MS = 5_000_000
SLOTS = (Slot(0, "a", ("b",), Epoch(3)), Slot(1, "b", ("a",), Epoch(5)))
LEADER_A = SlotStatus(0, 3, True, ReplicaStatus.HEALTHY, 0)
FOLLOWER_A = SlotStatus(1, 5, False, ReplicaStatus.HEALTHY, SENT_MS)
LEADER_B = SlotStatus(1, 5, True, ReplicaStatus.HEALTHY, 0)
FOLLOWER_B = SlotStatus(0, 3, False, ReplicaStatus.HEALTHY, SENT_MS)
B = SlotReport((FOLLOWER_B, LEADER_B), Epoch(7), SENT_MS, 0)


def stable(leader: SlotStatus = LEADER_A, follower: SlotStatus = FOLLOWER_A, **changed: int) -> bool:
    """Whether all is in sync with these words of node a."""
    said = SlotReport((leader, follower), Epoch(7), SENT_MS, 0)._replace(**changed)  # type: ignore[arg-type]
    return is_stable(SLOTS, {"a": said, "b": B}, Epoch(6), GAP_MS)


OPEN: dict[str, Callable[[], bool]] = {
    "everything is in sync": stable,
    "a follower synced as long ago as may be": lambda: stable(
        follower=FOLLOWER_A._replace(last_sync_ms=SENT_MS - GAP_MS)
    ),
    "a follower that synced lately says that it fetches": lambda: stable(
        follower=FOLLOWER_A._replace(status=ReplicaStatus.MIGRATING)
    ),
    "a follower's clock was set back": lambda: stable(follower=FOLLOWER_A._replace(last_sync_ms=SENT_MS + 9_999)),
    "a node's clock is far off": lambda: stable(follower=FOLLOWER_A._replace(last_sync_ms=77), sent_at_ms=78),
    "a node speaks of slots that are not its own too": lambda: is_stable(
        SLOTS,
        {
            "a": SlotReport((LEADER_A, FOLLOWER_A, LEADER_B, LEADER_A._replace(slot_id=99)), Epoch(7), SENT_MS, 0),
            "b": B,
            "c": SlotReport((FOLLOWER_B._replace(last_sync_ms=0),), Epoch(7), SENT_MS, 0),
        },
        Epoch(7),
        GAP_MS,
    ),
}
CLOSED: dict[str, Callable[[], bool]] = {
    "a slot leader fetches": lambda: stable(LEADER_A._replace(status=ReplicaStatus.MIGRATING)),
    "a slot leader is unhealthy": lambda: stable(LEADER_A._replace(status=ReplicaStatus.UNHEALTHY)),
    "a slot leader speaks of an earlier leadership": lambda: stable(LEADER_A._replace(leader_epoch=2)),
    "a slot leader speaks of a later leadership": lambda: stable(LEADER_A._replace(leader_epoch=4)),
    "a slot leader takes itself for a follower": lambda: stable(LEADER_A._replace(leads=False, last_sync_ms=SENT_MS)),
    "a follower takes itself for the slot leader": lambda: stable(follower=FOLLOWER_A._replace(leads=True)),
    "a follower speaks of an earlier leadership": lambda: stable(follower=FOLLOWER_A._replace(leader_epoch=4)),
    "a follower never synced": lambda: stable(follower=FOLLOWER_A._replace(last_sync_ms=0)),
    "a follower never synced, and its clock is at its beginning": lambda: stable(
        follower=FOLLOWER_A._replace(last_sync_ms=0), sent_at_ms=0
    ),
    "a follower synced too long ago": lambda: stable(follower=FOLLOWER_A._replace(last_sync_ms=SENT_MS - GAP_MS - 1)),
    "a follower synced too long ago by the time since it spoke": lambda: stable(
        follower=FOLLOWER_A._replace(last_sync_ms=SENT_MS - GAP_MS), age_ms=1
    ),
    "a node speaks of an older table": lambda: stable(table_epoch=5),
    "a node says nothing of a slot": lambda: stable(LEADER_A, LEADER_A),
    "a node never spoke": lambda: is_stable(SLOTS, {"b": B}, Epoch(6), GAP_MS),
}


@pytest.mark.parametrize("case", OPEN)
def test_what_opens_the_gate(case: str) -> None:
    """All slot leaders have their data, all followers were in sync lately, by each node's own clock."""
    assert OPEN[case]()


@pytest.mark.parametrize("case", CLOSED)
def test_what_keeps_it_closed(case: str) -> None:
    """One holder that is behind, silent, or speaks of something else, is enough."""
    assert not CLOSED[case]()
