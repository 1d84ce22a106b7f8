"""Real controllers as processes against a real Kafka and a real Valkey that are stopped, killed, emptied, recreated."""

import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)

from controlplane.adapters.kafka_log import KafkaTransactionalWriter
from controlplane.codec.inputs import encode_input
from controlplane.codec.outputs import decode_dead_letter
from controlplane.config import DEAD_LETTERS, DECISIONS, HEARTBEATS
from controlplane.core.membership.inputs import Heartbeat
from controlplane.core.membership.node import NodeRole
from controlplane.core.values.identifiers import Epoch
from controlplane.embedded.kafka import EmbeddedKafka
from controlplane.embedded.services import Addresses
from controlplane.embedded.valkey import EmbeddedValkey
from controlplane.ports import CommitOutcome, OutgoingRecord
from tests.fixtures import BrokerFactory
from tests.helpers.fleet import beating_fleet
from tests.helpers.real_cluster import RealCluster

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

NODES = ("n1", "n2", "n3", "n4")
TRANSACTION_TIMEOUT_MS = 5_000


@pytest.fixture
def shared(
    kafka_broker: EmbeddedKafka, valkey_server: EmbeddedValkey, cluster_name: str, tmp_path: Path
) -> Iterator[RealCluster]:
    """A cluster on the shared servers, for tests that harm only its own topics and processes."""
    with RealCluster(cluster_name, kafka_broker.bootstrap_servers, valkey_server.redis_url, tmp_path) as cluster:
        yield cluster


def serve(cluster: RealCluster) -> None:
    """Start two controllers and wait until the nodes share the slots."""
    cluster.start_controller("c1")
    cluster.start_controller("c2")
    cluster.join(*NODES)
    cluster.wait_until(lambda: cluster.slot_leaders() == set(NODES), "the first table")


@pytest.mark.alone
def test_kafka_away_for_twenty_seconds_fences_none_of_two_thousand_nodes(
    own_kafka_broker: BrokerFactory, valkey_server: EmbeddedValkey, cluster_name: str, tmp_path: Path
) -> None:
    """Time is in the log: an outage of the log is no silence of the nodes, and the log goes on without a gap."""
    broker = own_kafka_broker()
    with (
        RealCluster(cluster_name, broker.bootstrap_servers, valkey_server.redis_url, tmp_path) as cluster,
        beating_fleet(cluster, 2_000) as fleet,
    ):
        serve(cluster)
        cluster.wait_until(lambda: cluster.tables()[-1].nodes.keys() >= set(fleet), "two thousand members")
        before = cluster.decisions()
        broker.kill()
        time.sleep(20)
        broker.start()
        cluster.join("n5")
        cluster.wait_until(lambda: "n5" in cluster.slot_leaders(), "a join after the outage")
        time.sleep(3)
        assert cluster.fenced() == []
        assert cluster.decisions()[: len(before)] == before
        cluster.assert_log_is_whole()


def test_a_valkey_that_comes_back_empty_never_lets_the_term_fall(
    kafka_broker: EmbeddedKafka,
    own_valkey_server: Callable[[], EmbeddedValkey],
    cluster_name: str,
    tmp_path: Path,
) -> None:
    """The floor of the term comes from the log, so losing the lease store's data costs an election and nothing else."""
    valkey = own_valkey_server()
    with RealCluster(cluster_name, kafka_broker.bootstrap_servers, valkey.redis_url, tmp_path) as cluster:
        serve(cluster)
        term = cluster.decisions()[-1].term
        valkey.kill()
        valkey.erase_data()
        valkey.start()
        cluster.wait_until(lambda: cluster.decisions()[-1].term > term, "a new term")
        cluster.join("n5")
        cluster.wait_until(lambda: "n5" in cluster.slot_leaders(), "a join in the new term")
        cluster.assert_log_is_whole()


def test_a_killed_leader_is_replaced_and_a_node_that_died_with_it_is_fenced(shared: RealCluster) -> None:
    """Heartbeats and time are in the log, so a new leader inherits failure detection."""
    serve(shared)
    shared.silence("n4")
    killed = shared.kill_leader()
    shared.wait_until(lambda: shared.slot_leaders() == {"n1", "n2", "n3"}, "the dead node's slots move")
    assert shared.leader() != killed
    assert shared.fenced() == ["n4"]
    shared.assert_log_is_whole()


def test_a_late_contender_fences_a_healthy_leader_and_nothing_is_lost(shared: RealCluster) -> None:
    """Its transactional writer is opened when another leads, without a lease and for no reason: a term more is all."""
    serve(shared)
    before = shared.decisions()
    late = KafkaTransactionalWriter(shared.cluster, shared.kafka, TRANSACTION_TIMEOUT_MS)
    late.open()
    shared.join("n5")
    shared.wait_until(lambda: "n5" in shared.slot_leaders(), "a join after it")
    assert late.commit([OutgoingRecord(DECISIONS, b"late", b"")]) is CommitOutcome.FENCED
    late.close()
    decisions = shared.decisions()
    assert decisions[: len(before)] == before
    assert decisions[-1].term > before[-1].term
    assert shared.fenced() == []
    shared.assert_log_is_whole()


def test_two_lease_stores_and_one_kafka_never_have_two_leaders_in_a_term(
    kafka_broker: EmbeddedKafka,
    own_valkey_server: Callable[[], EmbeddedValkey],
    cluster_name: str,
    tmp_path: Path,
) -> None:
    """Both controllers hold a lease all the time, and fence each other in turns; the log says who was first."""
    stores = {"c1": own_valkey_server(), "c2": own_valkey_server()}
    addresses = {name: Addresses(kafka_broker.bootstrap_servers, store.redis_url) for name, store in stores.items()}
    redis_url = stores["c1"].redis_url
    with RealCluster(
        cluster_name, kafka_broker.bootstrap_servers, redis_url, tmp_path, addresses.__getitem__
    ) as cluster:
        serve(cluster)
        for number in range(5, 9):
            cluster.join(f"n{number}")
            cluster.wait_until(partial(_leads_slots, cluster, f"n{number}"), "a join")
        cluster.wait_until(lambda: {each.controller_id for each in cluster.decisions()} == {"c1", "c2"}, "both led")
        decisions = cluster.decisions()
        assert len({each.controller_id for each in decisions}) == 2
        for term in {each.term for each in decisions}:
            assert len({each.controller_id for each in decisions if each.term == term}) == 1
        assert cluster.fenced() == []
        cluster.assert_log_is_whole()


def test_a_heartbeat_sent_forty_seconds_ago_readmits_nobody(shared: RealCluster) -> None:
    """Its sender is dead and fenced, and what was under way all the time says nothing about now: it is refused."""
    serve(shared)
    shared.silence("n4")
    shared.wait_until(lambda: shared.fenced() == ["n4"], "the dead node is fenced")
    sent_at_ms = int(time.time() * 1_000) - 40_000
    shared.send(HEARTBEATS, "n4", encode_input(Heartbeat("n4", 1, sent_at_ms, Epoch(0), NodeRole.DATA)))
    shared.wait_until(lambda: bool(shared.records(DEAD_LETTERS)), "the dead letter")
    (letter,) = [decode_dead_letter(record.value or b"") for record in shared.records(DEAD_LETTERS)]
    assert (letter.reason, "n4" in shared.slot_leaders()) == ("fenced", False)


def test_a_bad_record_becomes_a_dead_letter_and_its_neighbours_count(shared: RealCluster) -> None:
    """The loop goes on after garbage; the letter names reason and coordinates."""
    serve(shared)
    shared.send(HEARTBEATS, "n1", b"this is no avro")
    shared.send("membership", "n9", b"\xc3\x01" + bytes(20))
    shared.join("n5")
    shared.wait_until(lambda: "n5" in shared.slot_leaders(), "the neighbour's join")
    shared.wait_until(lambda: len(shared.records("dead-letters")) >= 2, "two dead letters")
    keys = [(record.key or b"").decode() for record in shared.records("dead-letters")]
    assert any(key.startswith("heartbeats[") for key in keys)
    assert any(key.startswith("membership[") for key in keys)


@pytest.mark.parametrize("broker_restarts", [False, True])
def test_a_recreated_decision_log_stops_the_running_leader_and_the_next_one(
    own_kafka_broker: BrokerFactory,
    valkey_server: EmbeddedValkey,
    cluster_name: str,
    tmp_path: Path,
    broker_restarts: bool,
) -> None:
    """Kafka would accept the commits; the controllers notice that it is another log and refuse to lead it.

    After a restart the new topic's first leader epoch is below the former one's, so clients take what they are told of
    it for old news: they are told of no error, and of no record either.
    """
    broker = own_kafka_broker()
    with RealCluster(cluster_name, broker.bootstrap_servers, valkey_server.redis_url, tmp_path) as cluster:
        if broker_restarts:
            broker.stop()
            broker.start()
        leader = cluster.start_controller("c1")
        cluster.join(*NODES)
        cluster.wait_until(lambda: cluster.slot_leaders() == set(NODES), "the first table")
        time.sleep(2)
        _recreate_decisions(cluster)
        cluster.join("n5")
        assert leader.wait(60) == 1
        assert "recreated" in cluster.log_of("c1").read_text()
        second = cluster.start_controller("c2")
        assert second.wait(60) == 1
        assert "recreated" in cluster.log_of("c2").read_text()


@pytest.mark.parametrize(
    ("topic", "setting", "value"),
    [("decisions", "cleanup.policy", "compact"), ("heartbeats", "message.timestamp.type", "CreateTime")],
)
def test_a_topic_that_breaks_a_promise_is_refused_by_name(
    shared: RealCluster, topic: str, setting: str, value: str
) -> None:
    """A controller does not start on a log that may forget decisions or lie about time."""
    admin = AdminClient({"bootstrap.servers": shared.kafka.bootstrap_servers})
    change = ConfigEntry(setting, value, incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, shared.cluster.topic(topic), incremental_configs=[change])
    admin.incremental_alter_configs([resource])[resource].result(10)
    refused = shared.start_controller("c1")
    assert refused.wait(60) != 0
    said = shared.log_of("c1").read_text()
    assert topic in said
    assert setting in said


def _leads_slots(cluster: RealCluster, node_id: str) -> bool:
    return node_id in cluster.slot_leaders()


def _recreate_decisions(cluster: RealCluster) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.kafka.bootstrap_servers})
    topic = cluster.cluster.topic(DECISIONS)
    admin.delete_topics([topic])[topic].result(10)
    settings = {"cleanup.policy": "delete", "retention.ms": "-1", "retention.bytes": "-1"}
    cluster.wait_until(lambda: _created(admin, NewTopic(topic, 1, 1, config=settings)), "the recreated topic")


def _created(admin: AdminClient, topic: NewTopic) -> bool:
    """Creation fails while the deletion is still under way."""
    try:
        admin.create_topics([topic])[topic.topic].result(10)
    except KafkaException:
        return False
    return True
