"""What holds a cluster back, found in its log."""

import pytest

from controlplane.config import ClusterConfig
from controlplane.inspection import holds
from controlplane.inspection.holds import HoldKind, read_holds
from tests.helpers.published_world import PublishedWorld
from tests.helpers.sources import source_of


@pytest.fixture
def world() -> PublishedWorld:
    """Two nodes."""
    made = PublishedWorld(ClusterConfig("local"))
    made.admit("n1", "n2")
    return made


def test_the_last_pause_counts(world: PublishedWorld) -> None:
    """An operator who paused and resumed before is not named for the pause of another one."""
    world.principal = "alice"
    world.ask("pause_reconciliation", reason="alice asks")
    world.ask("resume_reconciliation")
    world.principal = "bob"
    world.ask("pause_reconciliation", reason="bob asks")
    paused = world.state.seq
    world.ask("create_namespace", namespace="kv")
    (hold,) = read_holds(source_of(world.reader()), world.state)
    assert (hold.kind, hold.by, hold.why, hold.seq) == (
        HoldKind.RECONCILIATION_PAUSED,
        "bob",
        "bob asks",
        paused,
    )
    assert hold.since_ms is not None
    assert hold.since_ms <= world.now_ms


def test_a_beginning_further_back_than_is_searched_is_left_open(
    world: PublishedWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It holds all the same, and the question ends."""
    world.ask("pause_reconciliation")
    world.ask("create_namespace", namespace="kv")
    monkeypatch.setattr(holds, "_MOST_DECISIONS", 1)
    (hold,) = read_holds(source_of(world.reader()), world.state)
    assert (hold.kind, hold.seq, hold.since_ms) == (HoldKind.RECONCILIATION_PAUSED, None, None)


def test_a_cluster_that_nothing_holds_back_costs_no_reading(world: PublishedWorld) -> None:
    """The log may be long."""
    reader = world.reader()
    reader.close()
    assert read_holds(source_of(reader), world.state) == ()
