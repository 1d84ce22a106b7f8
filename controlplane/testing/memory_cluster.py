"""A whole control plane in the process of a test, for the tests of services that use this package."""

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from secrets import token_hex
from typing import Final, NamedTuple, Self

from prometheus_client import REGISTRY, CollectorRegistry

from controlplane.adapters.system_threads import SystemThreads
from controlplane.bootstrap.members import describe_node, log_through_the_standard_library
from controlplane.core.cluster.policy import ClusterPolicy
from controlplane.core.intents.events import IntentOutcome
from controlplane.core.intents.intent import Intent, IntentKind
from controlplane.core.membership.node import NodeRole
from controlplane.core.operations.argument_checks import check_arguments
from controlplane.core.session.node_session import SessionSettings
from controlplane.core.slots.policies import BUILT_IN_POLICIES
from controlplane.core.slots.policy_contract import SlotPolicies
from controlplane.core.values.identifiers import NodeId
from controlplane.errors import ConfigurationError
from controlplane.inspection.answers import AnswerWatch
from controlplane.inspection.source import LogSource
from controlplane.intents_client import submit_intent
from controlplane.node import HandoffSettings, NodeAgent, NodeCallbacks, NodeLoad
from controlplane.node.load_thread import LoadReports
from controlplane.routing import RoutingClient
from controlplane.testing.memory_controllers import QUICK_POLICY, MemoryControllers, WaitingLogReader
from controlplane.testing.memory_log import MemoryEventWriter

_QUICK_SESSION: Final = SessionSettings(heartbeat_interval_ms=100, join_retry_ms=200, self_fencing_margin_ms=200)
_MESSAGE_TIMEOUT_MS: Final = 800
_ANSWER_TIMEOUT_MS: Final = 10_000


class _Member(NamedTuple):
    """A node's agent, and its connections to the broker."""

    node_id: NodeId
    agent: NodeAgent
    connections: tuple[MemoryEventWriter | WaitingLogReader, ...]


class MemoryCluster:
    """A cluster with one controller, without servers: Kafka and the lease store are in memory.

    Use it as a context manager: entering starts the controller, leaving stops the agents, without draining, and closes
    the clients that it made. Controller, agents and clients are those of production, so they run in threads and in real
    time, which cannot be advanced. With the default policy and settings, on an idle machine: an agent is a member and
    the first table is there within half a second, and the slots of a node that was disconnected have new leaders about
    a second later. Nothing is written to disk, and clusters with different or equal names do not see each other.

    Needs the extra ``controller``.

    Args:
        name: the cluster's name.
        policy: the cluster's policy. The default has 8 slots, and declares a node dead after 800 ms of silence. Another
            policy has production's limits unless you set them: ``silence_limit_ms`` is how long a test has to wait for
            the death of a node, ``join_linger_ms`` for the admission of one.
        slot_policies: the slot policies by which the controller can decide, by name; see
            ``load_slot_policies`` in :mod:`controlplane.slot_policies`.

    Raises:
        ConfigurationError: the name or the policy is not usable.
    """

    def __init__(
        self,
        name: str = "test",
        *,
        policy: ClusterPolicy = QUICK_POLICY,
        slot_policies: SlotPolicies = BUILT_IN_POLICIES,
    ) -> None:
        log_through_the_standard_library()
        self.name: Final = name
        self._slot_policies = slot_policies
        self._controllers = MemoryControllers(name, policy)
        self._members: list[_Member] = []
        self._to_close = ExitStack()

    def __enter__(self) -> Self:
        """Start the controller."""
        self._to_close.enter_context(self._controllers)
        self._controllers.start("controller-1", slot_policies=self._slot_policies)
        return self

    def __exit__(self, *_: object) -> None:
        """Stop the agents without draining, close the clients, and end the controller."""
        self._to_close.close()

    def agent(  # noqa: PLR0913 - all but one by name and with defaults
        self,
        node_id: NodeId,
        *,
        addresses: Mapping[str, str | tuple[str, int]] | None = None,
        callbacks: NodeCallbacks | None = None,
        load_source: Callable[[], NodeLoad] | None = None,
        load_interval_ms: int = 5_000,
        role: NodeRole = NodeRole.DATA,
        zone: str = "",
        weight: int = 1,
        capacity: int = 0,
        version: str = "",
        settings: SessionSettings | None = None,
        handoff: HandoffSettings | None = None,
        registry: CollectorRegistry = REGISTRY,
    ) -> NodeAgent:
        """An agent of this cluster that is not started yet, with the arguments of ``controlplane.node_agent``.

        Its default ``settings`` differ: it sends heartbeats every 100 ms.

        Raises:
            ConfigurationError: a name or a number is not usable.
        """
        node = describe_node(node_id, addresses, role, zone, weight=weight, capacity=capacity, version=version)
        world = self._controllers
        writer = MemoryEventWriter(world.cluster, world.broker, _MESSAGE_TIMEOUT_MS)
        reader = WaitingLogReader(world.cluster, world.broker)
        connections: tuple[MemoryEventWriter | WaitingLogReader, ...] = (writer, reader)
        load_reports = None
        if load_source is not None:
            load_writer = MemoryEventWriter(world.cluster, world.broker, _MESSAGE_TIMEOUT_MS)
            connections = (*connections, load_writer)
            load_reports = LoadReports(load_source, load_writer, load_interval_ms)
        agent = NodeAgent(
            writer=writer,
            reader=reader,
            clock=world.clock,
            threads=SystemThreads(),
            node=node,
            cluster=self.name,
            callbacks=callbacks,
            load_reports=load_reports,
            settings=settings or _QUICK_SESSION,
            handoff=handoff,
            registry=registry,
        )
        self._members.append(_Member(node_id, agent, connections))
        self._to_close.callback(agent.stop, drain=False)
        return agent

    def client(self, *, registry: CollectorRegistry = REGISTRY) -> RoutingClient:
        """A routing client of this cluster that is not started yet, as from ``controlplane.routing_client``."""
        client = RoutingClient(self._controllers.reader(), SystemThreads(), cluster=self.name, registry=registry)
        self._to_close.callback(client.close)
        return client

    def ask(self, kind: str, **arguments: str) -> str:
        """Ask the leader for something as an operator does, and wait for the answer.

        ``cluster.ask("create_namespace", namespace="orders", bundles="8")``

        Args:
            kind: the kind of the intent, such as ``create_namespace``, ``transfer_bundles`` or ``drain_node``.
            arguments: the arguments of that kind.

        Returns:
            The answer, in words. What an order asks for has not come about by then: wait for that.

        Raises:
            ConfigurationError: there is no such kind, an argument of it is not usable, or the leader refuses it.
            TimeoutError: no leader has answered within 10 seconds.
        """
        try:
            known = IntentKind(kind)
        except ValueError:
            kinds = ", ".join(sorted(each.value for each in IntentKind))
            raise ConfigurationError(f"there is no intent {kind!r:.80}; intents: {kinds}") from None
        check_arguments(known, arguments)
        intent = Intent(f"{kind}-{token_hex(6)}", kind, "test", arguments)
        source, writer = (
            LogSource(self._controllers.reader(), self._controllers.clock),
            self._controllers.event_writer(),
        )
        try:
            watch = AnswerWatch(source)
            submit_intent(writer, intent)
            answer = watch.wait(intent.intent_id, _ANSWER_TIMEOUT_MS)
        finally:
            writer.close()
            source.close()
        if answer is None:
            raise TimeoutError(f"no leader has answered the intent {kind} within {_ANSWER_TIMEOUT_MS:,} ms")
        if answer.event.outcome is not IntentOutcome.DONE:
            raise ConfigurationError(f"the leader has refused {kind}: {answer.event.detail}")
        return answer.event.detail

    def disconnect(self, node_id: NodeId) -> None:
        """Cut the agents of a node off from Kafka: no message goes either way.

        For the cluster the node is dead after the policy's silence limit, as after a crash. The agent refuses requests
        before that. ``agent.stop()`` is the orderly end of a node.

        Raises:
            ConfigurationError: this cluster made no agent with that name.
        """
        self._connect(node_id, connected=False)

    def reconnect(self, node_id: NodeId) -> None:
        """Undo :meth:`disconnect`; an agent that was declared dead meanwhile joins again.

        Raises:
            ConfigurationError: this cluster made no agent with that name.
        """
        self._connect(node_id, connected=True)

    def wait_until(self, condition: Callable[[], object], *, timeout_ms: int = 10_000) -> None:
        """Evaluate a condition every 20 ms until it is true.

        Raises:
            TimeoutError: it was not true in time. The cause is the error that ended an agent, if there was one, such as
                that of a callback.
            Exception: the error that ended the controller, or the condition's own.
        """
        if not self._controllers.becomes_true(condition, timeout_ms):
            raise TimeoutError(f"the condition was not true within {timeout_ms} ms") from self._agent_failure()

    def _connect(self, node_id: NodeId, *, connected: bool) -> None:
        members = [each for each in self._members if each.node_id == node_id]
        if not members:
            known = ", ".join(sorted({each.node_id for each in self._members})) or "none"
            raise ConfigurationError(f"node {node_id!r} has no agent of cluster {self.name!r}; agents: {known}")
        for member in members:
            for connection in member.connections:
                connection.connected = connected

    def _agent_failure(self) -> Exception | None:
        for member in self._members:
            try:
                member.agent.check()
            except Exception as failure:  # noqa: BLE001 - it becomes the cause of the error that is raised
                return failure
        return None
