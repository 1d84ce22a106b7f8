"""A node disappears or comes back: when the leader cleans up, and what it writes for each bundle."""

import pytest

from controlplane.core.bundles.ownership_channel.cleanup import (
    CleanUp,
    CleanUpSkip,
    OverrideReason,
    bundles_of_node,
    override,
    plan_clean_up,
)
from controlplane.core.bundles.ownership_channel.conflict import judge
from controlplane.core.bundles.ownership_channel.lost_nodes import (
    JITTER_MS,
    CleanUps,
    CreationAnswer,
    DeletionAnswer,
    MetadataState,
    SessionEvent,
    health_check_delay_ms,
    metadata_state,
    on_node_created,
    on_node_deleted,
)
from controlplane.core.bundles.ownership_channel.record import OwnershipRecord
from controlplane.core.bundles.ownership_channel.states import Storage
from controlplane.core.bundles.ownership_state import OwnershipState
from controlplane.errors import InvariantViolationError

NOW = 1_000_000
OWNED, ASSIGNING, RELEASING, SPLITTING, FREE, DELETED = (
    OwnershipState.OWNED,
    OwnershipState.ASSIGNING,
    OwnershipState.RELEASING,
    OwnershipState.SPLITTING,
    OwnershipState.FREE,
    OwnershipState.DELETED,
)
CHILDREN = {"0x00000000_0x80000000": None}


@pytest.mark.parametrize(
    ("event", "age_ms", "state"),
    [
        (SessionEvent.REESTABLISHED, None, MetadataState.STABLE),
        (SessionEvent.REESTABLISHED, 180_001, MetadataState.STABLE),
        (SessionEvent.REESTABLISHED, 180_000, MetadataState.JITTERY),
        (SessionEvent.REESTABLISHED, 0, MetadataState.JITTERY),
        (SessionEvent.LOST, 180_001, MetadataState.UNSTABLE),
        (SessionEvent.LOST, None, MetadataState.UNSTABLE),
    ],
)
def test_the_metadata_state_is_that_of_the_last_session_event(
    event: SessionEvent, age_ms: int | None, state: MetadataState
) -> None:
    """A session that came back is trusted after three minutes."""
    assert metadata_state(event, age_ms) is state


@pytest.mark.parametrize(
    ("state", "answer", "due_ms"),
    [
        (MetadataState.STABLE, DeletionAnswer.CLEANS_UP_NOW, NOW),
        (MetadataState.JITTERY, DeletionAnswer.CLEANS_UP_LATER, NOW + JITTER_MS),
        (MetadataState.UNSTABLE, DeletionAnswer.UNSTABLE, None),
    ],
)
def test_the_leader_cleans_up_after_a_node_as_the_metadata_state_allows(
    state: MetadataState, answer: DeletionAnswer, due_ms: int | None
) -> None:
    """With the leader's own session lost, every node may seem dead."""
    found = on_node_deleted("a", NOW, CleanUps(), state, is_leader=True)
    assert found.answer is answer
    assert found.clean_ups.due_ms == ({} if due_ms is None else {"a": due_ms})


def test_nobody_but_the_leader_cleans_up() -> None:
    """Two nodes would choose two destinations."""
    nothing = CleanUps()
    not_leader = on_node_deleted("a", NOW, nothing, MetadataState.STABLE, is_leader=False)
    assert not_leader == (DeletionAnswer.NOT_LEADER, nothing)
    disabled = on_node_deleted("a", NOW, nothing, MetadataState.STABLE, is_leader=True, is_disabled=True)
    assert disabled == (DeletionAnswer.DISABLED, nothing)


def test_a_second_notice_does_not_put_a_clean_up_off() -> None:
    """The leader's search reports a lost node every minute."""
    scheduled = CleanUps({"a": NOW + JITTER_MS})
    for state in (MetadataState.STABLE, MetadataState.JITTERY):
        found = on_node_deleted("a", NOW + 60_000, scheduled, state, is_leader=True)
        assert found == (DeletionAnswer.ALREADY_SCHEDULED, scheduled)
    assert scheduled.due(NOW + JITTER_MS - 1) == ()
    assert scheduled.due(NOW + JITTER_MS) == ("a",)
    assert scheduled.without("a") == CleanUps()


def test_a_node_that_comes_back_in_health_cancels_its_clean_up() -> None:
    """Registering alone does not show that a node serves."""
    scheduled = CleanUps({"a": NOW, "b": NOW})
    assert on_node_created("a", scheduled, is_healthy=True) == (CreationAnswer.CANCELLED, CleanUps({"b": NOW}))
    assert on_node_created("a", scheduled, is_healthy=False) == (CreationAnswer.NOT_HEALTHY, scheduled)
    assert on_node_created("c", scheduled, is_healthy=True) == (CreationAnswer.NOTHING_SCHEDULED, scheduled)


def test_a_health_check_is_repeated_three_times() -> None:
    """Delays grow with the square of the number of repetitions."""
    assert [health_check_delay_ms(failures) for failures in (1, 2, 3, 4)] == [0, 50, 200, None]


@pytest.mark.parametrize(
    ("former", "chosen", "gracefully", "following", "reason"),
    [
        ((OWNED, "dead", "old"), "new", False, (OWNED, "new", "dead"), OverrideReason.OWNER_LOST),
        ((OWNED, "dead", None), "new", True, (RELEASING, "new", "dead"), OverrideReason.OWNER_LEAVES),
        # Chosen among all nodes, an owner may get its bundle again: then there is no source.
        ((OWNED, "a", "old"), "a", False, (OWNED, "a", None), OverrideReason.OWNER_LOST),
        ((OWNED, "a", "old"), "a", True, (OWNED, "a", None), OverrideReason.OWNER_LOST),
        ((OWNED, "dead", "old"), None, False, (FREE, None, "dead"), OverrideReason.NO_NODE),
        ((ASSIGNING, "dead", "old"), "new", False, (OWNED, "new", "old"), OverrideReason.NEVER_TAKEN),
        ((ASSIGNING, "dead", "old"), "old", False, (OWNED, "old", None), OverrideReason.NEVER_TAKEN),
        ((ASSIGNING, "dead", None), "new", True, (OWNED, "new", None), OverrideReason.NEVER_TAKEN),
        ((ASSIGNING, "dead", None), None, False, (FREE, None, None), OverrideReason.NO_NODE),
        ((RELEASING, "b", "dead"), "new", False, (OWNED, "new", "dead"), OverrideReason.NEVER_TAKEN),
        ((RELEASING, None, "dead"), "new", True, (OWNED, "new", "dead"), OverrideReason.NEVER_TAKEN),
        ((RELEASING, None, "dead"), None, True, (FREE, None, "dead"), OverrideReason.NO_NODE),
        ((SPLITTING, None, "dead"), "new", False, (SPLITTING, None, "new"), OverrideReason.SPLIT_AGAIN),
        ((SPLITTING, "was", "dead"), "new", True, (SPLITTING, "was", "new"), OverrideReason.SPLIT_AGAIN),
        ((SPLITTING, None, "dead"), None, False, (FREE, None, "dead"), OverrideReason.NO_NODE),
    ],
)
def test_what_takes_the_place_of_a_record(
    former: tuple[OwnershipState, str | None, str | None],
    chosen: str | None,
    gracefully: bool,
    following: tuple[OwnershipState, str | None, str | None],
    reason: OverrideReason,
) -> None:
    """Every state has one way out, and the record is taken by every reader in both storages."""
    children = CHILDREN if former[0] is SPLITTING else {}
    before = OwnershipRecord(*former, version=8, timestamp_ms=1, children=children)
    found = override("t/n/1", before, chosen, NOW, gracefully=gracefully)
    kept = CHILDREN if following[0] is SPLITTING else {}
    assert found.record == OwnershipRecord(*following, version=9, timestamp_ms=NOW, is_forced=True, children=kept)
    assert (found.bundle_id, found.former, found.reason) == ("t/n/1", before, reason)
    assert not any(judge(before, found.record, storage).keeps for storage in Storage)


RECORDS = {
    "pulsar/system/1": OwnershipRecord(OWNED, "dead"),
    "t/n/owned": OwnershipRecord(OWNED, "dead", "b"),
    "t/n/formerly-owned": OwnershipRecord(OWNED, "b", "dead"),
    "t/n/assigned": OwnershipRecord(ASSIGNING, "dead"),
    "t/n/assigned-from": OwnershipRecord(ASSIGNING, "b", "dead"),
    "t/n/released": OwnershipRecord(RELEASING, None, "dead"),
    "t/n/released-to": OwnershipRecord(RELEASING, "dead", "b"),
    "t/n/split": OwnershipRecord(SPLITTING, None, "dead"),
    "t/n/free": OwnershipRecord(FREE, None, "dead"),
    "t/n/deleted": OwnershipRecord(DELETED, None, "dead"),
    "t/n/other": OwnershipRecord(OWNED, "b"),
    "pulsar/system2/1": OwnershipRecord(OWNED, "dead"),
}
OTHERS = (
    "t/n/owned",
    "t/n/assigned",
    "t/n/assigned-from",
    "t/n/released",
    "t/n/released-to",
    "t/n/split",
    "pulsar/system2/1",
)


def test_which_bundles_a_lost_node_leaves() -> None:
    """As a source it matters only while the bundle is in flight."""
    assert bundles_of_node(RECORDS, "dead") == (OTHERS, ("pulsar/system/1",))


def test_a_clean_up_is_planned_in_batches_with_the_systems_bundles_last() -> None:
    """The table's own topic is in one of the system's bundles: it must not move while the others are written."""
    destinations = dict.fromkeys(OTHERS[1:], "b")
    plan = plan_clean_up(RECORDS, "dead", destinations | {"pulsar/system/1": "b"}, NOW, max_concurrent=3)
    assert [[each.bundle_id for each in batch] for batch in plan.others] == [
        list(OTHERS[:3]),
        list(OTHERS[3:6]),
        list(OTHERS[6:]),
    ]
    assert [[each.bundle_id for each in batch] for batch in plan.system] == [["pulsar/system/1"]]
    # Without a destination, or with None, the bundle is freed.
    assert plan.others[0][0].reason is OverrideReason.NO_NODE
    assert plan.others[0][1].record.destination == "b"
    assert all(each.record.is_forced for batch in (*plan.others, *plan.system) for each in batch)


def test_a_clean_up_that_shuts_a_node_down_releases_what_it_owns() -> None:
    """The node is alive: it closes its topics in good order."""
    plan = plan_clean_up(RECORDS, "dead", {"t/n/owned": "b"}, NOW, max_concurrent=64, gracefully=True, is_healthy=True)
    assert plan.skip is None
    assert plan.others[0][0].record.state is RELEASING


def test_a_clean_up_is_given_up_for_a_healthy_node_and_without_a_leader() -> None:
    """A node that answers still serves its clients, whatever the registry says."""
    healthy = plan_clean_up(RECORDS, "dead", {}, NOW, max_concurrent=64, is_healthy=True)
    assert healthy == CleanUp("dead", CleanUpSkip.HEALTHY)
    leaderless = plan_clean_up(RECORDS, "dead", {}, NOW, max_concurrent=64, gracefully=True, has_leader=False)
    assert leaderless == CleanUp("dead", CleanUpSkip.NO_LEADER)
    assert plan_clean_up(RECORDS, "nobody", {}, NOW, max_concurrent=64) == CleanUp("nobody", None)


def test_the_lost_node_cannot_be_chosen() -> None:
    """The placement is asked with the node excluded."""
    with pytest.raises(InvariantViolationError, match="was chosen for one of its own bundles"):
        plan_clean_up(RECORDS, "dead", {"t/n/owned": "dead"}, NOW, max_concurrent=64)
