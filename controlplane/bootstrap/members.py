"""Composes what users embed, the node agent and the routing client, on Kafka."""

import re
from collections.abc import Callable, Mapping
from typing import Final

import structlog
from prometheus_client import REGISTRY, CollectorRegistry

from controlplane.adapters.kafka_log import KafkaEventWriter, KafkaLogReader
from controlplane.adapters.system_clock import SystemClock
from controlplane.adapters.system_threads import SystemThreads
from controlplane.config import ClusterConfig, KafkaConfig
from controlplane.core.membership.node import NodeRole
from controlplane.core.session.node_session import SessionSettings
from controlplane.core.values.addresses import Address
from controlplane.errors import ConfigurationError
from controlplane.node import HandoffSettings, NodeAgent, NodeCallbacks, NodeLoad
from controlplane.node.alternating_writer import AlternatingWriter
from controlplane.node.description import NodeDescription
from controlplane.node.load_thread import LoadReports
from controlplane.routing import RoutingClient

_PLACE: Final = re.compile(r"(?:\[(?P<bracketed>[^\[\]]+)\]|(?P<host>[^:\[\]\s]+)):(?P<port>[0-9]{1,5})")


def node_agent(  # noqa: PLR0913 - all but three by name and with defaults
    cluster: str,
    bootstrap_servers: str,
    node_id: str,
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
    security: Mapping[str, str] | None = None,
    settings: SessionSettings | None = None,
    handoff: HandoffSettings | None = None,
    registry: CollectorRegistry = REGISTRY,
) -> NodeAgent:
    """An agent that is not started yet: use it as a context manager, or call ``start``.

    Args:
        cluster: the cluster's name.
        bootstrap_servers: Kafka's servers, as a ``host:port`` list.
        node_id: the node's name, stable over its restarts.
        addresses: where the node serves, by name: ``"host:port"`` (IPv6 as ``"[host]:port"``) or ``(host, port)``.
        callbacks: notified of gains and losses.
        load_source: measures the load; None sends no load reports.
        load_interval_ms: interval of the load reports.
        role: data or session.
        zone: failure domain.
        weight: share of slots relative to other nodes.
        capacity: the greatest number of replicas it may hold; 0 means no limit.
        version: the node software's version.
        security: further librdkafka settings for TLS and SASL.
        settings: timing, and what to do when the log is lost.
        handoff: for how long calls and callbacks of bundles that move are waited for.
        registry: holds its metrics until it stops, labelled by cluster and node.

    Raises:
        ConfigurationError: a name or a number is not usable.
    """
    log_through_the_standard_library()
    config, kafka = ClusterConfig(cluster), KafkaConfig(bootstrap_servers, security or {})
    # Before the clients are opened, because an invalid description must not leave connections behind.
    node = describe_node(node_id, addresses, role, zone, weight=weight, capacity=capacity, version=version)
    return NodeAgent(
        writer=AlternatingWriter(KafkaEventWriter(config, kafka), KafkaEventWriter(config, kafka)),
        reader=KafkaLogReader(config, kafka),
        clock=SystemClock(),
        threads=SystemThreads(),
        node=node,
        cluster=cluster,
        callbacks=callbacks,
        load_reports=_load_reports(config, kafka, load_source, load_interval_ms),
        settings=settings,
        handoff=handoff,
        registry=registry,
    )


def _load_reports(
    config: ClusterConfig, kafka: KafkaConfig, load_source: Callable[[], NodeLoad] | None, load_interval_ms: int
) -> LoadReports | None:
    if load_source is None:
        return None
    # A load report that waits for a broker must not hold back heartbeats, so it has connections of its own.
    return LoadReports(load_source, KafkaEventWriter(config, kafka), load_interval_ms)


def describe_node(
    node_id: str,
    addresses: Mapping[str, str | tuple[str, int]] | None,
    role: NodeRole,
    zone: str,
    *,
    weight: int,
    capacity: int,
    version: str,
) -> NodeDescription:
    """The properties of a node, from the arguments of :func:`node_agent` with these names.

    Raises:
        ConfigurationError: a name or a number is not usable.
    """
    named = tuple(_address(name, place) for name, place in sorted((addresses or {}).items()))
    return NodeDescription(node_id, role, named, zone, weight, capacity, version)


def _address(name: str, place: object) -> Address:
    """Convert an address as the user wrote it; it may have any type, because no type checker may have seen it."""
    match place:
        case str():
            written = _PLACE.fullmatch(place)
            if written:
                return Address(name, written["bracketed"] or written["host"], int(written["port"]))
        case (str(host), int(port)):
            return Address(name, host, port)
        case _:
            pass
    message = f"address {name!r} is {place!r}: write 'HOST:PORT' or (HOST, PORT), as in {{'http': '10.0.0.7:8080'}}"
    raise ConfigurationError(message)


def routing_client(
    cluster: str,
    bootstrap_servers: str,
    *,
    security: Mapping[str, str] | None = None,
    registry: CollectorRegistry = REGISTRY,
) -> RoutingClient:
    """A routing client that is not started yet: use it as a context manager, or call ``start``.

    Args:
        cluster: the cluster's name.
        bootstrap_servers: Kafka's servers, as a ``host:port`` list.
        security: further librdkafka settings for TLS and SASL.
        registry: holds its metrics until it is closed, labelled by cluster and number of the client.

    Raises:
        ConfigurationError: the cluster's name is not usable.
    """
    log_through_the_standard_library()
    config, kafka = ClusterConfig(cluster), KafkaConfig(bootstrap_servers, security or {})
    return RoutingClient(KafkaLogReader(config, kafka), SystemThreads(), cluster=cluster, registry=registry)


def log_through_the_standard_library() -> None:
    """Pass log lines to ``logging``, which the embedding program configures, unless it has configured structlog.

    Without this, structlog would print every line, debug lines included, to the standard output of a program that does
    not use structlog.
    """
    if structlog.is_configured():
        return
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            structlog.contextvars.merge_contextvars,
            structlog.processors.format_exc_info,
            structlog.processors.KeyValueRenderer(key_order=["event"]),
        ],
        wrapper_class=structlog.stdlib.BoundLogger,
        logger_factory=structlog.stdlib.LoggerFactory(),
    )
