"""All brokers restored from an older copy: every process that knows more stops, and says why; none leads on."""

import shutil
from pathlib import Path

import pytest

from controlplane.embedded.kafka_cluster import EmbeddedKafkaCluster
from controlplane.embedded.valkey import EmbeddedValkey
from tests.helpers.node_processes import NodeProcesses
from tests.helpers.polling import poll_until
from tests.helpers.real_cluster import RealCluster

pytestmark = [pytest.mark.clusters, pytest.mark.slow, pytest.mark.timeout(300)]

STOPS_S = 90.0


def test_everybody_stops_when_all_brokers_are_restored_from_an_older_copy(
    valkey_server: EmbeddedValkey, cluster_name: str, tmp_path: Path
) -> None:
    """The controllers and the nodes that run, and a controller that is started afterwards and has seen nothing."""
    kafka = EmbeddedKafkaCluster(tmp_path / "kafka")
    with (
        kafka,
        RealCluster(cluster_name, kafka.bootstrap_servers, valkey_server.redis_url, tmp_path) as real,
        NodeProcesses(real) as nodes,
    ):
        for controller_id in ("c1", "c2"):
            real.start_controller(controller_id)
        for node_id in ("n1", "n2"):
            nodes.start(node_id)
        real.wait_until(lambda: real.slot_leaders() == {"n1", "n2"}, "the first table")
        kafka.stop()
        shutil.copytree(kafka.data_dir, tmp_path / "copy")
        kafka.start()
        nodes.start("n3")
        real.wait_until(lambda: "n3" in real.slot_leaders(), "a table with n3, which the copy does not have")
        last = real.decisions()[-1].seq

        for server in kafka.servers:
            server.kill()
        shutil.rmtree(kafka.data_dir)
        shutil.copytree(tmp_path / "copy", kafka.data_dir)
        kafka.start()
        assert real.decisions()[-1].seq < last, "the copy is no older"

        processes = {**real.controllers, **nodes.running}
        poll_until(lambda: all(process.poll() is not None for process in processes.values()), STOPS_S)
        for name, process in processes.items():
            assert process.returncode != 0, name
            said = real.log_of(name).read_text(errors="replace").splitlines()[-1]
            assert "restored from an older copy" in said, f"{name}: {said}"
            assert "docs/how-to/survive-silence-and-failures.md has the steps" in said, f"{name}: {said}"
        late = real.start_controller("c3")
        assert late.wait(STOPS_S) != 0
        assert "the log has lost its end" in real.log_of("c3").read_text(errors="replace")
        assert real.decisions()[-1].seq < last, "somebody led on"
