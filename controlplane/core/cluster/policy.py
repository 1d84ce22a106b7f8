"""The cluster policy: all settings on which controllers have to agree to make equal decisions.

It is part of the state. Every *term opened* decision records it whole. Once the cluster exists, no process reads it
from its own configuration.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from controlplane.core.values.canonical import digest_hex, later
from controlplane.errors import ConfigurationError

SILENCE_MARGIN_MS = 1_000
"""Log time beyond a former silence limit after which a shorter one is in force: nodes learn of it with a delay."""

MAX_BUNDLES_PER_NAMESPACE = 128
"""Greatest number of bundles with which a namespace is created (Pulsar's loadBalancerNamespaceMaximumBundles)."""
MAX_SLOT_COUNT = 1 << 20
"""Greatest number of slots of a cluster."""

_GREATEST = 1 << 40
"""Upper bound of times in ms (35 years) and of counts. No limit in practice, and far below 64 bits."""
FEATURE_LEVEL = 3
"""The newest feature level that this version writes and reads. A decision of a higher level stops a reader.

=====  ===========================================================================================================
level  what it adds
=====  ===========================================================================================================
1      the first level
2      *term opened* has the first offsets that the leader observed, so that decisions can be audited, and the name of
       the cluster; the policy may have intent rights; an event raises the level; tenants
3      decisions that hold with several brokers: at most a part of the nodes is fenced for silence within a window;
       ticks name what their senders have read, and no append times of two partitions are compared; heartbeats with
       groups of slots of equal status; nodes name their process; the table says the level; a shortened silence limit
       holds as soon as every member knows it; nodes that are gone for long are forgotten; bundles and the leaderships
       of slots move by handoff, bundles are split and end by orders, and nodes say what they have released and opened
=====  ===========================================================================================================

A new log begins at the newest level that its first leader supports. From then on only an operator raises it.
"""

SEVERAL_BROKERS_LEVEL = 3
"""The feature level from which decisions hold with several brokers, whose clocks and connections fail separately."""
HANDOFFS_FROM_LEVEL = 3
"""The feature level from which slots and bundles move by handoff: nodes say that they take part, and rows show it."""
HEARTBEAT_INTERVAL_MS = 1_000
"""The interval between two heartbeats of a node, unless it is configured otherwise or the silence limit is short."""


class HashFunction(Enum):
    """The hash function from a key to a slot (SOFARegistry's ``registry.data.slot.func``)."""

    CRC32C = "crc32c"
    MD5 = "md5"


class ZoneRule(Enum):
    """The effect of zones (failure domains) on the slot table. A node without a zone is alone in its zone."""

    IGNORED = "ignored"
    """Zones have no effect."""
    SOFT = "soft"
    """At most ``replicas_per_zone`` replicas of a slot in a zone, as far as balance allows."""
    HARD = "hard"
    """Never more than ``replicas_per_zone`` replicas; a slot has fewer replicas where necessary."""


@dataclass(frozen=True, slots=True)
class FormerSilenceLimit:
    """A silence limit that was shortened. A node that is cut off from the table may still serve under it.

    Attributes:
        limit_ms: the former limit. It stays in force for this log time plus :data:`SILENCE_MARGIN_MS`.
        since_offset: next offset of ``heartbeats`` partition 0 when it was shortened. Below feature level 3, the time
            counts from there.
    """

    limit_ms: int
    since_offset: int


@dataclass(frozen=True, slots=True)
class ClusterPolicy:
    """The settings by which the controllers of a cluster decide.

    Attributes:
        slot_count: number of hash slots; a power of two, because crc32c would leave slots unused otherwise.
        replica_count: number of replicas of a slot, including the slot leader.
        hash_function: the hash function from a key to a slot.
        silence_limit_ms: log time without a heartbeat after which a node is fenced.
        join_linger_ms: log time that a join waits for others, so that a burst of joins becomes one epoch.
        positions_interval_ms: log time after which a quiet cluster writes its positions.
        protected_ratio: within ``protection_window_ms`` at most this part of the nodes is fenced for silence, and at
            least one may be. If more are silent, evictions are frozen, because the fault is then probably not the
            nodes' (Eureka's self-preservation).
        protection_window_ms: log time over which nodes fenced for silence are counted together, those included that
            have come back since.
        bundles_per_namespace: number of equal hash ranges of a new namespace (Pulsar's default is 4).
        slot_policy: name of the slot policy, which decides the holders and the leader of each slot.
        slot_policy_options: options of the slot policy by name; which ones exist depends on the slot policy.
        zone_rule: see :class:`ZoneRule`.
        replicas_per_zone: greatest number of replicas of a slot in a zone.
        tolerance_percent: greatest distance of a node from its share of slots, in percent of the share.
        moves_in_flight: greatest number of replicas that may move at the same time for balance or an order. With a
            limit, a slot moves again only after its holders are ready. 0 means no limit.
        cool_down_ms: log time after a plan was made during which only its emergencies and orders are carried out.
        return_window_ms: log time during which balancing does not return a replica to a node that it took it from.
        forget_nodes_after_ms: log time after which a node that left or was fenced is forgotten by the next decision, if
            no slot, bundle or order names it. From feature level 3 on.
        intent_rights: see :mod:`~controlplane.core.intents.rights`; empty means that every principal may ask for every
            intent.
        bundle_moves_in_flight: greatest number of bundles that are released, assigned or split at the same time because
            of an order, a drain or an exclusion. 0 means no limit. From feature level 3 on. By default the
            ``calls_at_once`` of a node: more would wait for their calls, and for one another, without an owner.
        handoff_limit_ms: log time within which a node has to open a bundle that it is assigned, or to divide one that
            it has to split. After it another node is chosen, or the split is given up. From feature level 3 on.
        copy_limit_ms: log time within which the next leader of a slot has to copy its data. After it the slot moves
            without the data. From feature level 3 on.
    """

    slot_count: int = 256
    replica_count: int = 2
    hash_function: HashFunction = HashFunction.CRC32C
    silence_limit_ms: int = 2_500
    join_linger_ms: int = 200
    positions_interval_ms: int = 600_000
    protected_ratio: float = 0.5
    protection_window_ms: int = 10_000
    bundles_per_namespace: int = 4
    slot_policy: str = "minimal"
    slot_policy_options: Mapping[str, str] = field(default_factory=dict)
    zone_rule: ZoneRule = ZoneRule.SOFT
    replicas_per_zone: int = 1
    tolerance_percent: int = 0
    moves_in_flight: int = 0
    cool_down_ms: int = 0
    return_window_ms: int = 60_000
    intent_rights: Mapping[str, str] = field(default_factory=dict, metadata=later(since_level=2))
    forget_nodes_after_ms: int = field(default=86_400_000, metadata=later(since_level=3))
    bundle_moves_in_flight: int = field(default=16, metadata=later(since_level=3))
    handoff_limit_ms: int = field(default=10_000, metadata=later(since_level=3))
    copy_limit_ms: int = field(default=600_000, metadata=later(since_level=3))

    def __post_init__(self) -> None:
        """Refuse invalid values.

        Raises:
            ConfigurationError: a value is out of range; the message names each of them.
        """
        broken = [sentence for holds, sentence in (*self._rules(), *self._handoff_rules()) if not holds]
        if broken:
            message = "policy: " + "; ".join(broken)
            raise ConfigurationError(message)

    def _rules(self) -> list[tuple[bool, str]]:
        return [
            (
                0 < self.slot_count <= MAX_SLOT_COUNT and self.slot_count & (self.slot_count - 1) == 0,
                f"slot_count is {self.slot_count}, expected a power of two, 1 to {MAX_SLOT_COUNT:,}",
            ),
            (1 <= self.replica_count <= 5, f"replica_count is {self.replica_count}, expected 1 to 5"),  # noqa: PLR2004
            (
                500 <= self.silence_limit_ms <= 20_000,  # noqa: PLR2004 - heartbeats are kept for 25 s of log time
                f"silence_limit_ms is {self.silence_limit_ms}, expected 500 to 20,000",
            ),
            (
                0 <= self.join_linger_ms <= _GREATEST,
                f"join_linger_ms is {self.join_linger_ms}, expected 0 to {_GREATEST:,}",
            ),
            (
                1 <= self.positions_interval_ms <= _GREATEST,
                f"positions_interval_ms is {self.positions_interval_ms}, expected 1 to {_GREATEST:,}",
            ),
            (
                0 < self.protected_ratio <= 1,
                f"protected_ratio is {self.protected_ratio}, expected more than 0, and at most 1",
            ),
            (
                0 <= self.protection_window_ms <= _GREATEST,
                f"protection_window_ms is {self.protection_window_ms}, expected 0 to {_GREATEST:,}",
            ),
            (
                0 < self.bundles_per_namespace <= MAX_BUNDLES_PER_NAMESPACE,
                f"bundles_per_namespace is {self.bundles_per_namespace}, expected 1 to {MAX_BUNDLES_PER_NAMESPACE}",
            ),
            (bool(self.slot_policy), "slot_policy is empty"),
            (
                0 <= self.moves_in_flight <= _GREATEST,
                f"moves_in_flight is {self.moves_in_flight}, expected 0 to {_GREATEST:,}",
            ),
            (
                0 <= self.cool_down_ms <= _GREATEST,
                f"cool_down_ms is {self.cool_down_ms}, expected 0 to {_GREATEST:,}",
            ),
            (
                0 <= self.return_window_ms <= _GREATEST,
                f"return_window_ms is {self.return_window_ms}, expected 0 to {_GREATEST:,}",
            ),
            (
                1 <= self.replicas_per_zone <= 5,  # noqa: PLR2004
                f"replicas_per_zone is {self.replicas_per_zone}, expected 1 to 5",
            ),
            (
                0 <= self.tolerance_percent <= 100,  # noqa: PLR2004
                f"tolerance_percent is {self.tolerance_percent}, expected 0 to 100",
            ),
            (
                30_000 <= self.forget_nodes_after_ms <= _GREATEST,  # noqa: PLR2004 - heartbeats are kept for 25 s
                f"forget_nodes_after_ms is {self.forget_nodes_after_ms}, expected 30,000 to {_GREATEST:,}",
            ),
        ]

    def _handoff_rules(self) -> list[tuple[bool, str]]:
        return [
            (
                0 <= self.bundle_moves_in_flight <= _GREATEST,
                f"bundle_moves_in_flight is {self.bundle_moves_in_flight}, expected 0 to {_GREATEST:,}",
            ),
            (
                1_000 <= self.handoff_limit_ms <= 25_000,  # noqa: PLR2004 - ticks are remembered for longer than this
                f"handoff_limit_ms is {self.handoff_limit_ms}, expected 1,000 to 25,000",
            ),
            (
                1_000 <= self.copy_limit_ms <= _GREATEST,  # noqa: PLR2004
                f"copy_limit_ms is {self.copy_limit_ms}, expected 1,000 to {_GREATEST:,}",
            ),
        ]

    def fingerprint(self) -> str:
        """16 hexadecimal digits that identify the policy's contents; decisions carry them."""
        return digest_hex(self)[:16]
