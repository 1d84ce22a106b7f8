"""The publish-subscribe example as processes: bundles move, are split and end under traffic, and no message is lost."""

import subprocess
import sys
import time
from pathlib import Path
from typing import Self

import pytest

from controlplane.bootstrap.connections import open_source
from controlplane.bootstrap.members import routing_client
from controlplane.codec.inputs import encode_input
from controlplane.config import INTENTS
from controlplane.core.bundles.bundle import Bundle
from controlplane.core.bundles.events import BundleOrdersEnded, BundleOrdersGiven
from controlplane.core.bundles.orders import EndedOrder, OrderOutcome
from controlplane.core.intents.events import IntentAnswered, IntentOutcome
from controlplane.core.intents.intent import Intent, IntentKind
from controlplane.core.operations.bundle_operations import SPLIT_ALGORITHMS
from controlplane.embedded.kafka import EmbeddedKafka
from controlplane.embedded.valkey import EmbeddedValkey
from controlplane.inspection.readers import DecisionFollower
from examples.pubsub.client import GivenUp, Producer, PubSubClient, Subscriber
from examples.pubsub.rolling_restart import BrokersInTable, broker_command
from examples.pubsub.topic_file import TopicMessage
from examples.pubsub.traffic import Findings, Traffic
from examples.serving.restarts import Processes
from tests.helpers.real_cluster import DEADLINE_S, RealCluster

pytestmark = [pytest.mark.slow, pytest.mark.end_to_end, pytest.mark.timeout(300)]

NAMESPACE, SHORT_LIVED = "shop/orders", "shop/returns"
BROKERS = ("b1", "b2", "b3")
TOPICS = [f"persistent://{NAMESPACE}/t{number}" for number in range(1, 13)]
RATE_PER_S = 120


class PubSubCluster:
    """Controllers and brokers as processes, a client, and an operator. A context manager: it ends every process."""

    def __init__(self, real: RealCluster, *, leader_is_killed: bool) -> None:
        """Name the parts; nobody runs yet.

        Args:
            real: the cluster.
            leader_is_killed: whether the leader is killed while it carries out what the operator asks for.
        """
        name, servers = real.cluster.name, real.kafka.bootstrap_servers
        self.real = real
        self.client = PubSubClient(routing_client(name, servers))
        self.processes = Processes(real.folder, broker_command(name, servers, real.folder / "topics"))
        self._leader_is_killed = leader_is_killed
        self.ended_by_another_leader = 0
        self._intents = 0

    def __enter__(self) -> Self:
        """Start everything, and wait until every bundle is served."""
        self.real.__enter__()
        for controller_id in ("c1", "c2"):
            self.real.start_controller(controller_id)
        self.client.__enter__()
        for broker_id in BROKERS:
            self.processes.start(broker_id)
        self.real.wait_until(lambda: bool(self.real.decisions()), "a leader")
        self._ask_for(IntentKind.CREATE_NAMESPACE, {"namespace": NAMESPACE})
        BrokersInTable(self.client, NAMESPACE, BROKERS).wait_until_served(*BROKERS)
        return self

    def __exit__(self, *error: object) -> None:
        """End the brokers, the client and the controllers."""
        self.processes.__exit__(*error)
        self.client.__exit__(*error)
        self.real.__exit__(*error)

    def bundles(self, namespace: str = NAMESPACE) -> list[Bundle]:
        """The bundles of a namespace as the client sees them now, ascending."""
        table = self.client.routing.table
        rows = table.bundles.values() if table else ()
        return sorted((row for row in rows if row.namespace == namespace), key=lambda row: row.lower)

    def carry_out(self, kind: IntentKind, **arguments: str) -> list[EndedOrder]:
        """Ask for something, kill the leader as soon as it has given its orders, and return what came of them."""
        follower = DecisionFollower(open_source(self.real.cluster, self.real.kafka))
        intent_id = self._ask_for(kind, arguments)
        answered_in, given, ended = 0, set[str](), dict[str, EndedOrder]()
        until_s = time.monotonic() + DEADLINE_S
        while not answered_in or given - ended.keys():
            assert time.monotonic() < until_s, f"{kind} {arguments}: term {answered_in}, {given - ended.keys()} stand"
            for logged in follower.poll(200):
                decision = logged.decision
                for event in decision.events:
                    if isinstance(event, IntentAnswered) and event.intent_id == intent_id:
                        assert event.outcome is IntentOutcome.DONE, event.detail
                        answered_in = decision.term
                        self._kill(decision.controller_id)
                    elif isinstance(event, BundleOrdersGiven):
                        given |= {order.bundle_id for order in event.orders}
                    elif isinstance(event, BundleOrdersEnded):
                        ended |= {each.bundle_id: each for each in event.ended}
                        self.ended_by_another_leader += len(event.ended) * (decision.term != answered_in)
        epoch = self.real.decisions()[-1].epoch
        self.client.routing.wait_for(lambda table: table.epoch >= epoch)
        return list(ended.values())

    def _kill(self, controller_id: str) -> None:
        if self._leader_is_killed:
            self.real.controllers[controller_id].kill()
            self.real.controllers[controller_id].wait(10)
            self.real.start_controller(controller_id)

    def delete_namespace(self, namespace: str) -> None:
        """Ask for the deletion of a namespace, and wait until it has come about."""
        self.carry_out(IntentKind.DELETE_NAMESPACE, namespace=namespace)
        self.client.routing.wait_for(lambda table: namespace not in table.namespaces, timeout_ms=60_000)

    def _ask_for(self, kind: IntentKind, arguments: dict[str, str]) -> str:
        self._intents += 1
        intent = Intent(f"i{self._intents}", kind.value, "test", arguments)
        self.real.send(INTENTS, intent.intent_id, encode_input(intent))
        return intent.intent_id


def everything_in(client: PubSubClient, topic: str) -> list[TopicMessage]:
    """All messages of a topic, for a new subscriber."""
    subscriber, messages = Subscriber(client, topic), list[TopicMessage]()
    while found := subscriber.receive(wait_s=0.1):
        messages += found
    return messages


def outcomes(ended: list[EndedOrder]) -> set[OrderOutcome]:
    """What came of orders."""
    return {each.outcome for each in ended}


@pytest.mark.parametrize("leader_is_killed", [False, True], ids=["leader-lives", "leader-killed"])
def test_nothing_acknowledged_is_lost_while_bundles_move(
    kafka_broker: EmbeddedKafka,
    valkey_server: EmbeddedValkey,
    cluster_name: str,
    tmp_path: Path,
    leader_is_killed: bool,
) -> None:
    """Whatever operators ask for: every acknowledged message is there, once, and in order for its key."""
    real = RealCluster(cluster_name, kafka_broker.bootstrap_servers, valkey_server.redis_url, tmp_path)
    done = {OrderOutcome.DONE}
    with PubSubCluster(real, leader_is_killed=leader_is_killed) as cluster:
        traffic = Traffic(cluster.client, TOPICS, RATE_PER_S)
        traffic.start()

        assert outcomes(cluster.carry_out(IntentKind.TRANSFER_BUNDLES, bundles=NAMESPACE, node="b2")) <= done
        assert {bundle.owner for bundle in cluster.bundles()} == {"b2"}
        assert outcomes(cluster.carry_out(IntentKind.UNLOAD_BUNDLES, bundles=NAMESPACE)) == done
        assert not {bundle.owner for bundle in cluster.bundles()} & {"b2", None}

        count = len(cluster.bundles())
        assert (
            outcomes(cluster.carry_out(IntentKind.SPLIT_BUNDLES, bundles=NAMESPACE, by="number", numbers="2")) == done
        )
        assert len(cluster.bundles()) == 2 * count
        first = cluster.bundles()[0]
        positions = f"{first.lower + 1_000},{first.upper - 1_000}"
        split = {"bundles": first.bundle_id, "by": "positions", "numbers": positions}
        assert outcomes(cluster.carry_out(IntentKind.SPLIT_BUNDLES, **split)) == done
        assert len(cluster.bundles()) == 2 * count + 2
        for algorithm in SPLIT_ALGORITHMS:
            before = len(cluster.bundles())
            ended = cluster.carry_out(IntentKind.SPLIT_BUNDLES, bundles=NAMESPACE, by=algorithm)
            parts = sum(each.outcome is OrderOutcome.DONE for each in ended)
            assert len(cluster.bundles()) == before + parts
            # So little traffic is no reason for the third one to split.
            assert bool(parts) == (algorithm != "flow_or_qps_equally_divide")

        cluster.carry_out(IntentKind.CREATE_NAMESPACE, namespace=SHORT_LIVED)
        topic = f"persistent://{SHORT_LIVED}/t"
        assert Producer(cluster.client, topic).send("k", "1").offset == 0
        cluster.delete_namespace(SHORT_LIVED)
        with pytest.raises(GivenUp):
            Producer(PubSubClient(cluster.client.routing, attempts_at_most=2), topic).send("k", "2")

        findings = traffic.stop()
        assert findings.are_good, findings
        assert findings == Findings(findings.sent, findings.sent)
        assert traffic.given_up == 0
        for ledger in traffic.ledgers:
            assert everything_in(cluster.client, ledger.topic) == ledger.received
        cluster.processes.check()
        assert bool(cluster.ended_by_another_leader) == leader_is_killed
        cluster.real.assert_log_is_whole()


def test_killing_one_broker_after_the_other_loses_nothing(
    kafka_broker: EmbeddedKafka, valkey_server: EmbeddedValkey, cluster_name: str, tmp_path: Path
) -> None:
    """The program says so by its exit status, and prints the figures. The README's test restarts them in good order."""
    with RealCluster(cluster_name, kafka_broker.bootstrap_servers, valkey_server.redis_url, tmp_path) as real:
        real.start_controller("c1")
        real.wait_until(lambda: bool(real.decisions()), "a leader")
        intent = Intent("i1", IntentKind.CREATE_NAMESPACE.value, "test", {"namespace": NAMESPACE})
        real.send(INTENTS, intent.intent_id, encode_input(intent))
        command = [
            *(sys.executable, "-m", "examples.pubsub.rolling_restart", "--cluster", cluster_name, "--rate", "100"),
            *("--bootstrap-servers", real.kafka.bootstrap_servers, "--namespace", NAMESPACE, "--kill"),
            *("--directory", str(tmp_path / "topics")),
        ]
        result = subprocess.run(command, capture_output=True, text=True, timeout=200, check=False)
    assert result.returncode == 0, f"{result.stdout}\n{result.stderr}"
    figures = dict(line.split(": ", 1) for line in result.stdout.splitlines())
    assert int(figures["sent"]) == int(figures["acknowledged"]) > 500
    assert figures["missing"] == figures["doubled"] == figures["out of order for their key"] == "0"
