"""Real controllers as processes under lease profile ``sofa``, and the commands about the leader, on real parts."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from controlplane.embedded.kafka import EmbeddedKafka
from controlplane.embedded.valkey import EmbeddedValkey
from tests.helpers.real_cluster import RealCluster

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

SOFA = (
    *("--lease-profile", "sofa", "--lease-setting", "data_center=dc1"),
    *("--lease-setting", "duration_ms=3000", "--lease-setting", "loop_interval_ms=200"),
)


@pytest.fixture
def shared(
    kafka_broker: EmbeddedKafka, valkey_server: EmbeddedValkey, cluster_name: str, tmp_path: Path
) -> Iterator[RealCluster]:
    """A cluster on the shared servers."""
    with RealCluster(cluster_name, kafka_broker.bootstrap_servers, valkey_server.redis_url, tmp_path) as cluster:
        yield cluster


def asked(cluster: RealCluster, *words: str) -> Any:  # noqa: ANN401 - a JSON document
    """What a command prints."""
    command = [
        *(sys.executable, "-m", "controlplane.cli", "--cluster", cluster.cluster.name),
        *("--bootstrap-servers", cluster.kafka.bootstrap_servers, "--redis-url", cluster.redis_url),
        *(*words, "--format", "json"),
    ]
    ran = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    return json.loads(ran.stdout)


def test_sofaregistrys_election_leads_a_real_cluster(shared: RealCluster) -> None:
    """Killed and taken over: the lock's owner is who opened the log's last term, and an observer never is."""
    shared.start_controller("c1", *SOFA)
    shared.start_controller("c2", *SOFA)
    shared.start_controller("o", *SOFA, "--follow-only")
    shared.join("n1", "n2")
    shared.wait_until(lambda: shared.slot_leaders() == {"n1", "n2"}, "the first table")
    killed = shared.kill_leader()
    shared.wait_until(lambda: shared.leader() != killed, "another leader")
    shown = asked(shared, "leader", "show")
    (lock,) = shown["locks"]
    assert shown["lease_profile"] == "sofa"
    assert (lock["data_center"], lock["lock_name"], lock["duration_ms"]) == ("dc1", "META-MASTER", 3_000)
    assert lock["owner"] == shown["lease_owner"] == shown["opened_by"] == ({"c1", "c2"} - {killed}).pop()
    assert lock["term"] + 1 == shown["opened_term"]
    assert "o" not in {row["controller"] for row in asked(shared, "leader", "history")}
    shared.join("n3")
    shared.wait_until(lambda: shared.slot_leaders() == {"n1", "n2", "n3"}, "a join after it")
    shared.assert_log_is_whole()


def test_a_leader_that_is_asked_to_resign_hands_over(shared: RealCluster) -> None:
    """The standby leads at once, the standbys are listed, and the history says who asked."""
    for name in ("c1", "c2"):
        shared.start_controller(name, "--priority", name[1:])
    shared.join("n1")
    shared.wait_until(lambda: shared.slot_leaders() == {"n1"}, "the first table")
    first = shared.leader()
    second = ({"c1", "c2"} - {first}).pop()
    shared.wait_until(
        lambda: [each["contender"] for each in asked(shared, "leader", "show")["contenders"]] == [second], "a standby"
    )
    answer = asked(shared, "leader", "resign", "--reason", "test")
    assert answer["outcome"] == "done"
    shared.wait_until(lambda: shared.leader() == second, "the other one")
    *_, ended, current = asked(shared, "leader", "history")
    assert (ended["controller"], current["controller"]) == (first, second)
    assert ended["ended"].startswith("resigned")
    assert ended["last_decision_to_next_term_ms"] < 10_000
    shared.assert_log_is_whole()
