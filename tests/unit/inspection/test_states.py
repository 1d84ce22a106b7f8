"""What somebody outside finds of a cluster: its nodes' last words, as old as they are."""

from controlplane.config import ClusterConfig
from controlplane.core.deciding.planning import slot_request
from controlplane.core.log.draft import Draft
from controlplane.inspection import states
from tests.helpers.published_world import PublishedWorld
from tests.helpers.sources import source_of


def test_reports_are_as_old_as_they_are() -> None:
    """A dry run asks the slot policy as the leader would: a node that said long ago that it is in sync may not be."""
    world = PublishedWorld(ClusterConfig("local"))
    world.admit("n1", "n2")
    world.heartbeat("n1")
    world.run(200)
    world.heartbeat("n2")
    world.run(700)
    observed = states.read_observations(source_of(world.reader()), world.state)
    now_ms = world.now_ms
    assert observed.now_ms == now_ms
    found = slot_request(Draft(world.state), observed, now_ms).reports
    assert found == slot_request(Draft(world.state), world.observations, now_ms).reports
    assert {name: report.age_ms for name, report in found.items()} == {"n1": 900, "n2": 700}
