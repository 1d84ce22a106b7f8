"""Several servers of the real Kafka that form one cluster, on one machine and in one folder."""

import json
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Final

from controlplane.config import MAX_PORT
from controlplane.embedded.kafka import EmbeddedKafka, holds_data, new_cluster_id
from controlplane.embedded.kafka_settings import CLIENTS_LISTENER, Listener, ServerRole
from controlplane.embedded.running import Running
from controlplane.embedded.server import EmbeddedServer, free_port
from controlplane.errors import ConfigurationError, PrerequisiteError
from controlplane.kafka_rules.broker_sessions import RECOMMENDED_MS
from controlplane.kafka_rules.topics_file import least_in_sync

CLUSTER_FILE: Final = "cluster.json"
CONTROLLERS: Final = 3
"""Controllers of a cluster that has brokers enough, or whose controllers are apart: one may be missing."""
_FIRST_CONTROLLER_APART: Final = 101
"""The id of the first controller that is no broker; the next ones follow."""
_MEETING_DEADLINE_S: Final = 60.0
_POLL_INTERVAL_S: Final = 0.05
_HEAP_MB: Final = 256


@dataclass(frozen=True, slots=True)
class ServerOptions:
    """What one server of a cluster has in addition to what all have.

    Attributes:
        listeners: listeners of a broker beside the clients'.
        brokers_listener: the listener of the other brokers that it calls, for example one behind a proxy.
        controllers: the ports at which it reaches controllers, by id, where those are not the controllers' own.
        advertised_controller_port: the port at which it tells others to reach it as a controller, if not its own.
        environment: environment variables.
        settings: settings in addition to the cluster's, or in place of one of them.
    """

    listeners: Sequence[Listener] = ()
    brokers_listener: str = CLIENTS_LISTENER
    controllers: Mapping[int, int] = field(default_factory=dict)
    advertised_controller_port: int | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ClusterPlan:
    """What stays of a cluster from its first start on; the folder keeps it once every port was free.

    Attributes:
        cluster_id: as Kafka's storage has it.
        broker_ports: the clients' port of each broker, by id.
        controller_ports: the port of each controller, by id; a broker with the same id is this controller too.
    """

    cluster_id: str
    broker_ports: Mapping[int, int]
    controller_ports: Mapping[int, int]


def brokers_in(data_dir: Path) -> int | None:
    """The number of brokers of the cluster whose data this folder holds, None if it holds none of several.

    Raises:
        PrerequisiteError: the folder's file is damaged.
    """
    plan = _read_plan(data_dir)
    return None if plan is None or not _binds(plan, data_dir) else len(plan.broker_ports)


def controller_ids(brokers: int, *, controllers_apart: bool) -> range:
    """The ids of a cluster's controllers.

    Args:
        brokers: the number of its brokers, whose ids begin at 1.
        controllers_apart: whether the controllers are processes of their own; otherwise the first brokers are.
    """
    number = CONTROLLERS if controllers_apart or brokers >= CONTROLLERS else 1
    first = _FIRST_CONTROLLER_APART if controllers_apart else 1
    return range(first, first + number)


class EmbeddedKafkaCluster(Running):
    """Brokers with the ids 1 to N, and controllers, without passwords, on 127.0.0.1.

    Each server is an :class:`EmbeddedKafka`, which can be killed, paused and started again by itself. Internal topics
    have three copies, of which two have to acknowledge, as far as there are brokers. Fewer than three brokers have one
    controller, more have three.

    Args:
        data_dir: the data of all; a folder that was used before is used with its data and ports.
        brokers: their number.
        controllers_apart: whether the controllers are processes of their own; otherwise the first brokers are.
        first_port: the clients' port of broker 1, the others follow it; None uses the former ones, or free ones.
        settings: settings of every server in addition to ours, or in place of one of ours.
        options: what single servers have in addition, by id.

    Raises:
        PrerequisiteError: the folder holds the data of another number of brokers or controllers.
        ConfigurationError: the ports from ``first_port`` on do not suffice.
    """

    def __init__(
        self,
        data_dir: Path,
        brokers: int = 3,
        *,
        controllers_apart: bool = False,
        first_port: int | None = None,
        settings: Mapping[str, str] = MappingProxyType({}),
        options: Mapping[int, ServerOptions] = MappingProxyType({}),
    ) -> None:
        self.data_dir = data_dir.absolute()
        plan = _plan_for(self.data_dir, brokers, controllers_apart=controllers_apart, first_port=first_port)
        self._plan = plan
        self.controller_ports = plan.controller_ports
        every = {**cluster_settings(brokers), **settings}
        self.brokers = {
            node_id: self._server(plan, node_id, every, options.get(node_id, ServerOptions()))
            for node_id in plan.broker_ports
        }
        self.controllers = {
            node_id: self._server(plan, node_id, every, options.get(node_id, ServerOptions()))
            for node_id in plan.controller_ports
            if node_id not in plan.broker_ports
        }

    @property
    def bootstrap_servers(self) -> str:
        """The addresses of all brokers for clients, separated by commas."""
        return ",".join(broker.bootstrap_servers for broker in self.brokers.values())

    @property
    def servers(self) -> tuple[EmbeddedKafka, ...]:
        """Every process: the controllers that are apart, then the brokers."""
        return (*self.controllers.values(), *self.brokers.values())

    def start(self) -> None:
        """Start every server that does not run, and wait until all brokers show one another to clients.

        Raises:
            PortTakenError: another program listens on the port of one. None has been started then.
            PrerequisiteError: one ended, or they did not meet in time. All are stopped then.
        """
        started = [server for server in self.servers if not server.running]
        for server in started:
            server.check_port()
        _keep_plan(self._plan, self.data_dir)
        try:
            for server in started:
                server.launch()
            for server in started:
                server.wait_until_it_answers()
            self.wait_until_registered()
        except BaseException:
            # Also after Ctrl-C: the caller cannot stop what it did not get.
            self.stop()
            raise

    def wait_until_registered(self, deadline_s: float = _MEETING_DEADLINE_S) -> None:
        """Wait until every broker shows every broker to clients.

        Raises:
            PrerequisiteError: one does not within the time.
        """
        deadline = time.monotonic() + deadline_s
        missing = list(self.brokers.values())
        while missing := [broker for broker in missing if not self._shows_all(broker)]:
            if time.monotonic() > deadline:
                names = ", ".join(broker.data_dir.name for broker in missing)
                raise PrerequisiteError(f"{names} did not see all brokers within {deadline_s:.0f} s: look at its log")
            time.sleep(_POLL_INTERVAL_S)

    def stop(self) -> None:
        """Stop every server, all at once; the data stays. Idempotent."""
        # The controllers go on until the brokers have ended, which tell them so.
        for group in (self.brokers.values(), self.controllers.values()):
            _stop_at_once(group)

    def _shows_all(self, broker: EmbeddedKafka) -> bool:
        try:
            return broker.known_brokers() == self.brokers.keys()
        except OSError:
            return False

    def _server(
        self, plan: ClusterPlan, node_id: int, settings: Mapping[str, str], options: ServerOptions
    ) -> EmbeddedKafka:
        is_broker = node_id in plan.broker_ports
        own = plan.controller_ports.get(node_id)
        others = {each: port for each, port in options.controllers.items() if each != node_id}
        role = ServerRole(
            _server_folder(self.data_dir, node_id, is_broker=is_broker).name,
            node_id,
            plan.cluster_id,
            controllers={**plan.controller_ports, **others},
            controller_port=own,
            is_broker=is_broker,
            brokers_listener=options.brokers_listener,
            advertised_controller_port=options.advertised_controller_port,
        )
        return EmbeddedKafka(
            _server_folder(self.data_dir, node_id, is_broker=is_broker),
            plan.broker_ports[node_id] if is_broker else own,
            settings={**settings, **options.settings},
            listeners=options.listeners,
            role=role,
            environment=options.environment,
            heap_mb=_HEAP_MB,
        )


def cluster_settings(brokers: int) -> dict[str, str]:
    """The settings that several brokers have in place of those of one alone.

    Args:
        brokers: their number.
    """
    number = min(3, brokers)
    copies, least = str(number), str(least_in_sync(number))
    return {
        "default.replication.factor": copies,
        "min.insync.replicas": least,
        "offsets.topic.replication.factor": copies,
        "transaction.state.log.replication.factor": copies,
        "transaction.state.log.min.isr": least,
        "share.coordinator.state.topic.replication.factor": copies,
        "share.coordinator.state.topic.min.isr": least,
        # A dead broker holds back every write until its session has expired, a slow one until it has lagged so long.
        **{name: str(value_ms) for name, value_ms in RECOMMENDED_MS.items()},
    }


def _stop_at_once(servers: Iterable[EmbeddedServer]) -> None:
    stopping = list(servers)
    for server in stopping:
        server.ask_to_stop()
    for server in stopping:
        server.stop()


def _plan_for(data_dir: Path, brokers: int, *, controllers_apart: bool, first_port: int | None) -> ClusterPlan:
    controllers = controller_ids(brokers, controllers_apart=controllers_apart)
    plan = _read_plan(data_dir)
    # One that does not bind is left of a start that failed.
    if plan is None or (_shape(plan) != (brokers, set(controllers)) and not _binds(plan, data_dir)):
        ports = _free_ports(brokers + len(controllers))
        plan = ClusterPlan(
            new_cluster_id(),
            dict(zip(range(1, brokers + 1), ports, strict=False)),
            dict(zip(controllers, ports[brokers:], strict=True)),
        )
    if _shape(plan) != (brokers, set(controllers)):
        message = (
            f"{data_dir} holds a Kafka cluster of {len(plan.broker_ports)} brokers with the controllers "
            f"{', '.join(map(str, plan.controller_ports))}: use it as it is, or another folder"
        )
        raise PrerequisiteError(message)
    if first_port is not None and first_port + brokers - 1 > MAX_PORT:
        raise ConfigurationError(
            f"{brokers} brokers from port {first_port} on need ports above {MAX_PORT}: "
            f"the first one's can be {MAX_PORT - brokers + 1} at most"
        )
    if first_port is not None:
        plan = ClusterPlan(
            plan.cluster_id, {each: first_port + each - 1 for each in plan.broker_ports}, plan.controller_ports
        )
    return plan


def _shape(plan: ClusterPlan) -> tuple[int, set[int]]:
    """The number of brokers, and the ids of the controllers: what cannot change while there is data."""
    return len(plan.broker_ports), set(plan.controller_ports)


def _binds(plan: ClusterPlan, data_dir: Path) -> bool:
    """Whether a server of the plan has begun to keep data."""
    return any(
        holds_data(_server_folder(data_dir, node_id, is_broker=node_id in plan.broker_ports))
        for node_id in {*plan.broker_ports, *plan.controller_ports}
    )


def _server_folder(data_dir: Path, node_id: int, *, is_broker: bool) -> Path:
    return data_dir / (f"broker-{node_id}" if is_broker else f"controller-{node_id}")


def _keep_plan(plan: ClusterPlan, data_dir: Path) -> None:
    data_dir.mkdir(parents=True, exist_ok=True)
    (data_dir / CLUSTER_FILE).write_text(json.dumps(asdict(plan), indent=1) + "\n", encoding="utf-8")


def _free_ports(count: int) -> list[int]:
    ports: list[int] = []
    while len(ports) < count:
        if (port := free_port()) not in ports:
            ports.append(port)
    return ports


def _read_plan(data_dir: Path) -> ClusterPlan | None:
    path = data_dir / CLUSTER_FILE
    try:
        read = json.loads(path.read_text(encoding="utf-8"))
        broker_ports, controller_ports = (
            {int(each): int(port) for each, port in read[name].items()} for name in ("broker_ports", "controller_ports")
        )
        return ClusterPlan(str(read["cluster_id"]), broker_ports, controller_ports)
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        message = f"{path} is damaged ({error!r}): remove the folder {data_dir} with all its data, or take another"
        raise PrerequisiteError(message) from error
