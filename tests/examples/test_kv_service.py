"""The key-value example as processes: a node leaves in good order, load reports are real, traffic is counted."""

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from controlplane.adapters.kafka_log import KafkaLogReader
from controlplane.codec.inputs import decode_input
from controlplane.config import LOAD_REPORTS
from controlplane.core.bundles.reports import LoadReport
from controlplane.embedded.kafka import EmbeddedKafka
from controlplane.embedded.valkey import EmbeddedValkey
from tests.helpers.real_cluster import RealCluster
from tests.helpers.sources import everything_in
from tests.kills.cluster import KvCluster

pytestmark = [pytest.mark.slow, pytest.mark.end_to_end, pytest.mark.timeout(240)]


@pytest.fixture
def cluster(
    kafka_broker: EmbeddedKafka, valkey_server: EmbeddedValkey, cluster_name: str, tmp_path: Path
) -> Iterator[KvCluster]:
    """Two nodes with every replica complete, and traffic."""
    real = RealCluster(cluster_name, kafka_broker.bootstrap_servers, valkey_server.redis_url, tmp_path)
    with KvCluster(real, controllers=2, nodes=2, rate_per_s=60, history=[]) as started:
        yield started


def load_reports(cluster: KvCluster) -> list[LoadReport]:
    """Every load report so far."""
    records = everything_in(KafkaLogReader(cluster.real.cluster, cluster.real.kafka), LOAD_REPORTS)
    payloads = [decode_input(LOAD_REPORTS, record).payload for record in records]
    return [payload for payload in payloads if isinstance(payload, LoadReport)]


def test_a_node_that_leaves_in_good_order_loses_and_fails_nothing(cluster: KvCluster) -> None:
    """On SIGTERM a node hands everything over: no request fails, every acknowledged value stays, it ends with 0."""
    cluster.client.take_counts()
    leaving = cluster.nodes["n1"]
    leaving.send_signal(signal.SIGTERM)
    assert leaving.wait(60) == 0
    table = cluster.client.routing.wait_for(lambda table: all(slot.leader == "n2" for slot in table.slots))
    assert "n1" not in table.nodes
    cluster.traffic.rest()
    contradictions = [
        ledger.contradiction(key, cluster.client.get(key))
        for ledger in cluster.traffic.ledgers
        for key in ledger.acknowledged
    ]
    assert contradictions
    assert not any(contradictions)
    counts = cluster.client.take_counts()
    assert counts.answered
    assert not counts.failed


def test_a_process_that_was_replaced_ends_without_a_stack(cluster: KvCluster, tmp_path: Path) -> None:
    """Of the service, and of the command that only shows what a node is told: one line says what to do."""
    older = cluster.nodes["n1"]
    cluster.start_node("n1")
    assert older.wait(60) == 1
    said = cluster.real.log_of("n1").read_text(encoding="utf-8")
    assert said.count("another process has joined as node 'n1'") == 1
    assert "Traceback" not in said

    connection = ("--cluster", cluster.real.cluster.name, "--bootstrap-servers", cluster.real.kafka.bootstrap_servers)
    command = [sys.executable, "-m", "controlplane.cli", *connection, "node", "run", "--node-id", "s1"]
    log = tmp_path / "first.log"
    with log.open("wb") as output:
        first = subprocess.Popen([*command, "--role", "session"], stdout=output, stderr=subprocess.STDOUT)
    cluster.wait_until(lambda: "node is a member" in log.read_text(encoding="utf-8"), "the first process")
    second = subprocess.Popen([*command, "--role", "session"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        assert first.wait(60) == 1
    finally:
        second.terminate()
        second.wait(60)
    said = log.read_text(encoding="utf-8")
    assert said.count("another process has joined as node 's1'") == 1
    assert "Traceback" not in said
    assert "exception" not in said


def test_load_reports_carry_what_the_nodes_really_did(cluster: KvCluster) -> None:
    """Each slot is reported by its leader, with the rates of the traffic that there is, and the process's own use."""
    reporters = {"n1", "n2"}

    def reported() -> bool:
        busy = {
            report.node_id for report in load_reports(cluster) for slot in report.slots if slot.request_rate_per_s > 0
        }
        return busy == reporters

    def by_leaders() -> bool:
        """A node that joined late is given slots: its table may be newer than the last report of the other one."""
        assert cluster.table is not None
        leaders = {slot.slot_id: slot.leader for slot in cluster.table.slots}
        newest = {report.node_id: report for report in load_reports(cluster)}
        return all(leaders[slot.slot_id] == name for name, report in newest.items() for slot in report.slots)

    cluster.wait_until(reported, "a report of slots with traffic by each node")
    cluster.wait_until(by_leaders, "no slot in the newest report of a node that does not lead it")
    for report in load_reports(cluster):
        assert report.cpu.usage > 0
        assert 10 < report.memory.usage < report.memory.limit
        assert report.bundles == ()
        assert (
            sum(slot.request_rate_per_s for slot in report.slots) < 600
        )  # 60 are sent; a report may cover a moment only
    newest = {report.node_id: report for report in load_reports(cluster)}
    assert any(slot.stored_bytes > 0 for report in newest.values() for slot in report.slots)


def test_the_traffic_command_prints_counts(cluster: KvCluster) -> None:
    """A line of JSON a second, from which others read what became of the requests."""
    real = cluster.real
    command = [
        *(sys.executable, "-m", "examples.kv.client", "--cluster", real.cluster.name, "--rate", "50"),
        *("--bootstrap-servers", real.kafka.bootstrap_servers, "--seconds", "4"),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(lines) >= 3
    assert lines[-1]["answered"] == sum(line["interval"]["answered"] for line in lines) > 50
    assert lines[-1]["failed"] == 0
