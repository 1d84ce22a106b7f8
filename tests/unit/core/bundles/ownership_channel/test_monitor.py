"""The leader's search of the ownership table."""

import pytest

from controlplane.core.bundles.ownership_channel.lost_nodes import MetadataState
from controlplane.core.bundles.ownership_channel.monitor import (
    Findings,
    InactiveNode,
    MonitorSkip,
    OldRecord,
    find_stuck,
)
from controlplane.core.bundles.ownership_channel.record import OwnershipRecord
from controlplane.core.bundles.ownership_channel.settings import OwnershipSettings
from controlplane.core.bundles.ownership_state import OwnershipState
from controlplane.errors import ConfigurationError

NOW = 10_000_000
LIVE = frozenset({"a", "b"})
SETTINGS = OwnershipSettings()


def search(records: dict[str, OwnershipRecord]) -> Findings:
    """What the leader finds with a stable registry."""
    return find_stuck(records, LIVE, NOW, SETTINGS, MetadataState.STABLE, is_leader=True)


def record(
    state: OwnershipState, destination: str | None = None, source: str | None = None, age_ms: int = 0
) -> OwnershipRecord:
    """A record of this age."""
    return OwnershipRecord(state, destination, source, 3, NOW - age_ms)


@pytest.mark.parametrize(
    ("live", "state", "is_leader", "skip"),
    [
        (LIVE, MetadataState.STABLE, False, MonitorSkip.NOT_LEADER),
        (frozenset(), MetadataState.STABLE, True, MonitorSkip.NO_NODES),
        (LIVE, MetadataState.JITTERY, True, MonitorSkip.NOT_STABLE),
        (LIVE, MetadataState.UNSTABLE, True, MonitorSkip.NOT_STABLE),
        (LIVE, MetadataState.STABLE, True, None),
    ],
)
def test_when_the_table_is_searched(
    live: frozenset[str],
    state: MetadataState,
    is_leader: bool,
    skip: MonitorSkip | None,
) -> None:
    """A registry that cannot be believed would make every node a lost one."""
    records = {"t/n/1": record(OwnershipState.OWNED, "dead")}
    found = find_stuck(records, live, NOW, SETTINGS, state, is_leader=is_leader)
    assert found.skip is skip
    assert bool(found.inactive) is (skip is None)


@pytest.mark.parametrize(
    ("present", "lost"),
    [
        (record(OwnershipState.OWNED, "dead", "a"), "dead"),
        (record(OwnershipState.OWNED, "a", "dead"), None),
        (record(OwnershipState.ASSIGNING, "dead", "a"), "dead"),
        (record(OwnershipState.ASSIGNING, "dead", "gone"), "gone"),
        (record(OwnershipState.RELEASING, None, "dead", 30_001), "dead"),
        (record(OwnershipState.RELEASING, "dead", "a"), "dead"),
        (record(OwnershipState.SPLITTING, " ", "dead"), "dead"),
        (record(OwnershipState.FREE, None, "dead"), None),
        (record(OwnershipState.DELETED, None, "dead"), None),
    ],
)
def test_lost_nodes_are_found(present: OwnershipRecord, lost: str | None) -> None:
    """They are treated as if they had just disappeared, in case that notice was missed."""
    found = search({"t/n/1": present})
    assert found == Findings(None, () if lost is None else (InactiveNode(lost, ("t/n/1",)),))


def test_a_lost_node_is_found_once() -> None:
    """With all bundles that name it, as evidence."""
    dead = record(OwnershipState.OWNED, "dead")
    found = search({"t/n/1": dead, "t/n/2": record(OwnershipState.ASSIGNING, "gone"), "t/n/3": dead})
    assert found.inactive == (InactiveNode("dead", ("t/n/1", "t/n/3")), InactiveNode("gone", ("t/n/2",)))


@pytest.mark.parametrize(
    ("state", "age_ms", "is_stuck"),
    [
        (OwnershipState.ASSIGNING, 30_001, True),
        (OwnershipState.ASSIGNING, 30_000, False),
        (OwnershipState.RELEASING, 30_001, True),
        (OwnershipState.SPLITTING, 30_001, True),
        (OwnershipState.OWNED, 1_000_000, False),
        (OwnershipState.FREE, 30_001, False),
    ],
)
def test_a_change_that_takes_too_long_is_found(state: OwnershipState, age_ms: int, is_stuck: bool) -> None:
    """Its nodes live, and one of them has missed its turn."""
    found = search({"t/n/1": record(state, "a", "b", age_ms)})
    assert found == Findings(None, stuck=(OldRecord("t/n/1", age_ms, 30_000),) if is_stuck else ())


@pytest.mark.parametrize("state", [OwnershipState.FREE, OwnershipState.DELETED])
def test_a_bundle_without_owner_is_forgotten_after_an_hour(state: OwnershipState) -> None:
    """So that the table does not grow with every bundle there ever was."""
    records = {"old": record(state, None, "a", 3_600_001), "new": record(state, None, "a", 3_600_000)}
    assert search(records) == Findings(None, forgotten=(OldRecord("old", 3_600_001, 3_600_000),))


def test_a_bundle_that_nobody_owns_though_it_is_owned_is_stuck() -> None:
    """Pulsar looks for a node without a name then, and fails."""
    assert search({"t/n/1": record(OwnershipState.OWNED, None, "a", 5)}).stuck == (OldRecord("t/n/1", 5, 0),)


def test_no_record_is_forgotten_before_its_change_could_end() -> None:
    """Both limits are settings, and the clean-up needs batches."""
    with pytest.raises(ConfigurationError, match="cannot be forgotten"):
        OwnershipSettings(tombstone_delay_s=29)
    with pytest.raises(ConfigurationError, match="MaxConcurrentOverrides is 0, allowed is 1 or greater"):
        OwnershipSettings(max_concurrent_overrides=0)
