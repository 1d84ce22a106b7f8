"""What users embed, on a real broker: an agent and a client against a table that the test writes by hand."""

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from controlplane.adapters.kafka_admin import apply_topics
from controlplane.adapters.kafka_log import KafkaLogReader, KafkaTransactionalWriter
from controlplane.bootstrap.members import node_agent, routing_client
from controlplane.bootstrap.topics import topic_specs
from controlplane.codec.inputs import decode_input
from controlplane.config import HEARTBEATS, LOAD_REPORTS, MEMBERSHIP, ClusterConfig, KafkaConfig
from controlplane.core.bundles.reports import LoadReport, ResourceUsage
from controlplane.core.log.inputs import InputPayload
from controlplane.core.membership.inputs import Heartbeat, NodeJoined, NodeLeaving, NodeLeft
from controlplane.core.membership.node import NodeStatus
from controlplane.core.routing.replica import RoutingTable
from controlplane.core.session.node_session import SessionState
from controlplane.core.values.addresses import Address
from controlplane.core.values.replica_status import ReplicaStatus
from controlplane.embedded.kafka import EmbeddedKafka
from controlplane.node import Access, NodeAgent, NodeLoad
from controlplane.routing import RoutingClient
from tests.fixtures import NewClusterName
from tests.helpers.polling import poll_until
from tests.helpers.sources import everything_in
from tests.helpers.table_feed import TableFeed

pytestmark = pytest.mark.slow

LOAD = NodeLoad(cpu=ResourceUsage(12.5, 200.0))


class Setting:
    """A cluster of its own on a broker, its table by hand, and whatever the test starts."""

    def __init__(self, broker: EmbeddedKafka, stack: ExitStack, cluster: str) -> None:
        self.broker = broker
        self._stack = stack
        self._cluster = ClusterConfig(cluster)
        self._kafka = KafkaConfig(broker.bootstrap_servers)
        apply_topics(broker.bootstrap_servers, self._cluster.name, topic_specs(), {}, least_copies=1)
        writer = KafkaTransactionalWriter(self._cluster, self._kafka)
        stack.callback(writer.close)
        self.feed = TableFeed(writer)
        self.feed.commit()  # a node does not join before there is a table

    def client(self) -> RoutingClient:
        """A client that follows until the end of the test."""
        made = routing_client(self._cluster.name, self.broker.bootstrap_servers)
        return self._stack.enter_context(made)

    def agent(self, node_id: str = "n1") -> NodeAgent:
        """A node, not stopped by anybody but the test."""
        return node_agent(
            self._cluster.name,
            self.broker.bootstrap_servers,
            node_id,
            addresses={"kv": ("127.0.0.1", 4_000)},
            load_source=lambda: LOAD,
            load_interval_ms=100,
        ).start()

    def inputs(self, topic: str) -> list[InputPayload]:
        """Everything that was appended to an input topic."""
        records = everything_in(KafkaLogReader(self._cluster, self._kafka), topic)
        found = [decode_input(topic, record).payload for record in records]
        return [payload for payload in found if isinstance(payload, InputPayload)]

    def admit(self, incarnation: int) -> None:
        """What a leader does with a join."""
        self.feed.node("n1", incarnation=incarnation, addresses=[Address("kv", "127.0.0.1", 4_000)])
        for slot_id in range(4):
            self.feed.slot(slot_id, "n1")
        self.feed.commit()

    def joined(self, at_least: int = 1) -> NodeJoined:
        """The last join, once there are so many."""
        poll_until(lambda: len(self.joins()) >= at_least)
        return self.joins()[-1]

    def joins(self) -> list[NodeJoined]:
        """The joins so far."""
        return [record for record in self.inputs(MEMBERSHIP) if isinstance(record, NodeJoined)]


@pytest.fixture
def setting(kafka_broker: EmbeddedKafka, cluster_name: str) -> Iterator[Setting]:
    """On the shared broker."""
    with ExitStack() as stack:
        yield Setting(kafka_broker, stack, cluster_name)


@pytest.fixture
def troubled_setting(troubled_kafka: EmbeddedKafka, cluster_name: str) -> Iterator[Setting]:
    """On a broker that the test may pause."""
    with ExitStack() as stack:
        yield Setting(troubled_kafka, stack, cluster_name)


def test_a_node_joins_serves_and_leaves_and_clients_follow(setting: Setting) -> None:
    """The records of a whole life are in the log as they should be, and a client routes to the node meanwhile."""
    agent = setting.agent()
    joined = setting.joined()
    assert joined.addresses == (Address("kv", "127.0.0.1", 4_000),)
    setting.admit(joined.incarnation)
    client = setting.client()
    client.wait_for()
    route = client.route("user-1")
    assert route.address("kv") == Address("kv", "127.0.0.1", 4_000)
    assert (route.node_id, route.term, route.epoch, route.leader_epoch) == ("n1", 1, 2, 2)

    poll_until(lambda: agent.ownership(route.slot_id).access is Access.MIGRATING)
    poll_until(lambda: agent.slot_ready(route.slot_id))
    poll_until(lambda: agent.ownership(route.slot_id).access is Access.ACCEPT)
    poll_until(lambda: any(_healthy(beat) == [route.slot_id] for beat in setting.inputs(HEARTBEATS)))
    poll_until(lambda: bool(setting.inputs(LOAD_REPORTS)))
    report = setting.inputs(LOAD_REPORTS)[-1]
    assert isinstance(report, LoadReport)
    assert (report.node_id, report.incarnation, report.cpu) == ("n1", joined.incarnation, LOAD.cpu)

    epochs: list[int] = []
    client.on_change(lambda before, after: epochs.append(after.epoch))
    for leader in ("n2", "n1", "n2"):
        setting.feed.slot(0, leader).commit()
    client.wait_for(lambda table: table.epoch == 5)
    assert epochs == [3, 4, 5]
    setting.feed.status("n1", NodeStatus.DRAINING)
    for slot_id in range(4):
        setting.feed.slot(slot_id, "n2")
    setting.feed.commit()
    poll_until(lambda: agent.state is SessionState.DRAINING)
    agent.stop(drain=True)
    assert [type(record) for record in setting.inputs(MEMBERSHIP)][-1] is NodeLeft
    assert NodeLeaving not in [type(record) for record in setting.inputs(MEMBERSHIP)], "it drained already"


def test_a_paused_broker_stops_the_node_and_not_the_client(troubled_setting: Setting) -> None:
    """Without the log the node refuses in time and the client routes on; both go on by themselves when it is back."""
    setting = troubled_setting
    agent = setting.agent()
    setting.admit(setting.joined().incarnation)
    client = setting.client()
    client.wait_for()
    poll_until(lambda: agent.slot_ready(0) and agent.ownership(0).access is Access.ACCEPT)
    setting.broker.pause()
    try:
        poll_until(lambda: agent.ownership(0).access is Access.MOVED, deadline_s=2.5)
        poll_until(lambda: agent.state is SessionState.LOST_LOG)
        assert client.route("user-1").node_id == "n1"
    finally:
        setting.broker.resume()
    poll_until(lambda: agent.ownership(0).access is Access.ACCEPT)
    setting.feed.slot(1, "n2").commit()
    assert client.wait_for(lambda table: table.epoch == 3).slots[1].leader == "n2"
    agent.stop(drain=False)


def test_a_fenced_node_joins_again_and_holds_nothing_it_held(setting: Setting) -> None:
    """The same process comes back with the same incarnation, and has to fetch everything anew."""
    agent = setting.agent()
    first = setting.joined()
    setting.admit(first.incarnation)
    poll_until(lambda: agent.slot_ready(0) and agent.ownership(0).access is Access.ACCEPT)
    setting.feed.status("n1", NodeStatus.FENCED)
    for slot_id in range(4):
        setting.feed.slot(slot_id, None)
    setting.feed.commit()
    poll_until(lambda: agent.ownership(0).access is Access.MOVED)
    again = setting.joined(at_least=len(setting.joins()) + 1)
    assert again.incarnation == first.incarnation
    setting.admit(first.incarnation)
    poll_until(lambda: agent.ownership(0).access is Access.MIGRATING)
    table = agent.table
    assert isinstance(table, RoutingTable)
    assert table.epoch == 4
    agent.stop(drain=False)


def test_agents_and_clients_of_two_clusters_share_a_process(setting: Setting, new_cluster_name: NewClusterName) -> None:
    """A gateway routes for two clusters, and a test harness runs two nodes: all with Prometheus' default registry."""
    with ExitStack() as stack:
        other = Setting(setting.broker, stack, new_cluster_name("others"))
        agents = [setting.agent(), setting.agent("n2"), other.agent()]
        setting.joined(at_least=2)
        other.joined()
        setting.feed.slot(0, "n1").commit()
        other.feed.slot(0, "n9").commit()
        clients = [setting.client(), setting.client(), other.client()]
        leaders = [client.wait_for().slots[0].leader for client in clients]
        assert leaders == ["n1", "n1", "n9"]
        for agent in agents:
            agent.stop(drain=False)


def _healthy(payload: InputPayload) -> list[int]:
    statuses = payload.slot_statuses if isinstance(payload, Heartbeat) else ()
    return [status.slot_id for status in statuses if status.status is ReplicaStatus.HEALTHY]
