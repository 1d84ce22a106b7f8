"""A rolling restart of the key-value example under traffic: slots are handed off, and no request is given up."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from controlplane.embedded.kafka import EmbeddedKafka
from controlplane.embedded.valkey import EmbeddedValkey
from tests.architecture.tidy import ROOT
from tests.helpers.real_cluster import RealCluster

pytestmark = [pytest.mark.slow, pytest.mark.end_to_end, pytest.mark.timeout(300)]


def test_a_restart_of_every_node_gives_no_request_up(
    kafka_broker: EmbeddedKafka, valkey_server: EmbeddedValkey, cluster_name: str, tmp_path: Path
) -> None:
    """A copy takes longer than a client waits: the leader has to serve on until the next one has it."""
    with RealCluster(cluster_name, kafka_broker.bootstrap_servers, valkey_server.redis_url, tmp_path) as real:
        real.start_controller("c1")
        real.wait_until(lambda: bool(real.decisions()), "a leader")
        command = [
            *(sys.executable, "-m", "examples.kv.rolling_restart", "--cluster", cluster_name),
            *("--bootstrap-servers", kafka_broker.bootstrap_servers, "--rate", "60", "--copy-s", "0.5"),
        ]
        restarted = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=240, check=False)
        real.assert_log_is_whole()
    said = dict(re.findall(r"^(.+): (\d+)(?: ms)?$", restarted.stdout, re.MULTILINE))
    assert restarted.returncode == 0, restarted.stdout + restarted.stderr
    assert int(said["answered"]) > 100
    assert (said["given up"], said["keys that read what they cannot be"]) == ("0", "0")
