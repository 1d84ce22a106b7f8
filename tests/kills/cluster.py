"""A cluster with the key-value service on it: controllers and nodes as processes, clients and traffic in this one."""

import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from types import TracebackType
from typing import Self

from controlplane.bootstrap.connections import open_source
from controlplane.bootstrap.members import routing_client
from controlplane.core.membership.node import NodeStatus
from controlplane.core.routing.replica import RoutingTable
from controlplane.core.session.node_session import SessionState
from controlplane.inspection.readers import DecisionFollower
from controlplane.routing import RoutingClient
from examples.kv.client import Acknowledged, KvClient
from examples.kv.moving import place_of
from examples.kv.traffic import Traffic
from examples.serving.protocol import Connections, Message, Unreachable
from tests.helpers.real_cluster import RealCluster

READERS = 3


class EpochWitness:
    """A routing client that remembers every epoch that it was shown."""

    def __init__(self, cluster: str, bootstrap_servers: str) -> None:
        """Nothing is read yet."""
        self.client: RoutingClient = routing_client(cluster, bootstrap_servers)
        self.epochs: list[int] = []
        self.client.on_change(lambda _, table: self.epochs.append(table.epoch))

    def assert_no_gap(self) -> None:
        """Every epoch came, once."""
        expected = list(range(self.epochs[0], self.epochs[-1] + 1))
        assert self.epochs == expected, f"a reader was shown the epochs {self.epochs}"


class KvCluster:
    """Controllers, kv nodes, traffic with a ledger, and readers. A context manager: it ends every process."""

    def __init__(
        self,
        real: RealCluster,
        *,
        controllers: int,
        nodes: int,
        rate_per_s: float,
        history: list[Acknowledged],
        node_program: Sequence[str] = ("examples.kv.node",),
    ) -> None:
        """Name the parts; nobody runs yet.

        Args:
            real: the cluster.
            controllers: their number.
            nodes: their number.
            rate_per_s: requests of the traffic.
            history: what the nodes acknowledge to the traffic is appended to it.
            node_program: the module that a node runs, and options in addition to those that every node gets.
        """
        name, bootstrap_servers = real.cluster.name, real.kafka.bootstrap_servers
        self.real = real
        self.nodes: dict[str, subprocess.Popen[bytes]] = {}
        self.client = KvClient(name, bootstrap_servers, give_up_s=20)
        self.traffic = Traffic(self.client, rate_per_s, on_acknowledged=history.append)
        self.witnesses = [EpochWitness(name, bootstrap_servers) for _ in range(READERS)]
        self._controller_ids = [f"c{number}" for number in range(1, controllers + 1)]
        self._node_ids = [f"n{number}" for number in range(1, nodes + 1)]
        self._node_program = tuple(node_program)
        self._connections = Connections()
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        """Start everything and wait until every replica is complete."""
        with ExitStack() as stack:
            stack.enter_context(self.real)
            stack.callback(self._end_nodes)
            for controller_id in self._controller_ids:
                self.real.start_controller(controller_id)
            for node_id in self._node_ids:
                self.start_node(node_id)
            for witness in self.witnesses:
                stack.enter_context(witness.client)
            stack.enter_context(self.client)
            stack.callback(self._connections.close)
            self.wait_until_complete()
            self.traffic.start()
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the traffic, the clients, the nodes and the controllers."""
        with self._stack:
            if error is None:
                self.traffic.stop()

    @property
    def table(self) -> RoutingTable | None:
        """As the client sees it."""
        return self.client.routing.table

    def start_node(self, node_id: str) -> None:
        """A node as a user starts it."""
        command = [
            *(sys.executable, "-m", *self._node_program),
            *("--cluster", self.real.cluster.name, "--node-id", node_id),
            *("--bootstrap-servers", self.real.addresses_of(node_id).bootstrap_servers),
            *self.real.security_options,
        ]
        with self.real.log_of(node_id).open("ab") as output:
            self.nodes[node_id] = subprocess.Popen(
                command, stdout=output, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL
            )

    def kill_node(self, node_id: str) -> None:
        """SIGKILL."""
        self.nodes[node_id].send_signal(signal.SIGKILL)
        self.nodes[node_id].wait(10)

    def wait_until_complete(self) -> None:
        """Wait until every node lives and knows it, and every slot has its replicas, complete in the newest epoch."""
        self.wait_until(self._is_complete, "every replica complete on every node")

    def wait_until(self, condition: Callable[[], bool], what: str) -> None:
        """Poll, and fail with the processes' logs."""
        try:
            self.real.wait_until(condition, what)
        except AssertionError as error:
            tails = [self.real.log_of(node_id).read_text(errors="replace")[-3_000:] for node_id in self.nodes]
            statuses = [self._status(node_id) for node_id in self.nodes]
            message = "\n".join([str(error), *tails, *map(str, statuses)])
            raise AssertionError(message) from error

    def decisions_from_now(self) -> DecisionFollower:
        """The decisions that are committed after this call."""
        return DecisionFollower(open_source(self.real.cluster, self.real.kafka))

    def _is_complete(self) -> bool:
        table = self.table
        if table is None or len(self.nodes) < len(self._node_ids):
            return False
        active = {node_id for node_id, row in table.nodes.items() if row.status is NodeStatus.ACTIVE}
        wanted = min(table.settings.replica_count, len(self._node_ids))
        if active != set(self._node_ids) or any(len(slot.replicas) < wanted for slot in table.slots):
            return False
        statuses = [self._status(node_id) for node_id in self._node_ids]
        return all(
            status is not None
            and status["state"] == SessionState.ACTIVE.value
            and status["epoch"] == table.epoch
            and status["held"]
            and not status["incomplete"]
            for status in statuses
        )

    def _status(self, node_id: str) -> Message | None:
        place = place_of(self.table, node_id)
        try:
            return self._connections.ask(place, {"op": "status"}, 1.0) if place else None
        except Unreachable:
            return None

    def _end_nodes(self) -> None:
        for process in self.nodes.values():
            process.kill()
        for process in self.nodes.values():
            process.wait(10)
