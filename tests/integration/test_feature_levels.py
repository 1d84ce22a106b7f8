"""A rolling upgrade of controllers, up and back, on real processes: an older release beside this one."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from controlplane.codec.inputs import decode_input
from controlplane.config import HEARTBEATS
from controlplane.core.cluster.events import FeatureLevelRaised
from controlplane.core.cluster.policy import FEATURE_LEVEL
from controlplane.core.membership.inputs import Tick
from controlplane.embedded.kafka import EmbeddedKafka
from controlplane.embedded.valkey import EmbeddedValkey
from tests.helpers.real_cluster import RealCluster

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

OLDER = "tests.helpers.older_build"
NODES = ("n1", "n2", "n3")


@pytest.fixture
def cluster(
    kafka_broker: EmbeddedKafka, valkey_server: EmbeddedValkey, cluster_name: str, tmp_path: Path
) -> Iterator[RealCluster]:
    """A cluster that a release of feature level 1 has created: two controllers, three nodes."""
    with RealCluster(cluster_name, kafka_broker.bootstrap_servers, valkey_server.redis_url, tmp_path) as running:
        running.start_controller("c1", program=OLDER)
        running.start_controller("c2", program=OLDER)
        running.join(*NODES)
        running.wait_until(lambda: running.slot_leaders() == set(NODES), "the first table")
        yield running


def replace(cluster: RealCluster, name: str, program: str) -> None:
    """A controller of one release in place of the other; a second one goes on meanwhile."""
    cluster.stop_controller(name)
    cluster.start_controller(name, program=program)


def lead(cluster: RealCluster, name: str) -> None:
    """Let a controller lead: the other one is killed, whichever of them leads by now."""
    for other, process in cluster.controllers.items():
        if other != name:
            process.kill()
            process.wait(10)
    cluster.wait_until(lambda: cluster.leader() == name, f"{name} leads")


def ticks_of(cluster: RealCluster, controller_id: str) -> int:
    """The number of ticks that a controller has written so far."""
    written = (decode_input(HEARTBEATS, record).payload for record in cluster.records(HEARTBEATS))
    return sum(isinstance(each, Tick) and each.controller_id == controller_id for each in written)


def start_until_it_ticks(cluster: RealCluster, controller_id: str, program: str) -> None:
    """Start a controller, and wait until the leader can know of it: before, nothing speaks against a raise."""
    before = ticks_of(cluster, controller_id)
    cluster.start_controller(controller_id, program=program)
    cluster.wait_until(lambda: ticks_of(cluster, controller_id) > before + 5, f"ticks of {controller_id}")


def test_upgrade_up_and_back(cluster: RealCluster) -> None:
    """Releases lead in turn while the level is the old one; once it is raised, the old one stops and harms nobody."""
    assert {each.feature_level for each in cluster.decisions()} == {1}

    # Up: the first controller is replaced, and leads beside a standby of the old release.
    replace(cluster, "c2", "controlplane.cli")
    lead(cluster, "c2")
    cluster.start_controller("c1", program=OLDER)
    cluster.join("n4")
    cluster.wait_until(lambda: "n4" in cluster.slot_leaders(), "a join under the new release")

    # And back: the old release reads what the new one has written, and leads again.
    lead(cluster, "c1")
    cluster.start_controller("c2")
    cluster.join("n5")
    cluster.wait_until(lambda: "n5" in cluster.slot_leaders(), "a join under the old release")
    assert {each.feature_level for each in cluster.decisions()} == {1}

    # The level is raised by the new release only, and not while somebody is known who may not support it.
    lead(cluster, "c2")
    start_until_it_ticks(cluster, "c1", OLDER)
    assert "c1 may not support" in cluster.command("feature-level", "raise", "2").stdout
    assert {each.feature_level for each in cluster.decisions()} == {1}
    standby = cluster.controllers["c1"]
    term = cluster.decisions()[-1].term
    raised = cluster.command("feature-level", "raise", "2", "--upgraded", "c1")
    assert raised.returncode == 0, raised.stdout + raised.stderr
    assert cluster.decisions()[-1].events[0] == FeatureLevelRaised(2)

    # It was not true: the old standby stops by itself, says why, and the leader is not disturbed.
    assert standby.wait(30) == 1
    assert "upgrade before reading on" in cluster.log_of("c1").read_text(encoding="utf-8", errors="replace")
    again = cluster.start_controller("c1", program=OLDER)
    assert again.wait(30) == 1
    time.sleep(3)
    assert (cluster.leader(), cluster.decisions()[-1].term) == ("c2", term)

    # There is no way back behind what is written, and the reason is said.
    lowered = cluster.command("feature-level", "raise", "1")
    assert lowered.returncode == 1
    assert "cannot be lowered to 1" in lowered.stdout
    assert str(FEATURE_LEVEL) in cluster.command("feature-level", "show").stdout

    # With the new release everywhere it goes on, and from the next term on decisions can be taken again.
    cluster.start_controller("c1")
    lead(cluster, "c1")
    cluster.join("n6")
    cluster.wait_until(lambda: "n6" in cluster.slot_leaders(), "a join at the new level")
    audited = cluster.command("audit")
    assert audited.returncode == 0, audited.stdout + audited.stderr
    assert "(feature level 1)" in audited.stdout
    assert "no difference" in audited.stdout
    assert cluster.command("log", "verify").returncode == 0
    cluster.assert_log_is_whole()
