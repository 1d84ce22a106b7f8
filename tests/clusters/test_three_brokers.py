"""Three real brokers: copies, leaders that move, links that are cut, clocks that differ."""

import time

import pytest
from confluent_kafka import Message, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from controlplane.adapters.kafka_admin import apply_topics
from controlplane.adapters.kafka_admin_client import KafkaAdmin
from controlplane.adapters.kafka_topic_inspector import KafkaTopicInspector
from controlplane.bootstrap.topics import topic_specs
from controlplane.embedded.kafka_cluster import EmbeddedKafkaCluster
from controlplane.kafka_rules.broker_sessions import BROKER_SESSION, RECOMMENDED_MS
from tests.chaos.proxy import LinkMode
from tests.helpers.partition_leaders import PartitionLeaders
from tests.helpers.polling import poll_until
from tests.helpers.proxied_kafka import CLIENTS, ProxiedKafka
from tests.helpers.shifted_clock import ShiftedClock

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

SESSION_S = RECOMMENDED_MS[BROKER_SESSION] / 1_000
"""The brokers' session: after it a silent one leads nothing any more."""


def create(servers: str, topic: str) -> None:
    """A topic with a copy on each broker, of which two acknowledge, dated by the broker that leads it."""
    config = {"min.insync.replicas": "2", "message.timestamp.type": "LogAppendTime"}
    admin = AdminClient({"bootstrap.servers": servers})
    admin.create_topics([NewTopic(topic, 1, 3, config=config)])[topic].result(20)
    poll_until(lambda: topic in admin.list_topics(timeout=10).topics)


def append(servers: str, topic: str, timeout_s: float = 30.0) -> Message:
    """Append a record and wait until two brokers have it."""
    delivered: list[Message] = []
    settings = {"bootstrap.servers": servers, "acks": "all", "message.timeout.ms": int(timeout_s * 1_000)}
    producer = Producer(settings)
    producer.produce(topic, b"record", on_delivery=lambda error, message: delivered.append(message))
    producer.flush(timeout_s + 5)
    assert delivered
    assert delivered[0].error() is None, delivered[0].error()
    return delivered[0]


def test_our_topics_and_kafkas_own_have_three_copies(kafka_cluster: EmbeddedKafkaCluster, cluster_name: str) -> None:
    """A promise of every topic: an acknowledged record is not lost with one broker, and one broker may be missing."""
    servers = kafka_cluster.bootstrap_servers
    report = apply_topics(servers, cluster_name, topic_specs(), {})
    assert report.advice == ()
    again = apply_topics(servers, cluster_name, topic_specs(), {})
    assert (len(again.verified), again.advice) == (len(topic_specs()), ())
    producer = Producer({"bootstrap.servers": servers, "transactional.id": cluster_name})
    producer.init_transactions(60)
    leaders = PartitionLeaders(servers)
    leaders.wait_until_in_sync()
    for topic in (*report.created, "__transaction_state"):
        assert sorted(leaders.partition(topic).replicas) == [1, 2, 3], topic


def test_a_partition_is_led_by_the_broker_that_a_test_chooses(
    kafka_cluster: EmbeddedKafkaCluster, cluster_name: str
) -> None:
    """Tests of leaders that move choose them; the copies are moved where the broker has none."""
    servers, leaders = kafka_cluster.bootstrap_servers, PartitionLeaders(kafka_cluster.bootstrap_servers)
    create(servers, cluster_name)
    for broker in (3, 1, 2):
        leaders.move_leader(cluster_name, broker)
        assert leaders.leader(cluster_name) == broker
    leaders.reassign(cluster_name, [1, 3])
    assert leaders.follower(cluster_name) == 3
    leaders.move_leader(cluster_name, 2)
    assert list(leaders.partition(cluster_name).replicas) == [2, 1]
    with pytest.raises(AssertionError, match="was not given to"):
        leaders.reassign(cluster_name, [1, 9])


def test_another_broker_leads_when_one_is_killed_and_it_returns_in_sync(
    kafka_cluster: EmbeddedKafkaCluster, cluster_name: str
) -> None:
    """Whatever a test kills has to be there again for the next one, with every copy."""
    servers, leaders = kafka_cluster.bootstrap_servers, PartitionLeaders(kafka_cluster.bootstrap_servers)
    create(servers, cluster_name)
    killed = leaders.leader(cluster_name)
    kafka_cluster.brokers[killed].kill()
    assert kafka_cluster.brokers[killed].pid is None
    append(servers, cluster_name)
    poll_until(lambda: leaders.leader(cluster_name) not in {-1, killed})
    with pytest.raises(AssertionError, match=r"not within 0\.5 s: .*in sync"):
        leaders.wait_until_in_sync(0.5)
    kafka_cluster.brokers[killed].start()
    leaders.wait_until_in_sync()
    assert killed in leaders.partition(cluster_name).isrs


def test_brokers_that_live_show_their_settings_beside_one_that_has_just_died(
    kafka_cluster: EmbeddedKafkaCluster, cluster_name: str
) -> None:
    """Kafka shows the dead one until its session ends. A controller that waited for it took a core for 10 s."""
    create(kafka_cluster.bootstrap_servers, cluster_name)
    inspector = KafkaTopicInspector(KafkaAdmin(cluster_name, kafka_cluster.bootstrap_servers, {}))
    for killed in kafka_cluster.brokers.values():
        assert inspector.describe([cluster_name]).brokers == 3
        killed.kill()
        before_s = time.process_time()
        described = inspector.describe([cluster_name])
        assert described.brokers == 3, "the session has ended before Kafka was asked"
        assert time.process_time() - before_s < 1, "librdkafka waited for a broker that refuses connections"
        assert described.broker_settings[BROKER_SESSION] == str(RECOMMENDED_MS[BROKER_SESSION])
        killed.start()
        PartitionLeaders(kafka_cluster.bootstrap_servers).wait_until_in_sync()


def test_a_paused_broker_holds_writes_back_until_its_session_ends(
    kafka_cluster: EmbeddedKafkaCluster, cluster_name: str
) -> None:
    """A paused follower is in sync as long as its session lasts, so a write waits for it that two others have."""
    servers, leaders = kafka_cluster.bootstrap_servers, PartitionLeaders(kafka_cluster.bootstrap_servers)
    create(servers, cluster_name)
    append(servers, cluster_name)
    paused = leaders.follower(cluster_name)
    kafka_cluster.brokers[paused].pause()
    began_s = time.monotonic()
    append(servers, cluster_name)
    assert time.monotonic() - began_s > SESSION_S / 2
    assert paused not in leaders.partition(cluster_name).isrs
    kafka_cluster.brokers[paused].resume()
    leaders.wait_until_in_sync()


def is_deposed(kafka: ProxiedKafka, topic: str, broker: int) -> bool:
    """Let a broker lead a topic and isolate it; whether another one leads then. If not, everything is healed again.

    Kafka's active controller may not be deposed: controllers that were told its own address reach it past the links.
    """
    leaders = PartitionLeaders(kafka.kafka.bootstrap_servers)
    leaders.move_leader(topic, broker)
    others = [each.bootstrap_servers for number, each in kafka.kafka.brokers.items() if number != broker]
    elsewhere = PartitionLeaders(",".join(others))
    kafka.isolate(broker, also_from_clients=False)
    deadline_s = time.monotonic() + 30
    while time.monotonic() < deadline_s:
        if elsewhere.leader(topic) not in {-1, broker}:
            return True
        time.sleep(0.1)
    kafka.heal()
    leaders.wait_until_in_sync()
    return False


def test_an_isolated_leader_is_deposed_though_nobody_is_told(proxied_kafka: ProxiedKafka, cluster_name: str) -> None:
    """Packets that are lost without a reset: the others elect a leader, and clients of the old one wait."""
    servers = proxied_kafka.kafka.bootstrap_servers
    leaders = PartitionLeaders(servers)
    create(servers, cluster_name)
    isolated = next(broker for broker in proxied_kafka.kafka.brokers if is_deposed(proxied_kafka, cluster_name, broker))
    for each in proxied_kafka.kafka.brokers:
        proxied_kafka.set_link(CLIENTS, each, LinkMode.OPEN if each == isolated else LinkMode.CUT)
    asked_first = PartitionLeaders(proxied_kafka.bootstrap_servers())
    assert asked_first.leader(cluster_name) == isolated, "it is not told either, and says that it leads"
    proxied_kafka.heal()
    leaders.wait_until_in_sync()
    poll_until(lambda: asked_first.leader(cluster_name) != isolated)


def test_a_process_reaches_brokers_over_its_own_slow_links(proxied_kafka: ProxiedKafka, cluster_name: str) -> None:
    """Kafka tells clients where to come again: over the links by which they came."""
    create(proxied_kafka.kafka.bootstrap_servers, cluster_name)
    leader = PartitionLeaders(proxied_kafka.kafka.bootstrap_servers).leader(cluster_name)
    servers = proxied_kafka.bootstrap_servers()
    append(servers, cluster_name)
    proxied_kafka.set_link(CLIENTS, leader, LinkMode.OPEN, delay_ms=400)
    began_s = time.monotonic()
    append(servers, cluster_name)
    assert time.monotonic() - began_s > 0.8
    proxied_kafka.set_link(CLIENTS, leader, LinkMode.CUT)
    with pytest.raises(AssertionError, match=r"(?i)timed out"):
        append(servers, cluster_name, timeout_s=2)


def test_brokers_date_records_by_clocks_that_are_shifted_while_they_run(
    proxied_kafka: ProxiedKafka, broker_clocks: dict[int, ShiftedClock], cluster_name: str
) -> None:
    """Append times are those of the broker that leads, an hour ahead or behind."""
    servers, leaders = proxied_kafka.kafka.bootstrap_servers, PartitionLeaders(proxied_kafka.kafka.bootstrap_servers)
    create(servers, cluster_name)
    broker_clocks[1].shift(3_600_000)
    broker_clocks[2].shift(-3_600_500)
    for broker, expected_s in ((1, 3_600.0), (2, -3_600.5), (3, 0.0)):
        leaders.move_leader(cluster_name, broker)
        ahead_s = append(servers, cluster_name).timestamp()[1] / 1_000 - time.time()
        assert ahead_s == pytest.approx(expected_s, abs=5)
