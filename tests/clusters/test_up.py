"""``controlplane up --brokers 3``, as a user runs it, and clusters whose controllers are apart."""

import json
import os
import re
import signal
import sys
from pathlib import Path

import pytest

from controlplane.embedded.kafka_cluster import EmbeddedKafkaCluster
from controlplane.embedded.services import addresses_path, read_addresses
from tests.helpers.partition_leaders import PartitionLeaders
from tests.helpers.polling import poll_until
from tests.helpers.readme import ROOT, Running, run

pytestmark = [pytest.mark.clusters, pytest.mark.slow, pytest.mark.timeout(300)]

COMMAND = [sys.executable, "-m", "controlplane.cli"]
HERE = {"PYTHONPATH": str(ROOT)}


def test_up_with_three_brokers_survives_one_and_comes_back_with_its_data(tmp_path: Path) -> None:
    """The file leads to all three, a broker that was killed is started again, and a second run needs no option."""
    data_dir = tmp_path / ".controlplane"
    with Running([*COMMAND, "up", "--brokers", "3"], tmp_path, HERE) as up:
        up.wait_until(addresses_path(data_dir).exists)
        addresses = read_addresses(data_dir)
        assert addresses.bootstrap_servers.count(",") == 2
        run([*COMMAND, "topics", "apply"], tmp_path, HERE)
        leaders = PartitionLeaders(addresses.bootstrap_servers)
        assert sorted(leaders.partition("local.decisions").replicas) == [1, 2, 3]
        up.wait_until(lambda: "Ready" in up.output)
        pids = {int(each): int(pid) for each, pid in re.findall(r"Broker (\d): .*, process (\d+)", up.output)}
        killed = leaders.leader("local.decisions")
        os.kill(pids[killed], signal.SIGKILL)
        up.wait_until(lambda: f"broker {killed} ended" in up.output)
        run([*COMMAND, "topics", "verify"], tmp_path, HERE)
        up.wait_until(lambda: f"broker {killed} is started again" in up.output)
        leaders.wait_until_in_sync()
        assert up.end() == 0
    assert not addresses_path(data_dir).exists()
    refused = run([*COMMAND, "up", "--brokers", "2"], tmp_path, HERE, status=1)
    assert "holds the data of 3 brokers, not of 2" in refused
    with Running([*COMMAND, "up"], tmp_path, HERE) as up:
        up.wait_until(addresses_path(data_dir).exists)
        assert read_addresses(data_dir) == addresses
        shown = json.loads(run([*COMMAND, "topics", "verify", "--format", "json"], tmp_path, HERE))
        assert shown["advice"] == []


def test_controllers_apart_outlive_a_controller_and_two_starts(tmp_path: Path) -> None:
    """Brokers serve as long as two of three controllers live, and the folder remembers who is who."""
    with EmbeddedKafkaCluster(tmp_path, controllers_apart=True) as cluster:
        assert list(cluster.controllers) == [101, 102, 103]
        cluster.controllers[101].kill()
        cluster.brokers[2].kill()
        cluster.brokers[2].start()
        PartitionLeaders(cluster.bootstrap_servers).wait_until_in_sync()
    again = EmbeddedKafkaCluster(tmp_path, controllers_apart=True)
    assert again.bootstrap_servers == cluster.bootstrap_servers
    with again:
        poll_until(lambda: again.brokers[1].known_brokers() == {1, 2, 3})
