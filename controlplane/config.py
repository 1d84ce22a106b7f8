"""The settings of one process: frozen values that are checked for contradictions when they are made.

Settings on which all controllers have to agree (replicas, silence limit, ...) are not here, but in the logged
:class:`controlplane.core.cluster.policy.ClusterPolicy`. Only ``cli`` reads the command line and the environment.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from urllib.parse import quote

from controlplane.errors import ConfigurationError

_CLUSTER_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}\Z")

MAX_PORT = 65_535
"""The greatest port of TCP."""

SASL_USER = "sasl.username"
"""librdkafka's name of the setting for the user name."""
SASL_MECHANISM = "sasl.mechanism"
"""librdkafka's name of the setting for the login mechanism; ``sasl.mechanisms`` is an alias."""

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

MAX_TICK_GAP_MS = 200
"""The most log time that the gap between two ticks counts. Not a setting: it is the same in every log."""
DEFAULT_TICK_INTERVAL_MS = 100
_LEAST_TICK_INTERVAL_MS = 10


def topic_name(cluster: str, topic: str) -> str:
    """The name of a cluster's topic in Kafka, for example ``demo.heartbeats``."""
    return f"{cluster}.{topic}"


@dataclass(frozen=True, slots=True)
class ClusterConfig:
    """The identity of one control plane: it determines the names of topics, lease and transactional id."""

    name: str

    def __post_init__(self) -> None:
        """Refuse names that cannot be part of a topic name and of a Redis key."""
        if not _CLUSTER_NAME.match(self.name):
            message = (
                f"cluster name {self.name!r} is not usable: use 1 to 63 of a-z, 0-9, '-' and '_', "
                "beginning with a letter or digit"
            )
            raise ConfigurationError(message)

    def topic(self, topic: str) -> str:
        """The Kafka name of one of the cluster's topics."""
        return topic_name(self.name, topic)

    @property
    def transactional_id(self) -> str:
        """The transactional id that all leaders of this cluster use, by which Kafka fences the former leader."""
        return f"{self.name}.leader"

    @property
    def lease_key(self) -> str:
        """The Redis hash that holds the lease; the braces keep a cluster's keys in one Redis Cluster slot."""
        return f"controlplane:{{{self.name}}}:lease"

    @property
    def log_id_key(self) -> str:
        """The Redis string that holds the log id, so that a recreated decision log is noticed."""
        return f"controlplane:{{{self.name}}}:log-id"

    @property
    def log_mark_key(self) -> str:
        """The Redis hash that says how far the decision log was known to reach."""
        return f"controlplane:{{{self.name}}}:log-mark"

    @property
    def acknowledged_key(self) -> str:
        """The Redis hash that says when Kafka last answered contenders: a tick, and about all partitions."""
        return f"controlplane:{{{self.name}}}:acknowledged"

    @property
    def contenders_key(self) -> str:
        """The Redis hash of the controllers that ask for the lease."""
        return f"controlplane:{{{self.name}}}:contenders"

    @property
    def locks_key(self) -> str:
        """The Redis set of the cluster's ``distribute_lock`` records."""
        return f"controlplane:{{{self.name}}}:distribute-locks"

    def lock_key(self, data_center: str, lock_name: str) -> str:
        """The Redis hash of a ``distribute_lock`` record, different for every pair of names."""
        return f"controlplane:{{{self.name}}}:distribute-lock:{quote(data_center, safe='')}:{quote(lock_name, safe='')}"


def principal_of(security: Mapping[str, str]) -> str:
    """The principal of a client with these librdkafka settings, see :attr:`KafkaConfig.principal`."""
    user = security.get(SASL_USER)
    if user:
        return f"User:{user}"
    if any(name.startswith(("ssl.certificate", "ssl.keystore")) for name in security):
        return "the user of this client's certificate"
    protocol = security.get("security.protocol", "PLAINTEXT").upper()
    return "this client" if protocol.startswith("SASL") else "User:ANONYMOUS"


@dataclass(frozen=True, slots=True)
class KafkaConfig:
    """How to reach Kafka.

    Attributes:
        bootstrap_servers: ``host:port`` list, comma separated.
        security: further librdkafka settings for TLS and SASL, passed to every client. Not part of the repr, because
            they may contain passwords and keys.
        schema_ids: the records of the schema ids of this installation's schema registry, for producers of inputs that
            use one: id to record and version, such as ``{17: "Heartbeat.v1"}``. An input with another id is refused.
    """

    bootstrap_servers: str
    security: Mapping[str, str] = field(default_factory=dict, repr=False)
    schema_ids: Mapping[int, str] = field(default_factory=dict)

    @property
    def principal(self) -> str:
        """The principal of a client with these settings, or a description if only Kafka knows it.

        A broker may be configured to name principals differently.
        """
        return principal_of(self.security)

    def __post_init__(self) -> None:
        """Refuse an invalid port; librdkafka would cut it to 16 bits and connect to another one."""
        for server in self.bootstrap_servers.split(","):
            _, colon, port = server.strip().rpartition(":")
            # The text after the last colon is not a port in '[::1]' and in 'ssl://kafka'; Kafka's default is used then.
            if not colon or port.endswith("]") or port.startswith("//"):
                continue
            if not (port.isascii() and port.isdigit() and 1 <= int(port) <= MAX_PORT):
                message = (
                    f"bootstrap server {server.strip()!r}: {port!r} is not a port; "
                    f"write HOST:PORT with a port of 1 to {MAX_PORT}"
                )
                raise ConfigurationError(message)


DEFAULT_LEASE_PROFILE = "default"
SOFA_LEASE_PROFILE = "sofa"
"""The lease profiles: election by our lease, or by SOFARegistry's lock."""


@dataclass(frozen=True, slots=True)
class LeaseConfig:
    """The lease by which one controller leads. It is for liveness only; safety comes from Kafka's fencing.

    Attributes:
        duration_ms: how long a leader may be silent before others may take over. With a shorter one, a crashed leader
            is replaced sooner, and a paused one loses its lease more often.
        renew_interval_ms: how often the leader renews. Two renewals have to fit into the duration.
        store_timeout_ms: how long one request to Redis may take before it counts as no answer.
        priority: how much this controller is preferred to others; greater is more. One that is outranked leaves a free
            lease to the others for half a duration.
        handover_after_ms: a leader hands over to a preferred contender that has stood by for this long without a gap,
            if it has itself led for this long. So it happens at most once in this time. 0 means never.
    """

    duration_ms: int = 2_000
    renew_interval_ms: int = 500
    store_timeout_ms: int = 400
    priority: int = 0
    handover_after_ms: int = 60_000

    def __post_init__(self) -> None:
        """Check the settings; a leader must get a second chance to renew before others may take over."""
        if min(self.duration_ms, self.renew_interval_ms, self.store_timeout_ms) <= 0:
            message = (
                f"lease settings have to be positive: duration_ms is {self.duration_ms}, renew_interval_ms "
                f"{self.renew_interval_ms}, store_timeout_ms {self.store_timeout_ms}"
            )
            raise ConfigurationError(message)
        if self.priority < 0 or (self.handover_after_ms and self.handover_after_ms < self.duration_ms):
            message = (
                f"priority is {self.priority}, handover_after_ms {self.handover_after_ms}: a priority is 0 or greater, "
                f"and handing over waits for at least a lease, {self.duration_ms} ms, or is switched off by 0"
            )
            raise ConfigurationError(message)
        least_ms = 2 * self.renew_interval_ms + self.store_timeout_ms
        if least_ms > self.duration_ms:
            message = (
                f"2 x renew_interval_ms ({self.renew_interval_ms}) + store_timeout_ms ({self.store_timeout_ms}) "
                f"exceeds duration_ms ({self.duration_ms}): one lost request would lose the lease; "
                f"use a duration of {least_ms:,} ms or more"
            )
            raise ConfigurationError(message)


class SofaRenewal(Enum):
    """The fields that a renewal in the ``sofa`` lease profile compares."""

    OWNER = "owner"
    """The owner alone, as SOFARegistry does since February 2022."""
    GUARDED = "guarded"
    """Owner, term and number of renewals as read, and time left: SOFARegistry before that, and its article."""


@dataclass(frozen=True, slots=True)
class SofaLeaseConfig:
    """Election as in SOFARegistry's meta servers, over a record of its table ``distribute_lock``.

    Attributes:
        data_center: with ``lock_name`` the record's key; controllers with another key are in another election.
        lock_name: see ``data_center``.
        duration_ms: how long the owner may be silent before others take over, compared in whole seconds. The owner
            itself stops leading after half of it.
        loop_interval_ms: pause of each controller between two rounds.
        renewal: the fields that a renewal compares.
        first_term: the term of a new record: 0, or 1 as in SOFARegistry's article.
    """

    data_center: str = "DefaultDataCenter"
    lock_name: str = "META-MASTER"
    duration_ms: int = 20_000
    loop_interval_ms: int = 1_000
    renewal: SofaRenewal = SofaRenewal.OWNER
    first_term: int = 0

    def __post_init__(self) -> None:
        """Refuse settings under which no controller could hold the lock."""
        if not self.data_center or not self.lock_name:
            message = f"data_center {self.data_center!r} and lock_name {self.lock_name!r} name the lock: give both"
            raise ConfigurationError(message)
        if not 0 < 2 * self.loop_interval_ms < self.duration_ms // 2:
            message = (
                f"2 x loop_interval_ms ({self.loop_interval_ms}) has to be less than half of duration_ms "
                f"({self.duration_ms}): a leader leads for half the lock after each renewal"
            )
            raise ConfigurationError(message)
        if self.first_term not in (0, 1):
            raise ConfigurationError(f"first_term is {self.first_term}: a new record begins with term 0 or 1")


@dataclass(frozen=True, slots=True)
class SnapshotConfig:
    """When a leader writes the next snapshot of the state: at the first of these limits since the last snapshot.

    A restart reads the newest snapshot and the decisions after it, so the first two limits bound its duration.

    Attributes:
        after_decisions: number of decisions.
        after_bytes: size of the decisions in bytes.
        after_ms: log time, if there was any decision.
    """

    after_decisions: int = 10_000
    after_bytes: int = 64 * 1024 * 1024
    after_ms: int = 3_600_000

    def __post_init__(self) -> None:
        """Refuse limits that would write snapshots without end."""
        if min(self.after_decisions, self.after_bytes, self.after_ms) <= 0:
            message = (
                f"snapshot settings have to be positive: after_decisions is {self.after_decisions}, after_bytes "
                f"{self.after_bytes}, after_ms {self.after_ms}"
            )
            raise ConfigurationError(message)


@dataclass(frozen=True, slots=True)
class ControllerConfig:
    """The settings of one controller process.

    Attributes:
        cluster: the cluster that it controls.
        kafka: how to reach the log.
        redis_url: of the lease store, for example ``redis://localhost:6379/0``. Not part of the repr, because it may
            contain a password.
        controller_id: its name in the lease, in ticks and in decisions; unique among the cluster's controllers.
        lease: see :class:`LeaseConfig`.
        tick_interval_ms: how often it appends a tick to each partition of ``heartbeats``. Node silence is counted
            between ticks, at most 200 ms per gap, so an interval above 200 ms would slow failure detection down.
        follow_only: make it an observer, which follows the log and never stands for election.
        stop_when_lease_store_is_lost: stop leading when Redis does not answer for a lease duration. By default it
            continues: that is safe, because commits are fenced by Kafka, and keeps the routing table maintained.
        sofa_lease: stand for election as SOFARegistry's meta servers do; None uses ``lease``. The durations of
            ``lease`` apply to everything else in both cases.
        snapshots: see :class:`SnapshotConfig`.
    """

    cluster: ClusterConfig
    kafka: KafkaConfig
    redis_url: str = field(repr=False)
    controller_id: str
    lease: LeaseConfig = field(default_factory=LeaseConfig)
    tick_interval_ms: int = DEFAULT_TICK_INTERVAL_MS
    follow_only: bool = False
    stop_when_lease_store_is_lost: bool = False
    sofa_lease: SofaLeaseConfig | None = None
    snapshots: SnapshotConfig = field(default_factory=SnapshotConfig)

    def __post_init__(self) -> None:
        """Refuse settings that would silently slow failure detection down."""
        if not self.controller_id:
            message = "controller_id is empty: give each controller a name of its own"
            raise ConfigurationError(message)
        if not _LEAST_TICK_INTERVAL_MS <= self.tick_interval_ms <= MAX_TICK_GAP_MS:
            message = (
                f"tick_interval_ms is {self.tick_interval_ms}; between ticks at most {MAX_TICK_GAP_MS} ms count, "
                f"so use {_LEAST_TICK_INTERVAL_MS} to {MAX_TICK_GAP_MS}"
            )
            raise ConfigurationError(message)
