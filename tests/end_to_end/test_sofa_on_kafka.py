"""A real cluster under the policy ``sofa``, through a seeded history of joins and kills, held against the runner.

Controllers and nodes are processes as users start them, and the gate is fed by the nodes' own heartbeats.
"""

import random
import time
from functools import partial
from pathlib import Path

import pytest

from controlplane.adapters.kafka_log import KafkaLogReader
from controlplane.config import HEARTBEATS
from controlplane.embedded.kafka import EmbeddedKafka
from controlplane.embedded.valkey import EmbeddedValkey
from controlplane.ports import RawRecord
from tests.conformance.__main__ import main as compare
from tests.conformance.record import main as record
from tests.helpers.node_processes import NodeProcesses
from tests.helpers.real_cluster import RealCluster
from tests.helpers.sofa_replay import assert_nothing_was_missed, assert_published_is_the_runners
from tests.helpers.sources import everything_in

NAMES = tuple(f"10.0.0.{number}" for number in (1, 12, 2, 13, 24))
SLOT_COUNT = 32
SEED = 6


@pytest.mark.slow
@pytest.mark.end_to_end
@pytest.mark.timeout(300)
def test_every_published_table_is_the_arrangers(
    kafka_broker: EmbeddedKafka,
    valkey_server: EmbeddedValkey,
    cluster_name: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Joins, kills of nodes and of the leader: equal action, slot leaders, follower sets, order and ranks of epochs."""
    chosen = random.Random(SEED)
    policy = ("--policy", "slot_policy=sofa", "--policy", f"slot_count={SLOT_COUNT}")
    with RealCluster(cluster_name, kafka_broker.bootstrap_servers, valkey_server.redis_url, tmp_path) as cluster:
        with NodeProcesses(cluster) as nodes:
            for controller_id in ("c1", "c2"):
                cluster.start_controller(controller_id, *policy)
            waiting = list(NAMES)
            for step in range(7):
                if len(nodes.running) < 3 or (waiting and chosen.random() < 0.5):
                    name = waiting.pop(0)
                    nodes.start(name)
                    cluster.wait_until(partial(_holds, cluster, name), f"{name} holds slots")
                else:
                    name = chosen.choice(sorted(nodes.running))
                    nodes.kill(name)
                    waiting.append(name)
                    cluster.wait_until(partial(_holds_nothing, cluster, name), f"{name} holds nothing")
                if step == 3:
                    cluster.kill_leader()
                time.sleep(chosen.uniform(1, 6))
            cluster.wait_until(lambda: _is_balanced(cluster), "balanced")
            time.sleep(3)
        decisions, tables = cluster.decisions(), cluster.tables()
        heartbeats = _heartbeats(cluster)
        cluster.assert_log_is_whole()
        assert_published_is_the_runners(decisions, tables)
        actions = [cause.evidence.partition(":")[0] for each in decisions for cause in each.causes[-1:]]
        assert {"assign", "balance"} <= set(actions), actions
        assert assert_nothing_was_missed(decisions, heartbeats) > 20
        out = tmp_path / "recorded.jsonl.gz"
        place = ("--cluster", cluster_name, "--bootstrap-servers", kafka_broker.bootstrap_servers)
        assert record([*place, str(out)]) == 0
        assert compare(["sofa", str(out)]) == 0
        assert capsys.readouterr().out.endswith(" passed, 0 failed\n")


def _holds(cluster: RealCluster, name: str) -> bool:
    return any(name in slot.replicas for slot in cluster.tables()[-1].slots)


def _holds_nothing(cluster: RealCluster, name: str) -> bool:
    return not _holds(cluster, name)


def _is_balanced(cluster: RealCluster) -> bool:
    """Nothing moved for a while, and what was decided last is no waiting."""
    decisions = cluster.decisions()
    latest = decisions[-1]
    return time.time() * 1_000 - latest.decided_at_ms > 3_000 and all(
        len(slot.replicas) == 2 for slot in cluster.tables()[-1].slots
    )


def _heartbeats(cluster: RealCluster) -> list[RawRecord]:
    """Everything in ``heartbeats`` that was there when this began: ticks go on."""
    return everything_in(KafkaLogReader(cluster.cluster, cluster.kafka), HEARTBEATS)
