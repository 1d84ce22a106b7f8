"""Brokers and clients of the publish-subscribe example in one process, on a control plane in memory."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from controlplane.node import Access
from controlplane.testing import MemoryCluster
from examples.pubsub.broker import Broker
from examples.pubsub.client import GivenUp, Producer, PubSubClient, Subscriber
from examples.pubsub.topic_file import TopicMessage
from examples.pubsub.traffic import Findings, Ledger, Traffic
from examples.serving.protocol import Connections, Message, Place
from examples.serving.service import give_agent

NAMESPACE = "shop/orders"
TOPICS = [f"persistent://{NAMESPACE}/t{number}" for number in range(1, 9)]


class World:
    """A control plane, a directory, brokers, and a client."""

    def __init__(self, cluster: MemoryCluster, directory: Path) -> None:
        self.cluster = cluster
        self.directory = directory
        self.brokers: dict[str, Broker] = {}
        self.client = PubSubClient(cluster.client(), attempts_at_most=30)

    def start(self, *broker_ids: str) -> None:
        """Start brokers and wait until they are members."""
        for broker_id in broker_ids:
            broker = self.brokers[broker_id] = Broker(broker_id, self.directory)
            registry = CollectorRegistry()
            give_agent(broker, partial(self.cluster.agent, broker_id, load_interval_ms=100, registry=registry))
            broker.agent.start()
        self.client.routing.wait_for(lambda table: set(broker_ids) <= table.nodes.keys())

    def owner_of(self, topic: str) -> str:
        """The broker that serves a topic, as soon as there is one."""
        self.cluster.wait_until(lambda: self.serving(topic))
        return self.serving(topic)[0]

    def serving(self, topic: str) -> list[str]:
        """The brokers that serve a topic now."""
        accepting = (
            broker_id
            for broker_id, broker in self.brokers.items()
            if broker.agent.bundle_of(NAMESPACE, topic).access is Access.ACCEPT
        )
        return list(accepting)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    """Two brokers and a namespace whose bundles they serve."""
    with MemoryCluster() as cluster:
        world = World(cluster, tmp_path / "topics")
        with world.client:
            cluster.ask("create_namespace", namespace=NAMESPACE)
            world.start("b1", "b2")
            for topic in TOPICS:
                world.owner_of(topic)
            yield world
            for broker in world.brokers.values():
                broker.close()


def test_what_is_sent_is_received_from_any_offset(world: World) -> None:
    """By each subscriber that asks for it, in the order in which it was sent."""
    producer = Producer(world.client, TOPICS[0])
    assert [producer.send("k", str(number)).offset for number in range(3)] == [0, 1, 2]
    everything, later = Subscriber(world.client, TOPICS[0]), Subscriber(world.client, TOPICS[0], offset=2)
    assert [message.text for message in everything.receive()] == ["0", "1", "2"]
    assert [message.text for message in later.receive()] == ["2"]
    assert everything.receive(wait_s=0.05) == []
    producer.send("k", "3")
    assert [message.text for message in everything.receive()] == ["3"]


def test_a_transfer_costs_a_client_one_more_attempt(world: World) -> None:
    """The former owner keeps the request until it can say who the new one is, and a subscriber goes there as well."""
    topic = TOPICS[0]
    owner = world.owner_of(topic)
    other = {"b1": "b2", "b2": "b1"}[owner]
    traffic = Traffic(world.client, TOPICS, rate_per_s=100)
    traffic.start()
    world.cluster.ask("transfer_bundles", bundles=NAMESPACE, node=other)
    world.cluster.wait_until(lambda: all(world.serving(each) == [other] for each in TOPICS))
    findings = traffic.stop()
    assert findings == Findings(findings.sent, findings.sent)
    assert findings.sent > 0
    assert traffic.of_many_attempts == 0
    bundle = world.brokers[owner].agent.bundle_of(NAMESPACE, topic).bundle
    assert bundle is not None
    assert world.brokers[owner]._topics.open_in(bundle) == []  # noqa: SLF001 - what was closed


def test_a_broker_says_whom_to_ask(world: World) -> None:
    """The address of the owner; nobody's for a namespace that does not exist."""
    topic = TOPICS[0]
    owner = world.owner_of(topic)
    other = world.brokers[{"b1": "b2", "b2": "b1"}[owner]]
    request = {"op": "consume", "offset": 0, "count": 1, "subscriber": "s", "wait_s": 0}
    answer = other.answer({**request, "topic": topic})
    assert answer == {"status": "moved", "ask": world.brokers[owner]._server.place}  # noqa: SLF001 - where it listens
    assert other.answer({**request, "topic": topic.replace("orders", "bills")}) == {"status": "moved", "ask": None}
    assert other.answer({"op": "delete"})["status"] == "error"


def test_topics_stay_open_over_a_split(world: World) -> None:
    """The parts stay with the owner, and a topic's messages are not interrupted."""
    for topic in TOPICS:
        Producer(world.client, topic).send("k", "1")
    world.cluster.ask("split_bundles", bundles=NAMESPACE, by="topic_count_equally_divide")
    world.client.routing.wait_for(lambda table: len(table.bundles) > 4)
    for topic in TOPICS:
        assert Producer(world.client, topic).send("k", "2").attempts == 1
        assert [message.text for message in Subscriber(world.client, topic).receive()] == ["1", "2"]


def test_the_messages_of_a_dead_broker_are_served_by_the_next(world: World) -> None:
    """Cut off from the log it stops to serve by itself; clients that still reach it are not left without an answer."""
    topic = TOPICS[0]
    owner = world.owner_of(topic)
    producer = Producer(world.client, topic)
    producer.send("k", "1")
    world.cluster.disconnect(owner)
    other = {"b1": "b2", "b2": "b1"}[owner]
    world.cluster.wait_until(lambda: world.serving(topic) == [other])
    assert producer.send("k", "2").offset == 1
    assert [message.text for message in Subscriber(world.client, topic).receive()] == ["1", "2"]


def test_load_reports_have_the_rates_of_bundles_and_topics(world: World) -> None:
    """Messages, bytes, topics, producers and subscribers, since the last report."""
    topic = TOPICS[0]
    broker = world.brokers[world.owner_of(topic)]
    bundle = broker.agent.bundle_of(NAMESPACE, topic).bundle
    assert bundle is not None
    producer, subscriber = Producer(world.client, topic), Subscriber(world.client, topic)

    def is_measured() -> bool:
        producer.send("key", "text")
        subscriber.receive()
        (load,) = [each for each in broker.load().bundles if each.bundle_id == bundle.bundle_id]
        rates = load.message_rate_in_per_s, load.message_rate_out_per_s
        throughputs = load.throughput_in_bytes_per_s, load.throughput_out_bytes_per_s
        counts = load.topic_count, load.producer_count, load.consumer_count
        return min(rates) > 0 and throughputs == tuple(7 * rate for rate in rates) and counts == (1, 1, 1)

    world.cluster.wait_until(is_measured)
    (topic_load,) = [each for each in broker.topics_of_bundle(bundle) if each.topic == topic]
    assert topic_load.topic == topic


class Answers(Connections):
    """Gives the next answer of a list to each request, and notes where it was sent."""

    def __init__(self, *answers: Message) -> None:
        super().__init__()
        self.answers = list(answers)
        self.asked: list[Place] = []

    def ask(self, place: Place, request: Message, timeout_s: float) -> Message:
        """The next answer."""
        self.asked.append(place)
        return self.answers.pop(0)


def test_a_client_follows_what_it_is_told(world: World) -> None:
    """To the place that it is told, again to one that is about to serve, and to the table's if nobody is named."""
    world.client._connections = answers = Answers(  # noqa: SLF001 - in place of the network
        {"status": "moved", "ask": ["elsewhere", 1]},
        {"status": "migrating"},
        {"status": "moved", "ask": None},
        {"status": "ok", "offset": 7},
    )
    assert Producer(world.client, TOPICS[0]).send("k", "1") == (7, 4)
    assert answers.asked[1:3] == [("elsewhere", 1)] * 2
    assert answers.asked[0] == answers.asked[3]


def test_a_client_gives_up(world: World) -> None:
    """After the greatest number of attempts, or at once if the request itself is wrong."""
    world.client._connections = answers = Answers(*[{"status": "migrating"}] * 40)  # noqa: SLF001 - as above
    world.client._attempts_at_most = 3  # noqa: SLF001 - so that it is soon
    with pytest.raises(GivenUp, match="after 3 attempts"):
        Producer(world.client, TOPICS[0]).send("k", "1")
    answers.answers = [{"status": "error", "message": "no"}]
    with pytest.raises(GivenUp, match="after 1 attempts"):
        Producer(world.client, TOPICS[0]).send("k", "1")


def test_findings_name_what_is_wrong() -> None:
    """What is missing, doubled and out of order for its key is counted; a later message of another key is no error."""
    ledger = Ledger("t", sent=5, acknowledged={1, 2, 3, 4})
    received = [TopicMessage("p", 0, key, text) for key, text in (("a", "2"), ("b", "1"), ("a", "4"), ("a", "4"))]
    assert ledger.findings(received) == Findings(5, 4, missing=1, doubled=1)
    received.append(TopicMessage("p", 0, "b", "5"))
    received.append(TopicMessage("p", 0, "b", "3"))
    assert ledger.findings(received) == Findings(5, 4, missing=0, doubled=1, out_of_order=1)
    assert not ledger.findings(received).are_good
