"""How long a node has been able to read of a loss, as the checks of overlap see it."""

from types import SimpleNamespace
from typing import cast

from controlplane.core.values.positions import TABLE_PLACE
from tests.simulation.invariants.bounds import LOOK_EVERY_MS
from tests.simulation.invariants.table_readings import TableReadings
from tests.simulation.world import World


def test_time_counts_from_the_end_of_readings_from_a_former_leader() -> None:
    """A second process of the node counts as the node; what another one reads does not."""
    machines = {name: SimpleNamespace(network=SimpleNamespace(stale_ends={})) for name in ("n1", "n1-again", "n2")}
    world = SimpleNamespace(machines=machines, scheduler=SimpleNamespace(now_ms=1_000))
    readings = TableReadings(cast("World", world))
    machines["n1-again"].network.stale_ends[TABLE_PLACE] = 7
    readings.look()
    machines["n1-again"].network.stale_ends.clear()
    world.scheduler.now_ms = 5_000
    readings.look()
    assert readings.known_for_ms("n1", 500) == 4_000 - LOOK_EVERY_MS
    assert readings.known_for_ms("n1", 3_000) == 2_000
    assert readings.known_for_ms("n2", 500) == 4_500
