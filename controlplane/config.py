"""Settings of one process: frozen values that refuse to exist when they contradict themselves.

What all controllers have to agree on (replicas, silence limit, ...) is not here: that is the logged
:class:`controlplane.core.policy.Policy`. The command line and the environment are read in ``cli`` only.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from controlplane.errors import ConfigurationError

_CLUSTER_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}\Z")

MAX_PORT = 65_535
"""The greatest port of TCP."""

HEARTBEATS = "heartbeats"
LOAD_REPORTS = "load-reports"
MEMBERSHIP = "membership"
INTENTS = "intents"
CANDIDATES = "candidates"
DECISIONS = "decisions"
ROUTING_TABLE = "routing-table"
SNAPSHOTS = "snapshots"
DEAD_LETTERS = "dead-letters"
"""Topic names without the cluster's prefix; :meth:`ClusterConfig.topic` adds it."""


def topic_name(cluster: str, topic: str) -> str:
    """The name of a cluster's topic in Kafka, for example ``demo.heartbeats``."""
    return f"{cluster}.{topic}"


@dataclass(frozen=True, slots=True)
class ClusterConfig:
    """Which control plane is meant: it names the topics, the lease and the transactional id."""

    name: str

    def __post_init__(self) -> None:
        """Refuse names that could not be part of a topic name and of a Redis key alike."""
        if not _CLUSTER_NAME.match(self.name):
            message = (
                f"cluster name {self.name!r} is not usable: take 1 to 63 of a-z, 0-9, '-' and '_', "
                "beginning with a letter or digit"
            )
            raise ConfigurationError(message)

    def topic(self, topic: str) -> str:
        """The Kafka name of one of the cluster's topics."""
        return topic_name(self.name, topic)

    @property
    def transactional_id(self) -> str:
        """The one transactional id of every leader of this cluster: Kafka fences the former leader by it."""
        return f"{self.name}.leader"

    @property
    def lease_key(self) -> str:
        """The Redis hash that holds the lease; the braces keep a cluster's keys in one Redis Cluster slot."""
        return f"controlplane:{{{self.name}}}:lease"

    @property
    def log_id_key(self) -> str:
        """The Redis string that holds the log id, so that a recreated decision log is noticed."""
        return f"controlplane:{{{self.name}}}:log-id"


@dataclass(frozen=True, slots=True)
class KafkaConfig:
    """How to reach Kafka.

    Attributes:
        bootstrap_servers: ``host:port`` list, comma separated.
        security: further librdkafka settings for TLS and SASL, passed through to every client.
        schema_ids: what the ids of this installation's schema registry mean, for producers of inputs that use one:
            id to record and version, such as ``{17: "Heartbeat.v1"}``. An input with another id is refused.
    """

    bootstrap_servers: str
    security: Mapping[str, str] = field(default_factory=dict)
    schema_ids: Mapping[int, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuse a port that is none: librdkafka would cut it to 16 bits and ask another one."""
        for server in self.bootstrap_servers.split(","):
            _, colon, port = server.strip().rpartition(":")
            # What follows the last colon is no port in '[::1]' and in 'ssl://kafka'; without one Kafka's own is taken.
            if not colon or port.endswith("]") or port.startswith("//"):
                continue
            if not (port.isascii() and port.isdigit() and 1 <= int(port) <= MAX_PORT):
                message = (
                    f"bootstrap server {server.strip()!r}: {port!r} is no port; "
                    f"write HOST:PORT with a port of 1 to {MAX_PORT}"
                )
                raise ConfigurationError(message)


@dataclass(frozen=True, slots=True)
class LeaseConfig:
    """The lease by which one controller leads. It is liveness only; safety is Kafka's fencing.

    Attributes:
        duration_ms: how long a leader may be silent before others may take over. Shorter finds a dead leader sooner
            and makes a paused one lose its lease more often.
        renew_interval_ms: how often the leader renews. Two renewals have to fit into the duration.
        store_timeout_ms: how long one request to Redis may take before it counts as no answer.
    """

    duration_ms: int = 2_000
    renew_interval_ms: int = 500
    store_timeout_ms: int = 400

    def __post_init__(self) -> None:
        """A leader must get a second chance to renew before others may take over."""
        if min(self.duration_ms, self.renew_interval_ms, self.store_timeout_ms) <= 0:
            message = (
                f"lease settings have to be positive: duration_ms is {self.duration_ms}, renew_interval_ms "
                f"{self.renew_interval_ms}, store_timeout_ms {self.store_timeout_ms}"
            )
            raise ConfigurationError(message)
        if 2 * self.renew_interval_ms + self.store_timeout_ms > self.duration_ms:
            message = (
                f"2 x renew_interval_ms ({self.renew_interval_ms}) + store_timeout_ms ({self.store_timeout_ms}) "
                f"exceeds duration_ms ({self.duration_ms}): one lost request would lose the lease"
            )
            raise ConfigurationError(message)


@dataclass(frozen=True, slots=True)
class ControllerConfig:
    """One controller process.

    Attributes:
        cluster: which cluster it serves.
        kafka: where the log is.
        redis_url: where the lease is, for example ``redis://localhost:6379/0``.
        controller_id: its name in the lease, in ticks and in decisions; unique among the cluster's controllers.
        lease: see :class:`LeaseConfig`.
        tick_interval_ms: how often it appends a tick to each partition of ``heartbeats``. Node silence is counted
            between ticks, at most 200 ms a gap, so a longer interval than 200 ms slows failure detection down.
        follow_only: an observer follows the log, warms up and never stands for election.
        stop_when_lease_store_is_lost: give up leading when Redis does not answer for a lease duration. The default
            goes on: commits are fenced by Kafka, so leading on is safe, and routing stays maintained.
    """

    cluster: ClusterConfig
    kafka: KafkaConfig
    redis_url: str
    controller_id: str
    lease: LeaseConfig = field(default_factory=LeaseConfig)
    tick_interval_ms: int = 100
    follow_only: bool = False
    stop_when_lease_store_is_lost: bool = False

    def __post_init__(self) -> None:
        """Refuse what would quietly slow failure detection down."""
        if not self.controller_id:
            message = "controller_id is empty: give each controller a name of its own"
            raise ConfigurationError(message)
        if not 10 <= self.tick_interval_ms <= 200:  # noqa: PLR2004 - the bounds are explained in the message
            message = (
                f"tick_interval_ms is {self.tick_interval_ms}; between ticks at most 200 ms count, so take 10 to 200"
            )
            raise ConfigurationError(message)
