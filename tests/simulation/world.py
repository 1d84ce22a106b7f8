"""A simulated cluster: controllers, nodes and clients as processes over one Kafka and one lease store."""

import itertools
import random
from collections.abc import Callable, Mapping
from functools import partial

from prometheus_client import CollectorRegistry

from controlplane.bootstrap.controllers import compose_controller
from controlplane.bootstrap.topics import topic_specs
from controlplane.codec.inputs import encode_input
from controlplane.config import (
    DECISIONS,
    HEARTBEATS,
    INTENTS,
    ROUTING_TABLE,
    ClusterConfig,
    ControllerConfig,
    KafkaConfig,
)
from controlplane.core.intents.intent import Intent
from controlplane.core.values.identifiers import Epoch
from controlplane.errors import ConfigurationError
from controlplane.node import FencingToken, NodeAgent, NodeLoad, SessionState
from controlplane.node.alternating_writer import AlternatingWriter
from controlplane.node.description import NodeDescription
from controlplane.node.load_thread import LoadReports
from controlplane.ports import OutgoingRecord, Signal
from controlplane.routing import RoutingClient
from controlplane.service.controller import Controller
from controlplane.service.metrics import ControllerMetrics
from controlplane.testing import MemoryBroker, MemoryEventWriter, MemoryLeaseServer
from tests.simulation.brokers import Brokers
from tests.simulation.machine import Machine
from tests.simulation.network import SimulatedClock, Stores
from tests.simulation.processes import Failure, ReadyAtOnce, RunningController
from tests.simulation.scheduler import News, Process, Scheduler, SimulatedThread
from tests.simulation.service import SimulatedService
from tests.simulation.setting import CLUSTER, LEASE, Setting
from tests.simulation.threads import SimulatedThreads

_PATIENCE_MS = 60_000
"""Operators' tools do not give up."""
_SUPERVISOR_MS = 300


class World:
    """Everything that a run consists of.

    Attributes:
        brokers: those of Kafka.
        machines: the last process of each name, dead or not.
        running: the controllers that live, observers included.
        agents, services: of the nodes that live; services of twins, too.
        started_twice: the nodes of which a second process was started beside the first.
        died_joining: the nodes of which a process died before it was a member; its join may be taken up later.
        without_process: nodes that joined without a process.
        twins: the agents of second processes of nodes, by the machine that they run on.
        clients: those who route.
        failures: what ended threads.
        authors: the process that appended each record of ``decisions``, by offset.
        appended_ms: virtual append times of ``heartbeats``, by partition and offset.
        intents_sent: ids of the intents that operators sent.
        in_transaction: told of each process that has appended a transaction's records and not ended it yet.
        openings: the epoch of the token under which a process of a node has last opened a bundle, by node and bundle.
        on_write: told of each write that a node accepts: node, process, key, token.
        new_service: makes the service of each node process that starts.
        failing: nodes whose callbacks may raise: their processes end by that, and are started again.
    """

    def __init__(self, seed: str, setting: Setting) -> None:
        """Create the world, without running processes."""
        self.setting = setting
        self.random = random.Random(f"world of {seed}")
        self.scheduler = Scheduler(random.Random(f"turns of {seed}"))
        self.scheduler.on_failure = self._note_failure
        self.cluster = ClusterConfig(CLUSTER)
        self.clock = SimulatedClock(self.scheduler)
        self.broker = MemoryBroker(self.clock)
        self.lease_clock = SimulatedClock(self.scheduler)
        self.leases = MemoryLeaseServer(self.lease_clock)
        self.other_leases = MemoryLeaseServer(self.lease_clock)
        self.stores = Stores(
            self.cluster, self.broker, self.leases, self.other_leases, News(self.scheduler), setting.fetch_records
        )
        self._process_numbers = itertools.count(1)
        self.machines: dict[str, Machine] = {}
        self.running: dict[str, RunningController] = {}
        self.agents: dict[str, NodeAgent] = {}
        self.twins: dict[str, NodeAgent] = {}
        self.started_twice: set[str] = set()
        self.died_joining: set[str] = set()
        self.without_process: set[str] = set()
        self.services: dict[str, SimulatedService] = {}
        self.clients: dict[str, RoutingClient] = {}
        self.failures: list[Failure] = []
        self.authors: dict[int, str] = {}
        self.appended_ms: list[list[int]] = [[] for _ in range(setting.heartbeat_partitions)]
        self.intents_sent: set[str] = set()
        self.openings: dict[tuple[str, str], Epoch] = {}
        self.in_transaction: Callable[[str], None] = lambda _: None
        self.on_write: Callable[[str, object, str, FencingToken], None] = lambda *_: None
        self.new_service: Callable[..., SimulatedService] = SimulatedService
        self.failing: set[str] = set()
        for spec in topic_specs():
            partition_count = setting.heartbeat_partitions if spec.name == HEARTBEATS else 1
            self.broker.create_topic(self.cluster.topic(spec.name), partition_count, spec.settings_for(brokers=1))
        topics = [self.cluster.topic(spec.name) for spec in topic_specs()]
        self.brokers = Brokers(self.scheduler, self.broker, topics)
        self.broker.on_change = self._note_change
        self.broker.while_open = self._linger_in_transaction
        self._operator = MemoryEventWriter(self.cluster, self.broker, _PATIENCE_MS)

    # -- processes ---------------------------------------------------------------------------------------------------

    def start_controller(self, name: str, *, follow_only: bool = False) -> None:
        """Start a controller process, unless one of that name runs."""
        if name in self.running:
            return
        machine = self._machine(name)
        threads = SimulatedThreads(self.scheduler, machine.process)
        config = ControllerConfig(
            self.cluster,
            KafkaConfig("simulated"),
            "simulated",
            name,
            self.setting.lease_of(name),
            tick_interval_ms=self.setting.tick_interval_ms,
            follow_only=follow_only,
            snapshots=self.setting.snapshots,
            stop_when_lease_store_is_lost=self.setting.stop_when_lease_store_is_lost,
        )
        random_source = random.Random(self.random.random())
        process = f"{random_source.getrandbits(32):08x}"
        controller = compose_controller(
            config,
            self.setting.policy,
            clock=machine.clock,
            threads=threads,
            metrics=ControllerMetrics(CollectorRegistry()),
            lease_stores=(
                machine.lease_store(LEASE.store_timeout_ms, process),
                machine.lease_store(LEASE.store_timeout_ms, process),
            ),
            open_reader=machine.reader,
            open_transactions=machine.transactional_writer,
            open_inspector=machine.topic_inspector,
            event_writers=(machine.event_writer(LEASE.duration_ms), machine.event_writer(), machine.event_writer()),
            random_source=random_source,
        )
        stop = threads.signal()
        self.running[name] = RunningController(name, controller, stop)
        again = partial(self.start_controller, name, follow_only=follow_only)
        threads.thread(lambda: self._run_controller(name, controller, stop, again), "controller").start()

    def start_node(self, name: str, second_machine: str = "") -> None:
        """Start a node process, unless one of that name runs; on a second machine, it is a twin of the one that runs.

        A twin that ends is not started again.
        """
        place = second_machine or name
        if place in self.agents or place in self.twins:
            return
        machine = self._machine(place)
        threads = SimulatedThreads(self.scheduler, machine.process)
        service = self.new_service(
            name,
            machine,
            self.services,
            random.Random(self.random.random()),
            lambda node_id, key, token: self.on_write(node_id, machine.process, key, token),
            self.openings,
        )
        load_reports = None
        if self.setting.load_interval_ms:
            load_reports = LoadReports(NodeLoad, machine.event_writer(), self.setting.load_interval_ms)
        agent = NodeAgent(
            writer=AlternatingWriter(machine.event_writer(), machine.event_writer()),
            reader=machine.reader(),
            clock=machine.clock,
            threads=threads,
            node=NodeDescription(name, zone=self.setting.zone_of(name)),
            cluster=self.cluster.name,
            callbacks=service,
            load_reports=load_reports,
            registry=CollectorRegistry(),
            process_id=f"process {next(self._process_numbers)}",
        )
        service.agent = agent
        if second_machine:
            self.started_twice.add(name)
        (self.twins if second_machine else self.agents)[place] = agent
        self.services[place] = service
        agent.start()
        stop = threads.signal()
        again = None if second_machine else partial(self._start_again, name, machine)
        threads.thread(lambda: self._run_service(service, stop, again), "service").start()

    def start_process(self, node_id: str, machine_name: str, wall_step_ms: int) -> NodeAgent:
        """Start another process of a node, on a machine whose wall clock is off. Its slots are ready at once."""
        machine = self._machine(machine_name)
        machine.clock.wall_step_ms = wall_step_ms
        callbacks = ReadyAtOnce()
        callbacks.agent = NodeAgent(
            writer=AlternatingWriter(machine.event_writer(), machine.event_writer()),
            reader=machine.reader(),
            clock=machine.clock,
            threads=SimulatedThreads(self.scheduler, machine.process),
            node=NodeDescription(node_id),
            cluster=self.cluster.name,
            callbacks=callbacks,
            registry=CollectorRegistry(),
            process_id=f"process {next(self._process_numbers)}",
        )
        return callbacks.agent.start()

    def start_client(self, name: str) -> None:
        """A process that routes begins."""
        machine = self._machine(name)
        threads = SimulatedThreads(self.scheduler, machine.process)
        client = RoutingClient(machine.reader(), threads, cluster=self.cluster.name, registry=CollectorRegistry())
        self.clients[name] = client
        client.start()

    def stop_controller(self, name: str) -> None:
        """A controller process is asked to end."""
        if name in self.running:
            self.running[name].stop.set()

    def stop_node(self, name: str, *, drain: bool) -> None:
        """A node process is asked to leave, and ends when it has."""
        agent, machine = self.agents.get(name), self.machines[name]
        if agent is None:
            return

        def leave() -> None:
            agent.stop(drain=drain, timeout_ms=3_000)
            self._forget(name, machine)
            machine.process.dead = True

        SimulatedThreads(self.scheduler, machine.process).thread(leave, "leaving").start()

    def kill(self, name: str) -> None:
        """A process dies, if it runs."""
        machine = self.machines[name]
        if not machine.process.dead:
            agent = self.agents.get(name)
            if agent is not None and agent.state in {SessionState.STARTING, SessionState.JOINING}:
                self.died_joining.add(name)
            machine.die()
            self._forget(name, machine)
            self.scheduler.kill(machine.process)

    # -- operators ---------------------------------------------------------------------------------------------------

    def ask(self, intent_id: str, kind: str, arguments: Mapping[str, str]) -> None:
        """An operator sends an intent."""
        self.intents_sent.add(intent_id)
        self.send(INTENTS, intent_id, encode_input(Intent(intent_id, kind, "operator", arguments)))

    def send(self, topic: str, key: str, value: bytes, partition: int | None = None) -> None:
        """Append bytes from a foreign writer."""
        self._operator.send(OutgoingRecord(topic, key.encode(), value, partition))

    def throw(self, topic: str, partition: int, key: bytes, value: bytes | None) -> None:
        """Something that is none of the cluster's writers appends any key and any value."""
        self._operator.send(OutgoingRecord(topic, key, value, partition))

    def recreate_log(self) -> None:
        """Delete the decision log and create it again, empty."""
        self.broker.create_topic(self.cluster.topic(DECISIONS))
        self.brokers.lead_new_partitions()
        self.authors.clear()

    def lose_end(self, ends: Mapping[str, int]) -> None:
        """The brokers are restored from a copy in which these topics, each of one partition, end there."""
        for topic, end in ends.items():
            self.broker.lose_from(self.cluster.topic(topic), 0, end)
        decisions_end = ends.get(DECISIONS)
        self.authors = {
            at: author for at, author in self.authors.items() if decisions_end is None or at < decisions_end
        }

    @property
    def heartbeat_partitions(self) -> int:
        """How many partitions ``heartbeats`` has by now."""
        return len(self.broker.partitions(self.cluster.topic(HEARTBEATS)))

    def add_partitions(self, count: int) -> None:
        """Add partitions to ``heartbeats``. Every node's next heartbeat goes to the partition of its key."""
        self.broker.add_partitions(self.cluster.topic(HEARTBEATS), self.heartbeat_partitions + count)
        self.brokers.lead_new_partitions()

    def lose_leader(self, topic: str, partition: int) -> None:
        """Make a partition unavailable."""
        self.broker.lose_leader(self.cluster.topic(topic), partition)

    def has_leader(self, topic: str, partition: int) -> bool:
        """Whether a partition is available."""
        return self.broker.has_leader(self.cluster.topic(topic), partition)

    def set_clock_of(self, topic: str, partition: int, ahead_ms: int) -> None:
        """A broker whose clock is ahead by this, or behind, leads a partition from now on."""
        self.brokers.lead_by_clock((self.cluster.topic(topic), partition), ahead_ms)

    def keep_create_time(self, topic: str, *, on: bool = True) -> None:
        """Somebody changes a topic: its records keep the time of their senders' clocks, or the broker's again."""
        kept = "CreateTime" if on else "LogAppendTime"
        self.broker.alter_topic(self.cluster.topic(topic), {"message.timestamp.type": kept})

    def elect_leader(self, topic: str, partition: int) -> None:
        """The partition is back."""
        self.broker.elect_leader(self.cluster.topic(topic), partition)

    def lose_follower(self, topic: str, partition: int) -> None:
        """A broker with a copy of a partition dies, and until Kafka notices, no write to it is acknowledged."""
        self.broker.lose_follower(self.cluster.topic(topic), partition)

    def drop_follower(self, topic: str, partition: int) -> None:
        """Kafka has noticed."""
        self.broker.drop_follower(self.cluster.topic(topic), partition)

    def compact_table(self, *, drop_tombstones: bool) -> None:
        """The log cleaner passes over the routing table."""
        self.broker.compact(self.cluster.topic(ROUTING_TABLE), drop_tombstones=drop_tombstones)

    # -- inside ------------------------------------------------------------------------------------------------------

    def _run_controller(self, name: str, controller: Controller, stop: Signal, again: Callable[[], None]) -> None:
        """One that a lease store refuses from the first request on ends; it is started again, as supervisors do."""
        machine = self.machines[name]
        try:
            controller.run(stop)
        except ConfigurationError:
            if machine.lease_store_answered:
                raise
            if not stop.is_set():
                self.scheduler.at(self.scheduler.now_ms + _SUPERVISOR_MS, again)
        finally:
            self._forget(name, machine)
            machine.process.dead = True

    def _run_service(self, service: SimulatedService, stop: Signal, again: Callable[[], None] | None) -> None:
        """Start a process again that ended without having been stopped, as supervisors do."""
        service.run(stop)
        if again is not None and not stop.is_set():
            self.scheduler.at(self.scheduler.now_ms + _SUPERVISOR_MS, again)

    def _start_again(self, name: str, ended: Machine) -> None:
        if self.machines[name] is ended and not ended.process.dead:
            self.kill(name)
            self.start_node(name)

    def _forget(self, name: str, machine: Machine) -> None:
        if self.machines[name] is machine:
            for running in (self.running, self.agents, self.twins, self.services, self.clients):
                running.pop(name, None)

    def _note_failure(self, thread: SimulatedThread, failure: BaseException) -> None:
        self.failures.append(Failure(thread.process.name, thread.name, failure))

    def _note_change(self, topic: str) -> None:
        if topic == self.cluster.topic(DECISIONS):
            author = self.scheduler.running_name
            for offset in range(len(self.authors), self.broker.partitions(topic)[0].end_offset):
                self.authors[offset] = author
        elif topic == self.cluster.topic(HEARTBEATS):
            while len(self.appended_ms) < len(self.broker.partitions(topic)):
                self.appended_ms.append([])
            for partition, appended_ms in zip(self.broker.partitions(topic), self.appended_ms, strict=True):
                while len(appended_ms) < partition.end_offset:
                    appended_ms.append(self.scheduler.now_ms)
        self.stores.news.tell(topic)

    def _linger_in_transaction(self) -> None:
        name = self.scheduler.running_name
        if name:  # a test's own writer is no process
            self.in_transaction(name)
            self.machines[name].latency()

    def _machine(self, name: str) -> Machine:
        before = self.machines.get(name)
        machine = Machine(
            self.scheduler,
            Process(name),
            self.stores,
            random.Random(self.random.random()),
            before.clock if before is not None else None,
        )
        self.machines[name] = machine
        return machine
