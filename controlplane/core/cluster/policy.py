"""The logged policy: everything that two controllers have to agree on to decide alike.

It is state, recorded whole by every *term opened* decision, never read from a process's own configuration once the
cluster exists.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from controlplane.core.values.canonical import digest_hex, later
from controlplane.errors import ConfigurationError

SILENCE_MARGIN_MS = 1_000
"""How much later than a former silence limit the shorter one fences: nodes may learn of it that much later."""

MAX_SLOT_COUNT = 1 << 20
"""No cluster has more slots."""

_GREATEST = 1 << 40
"""For times in ms (35 years) and counts: no limit in practice, and far from what a log's numbers can hold."""
FEATURE_LEVEL = 2
"""The newest feature level that this code writes and reads. A decision of a higher level stops a reader.

=====  ===========================================================================================================
level  what is new in it
=====  ===========================================================================================================
1      the first one
2      *term opened* says from where its leader observed, so that a decision can be taken again; the policy may say
       who may ask for what; the level is raised by an event
=====  ===========================================================================================================

A new log begins at the newest level that its first leader supports; from then on only an operator raises it.
"""


class HashFunction(Enum):
    """How a key becomes a slot (SOFARegistry's ``registry.data.slot.func``)."""

    CRC32C = "crc32c"
    MD5 = "md5"


class ZoneRule(Enum):
    """What zones (failure domains) mean to the slot table. A node without a zone shares none with anybody."""

    IGNORED = "ignored"
    """Nothing."""
    SOFT = "soft"
    """No more than ``replicas_per_zone`` replicas of a slot in a zone, as far as balance allows."""
    HARD = "hard"
    """Never more; a slot rather has fewer replicas."""


@dataclass(frozen=True, slots=True)
class FormerSilenceLimit:
    """A longer silence limit that was shortened: whoever is cut off from the table may still serve under it.

    Attributes:
        limit_ms: it goes on to fence until so much log time, and a margin, has passed.
        since_offset: next offset of ``heartbeats`` partition 0 when it was shortened; the time counts from there.
    """

    limit_ms: int
    since_offset: int


@dataclass(frozen=True, slots=True)
class ClusterPolicy:
    """How the cluster decides.

    Attributes:
        slot_count: number of hash slots; a power of two, or crc32c would leave slots unused.
        replica_count: copies of a slot, the slot leader included.
        hash_function: how a key becomes a slot.
        silence_limit_ms: log time without a heartbeat after which a node is fenced.
        join_linger_ms: log time that a join waits for others so that a burst of joins becomes one epoch.
        positions_interval_ms: log time after which a quiet cluster writes its positions.
        protected_ratio: when more than this part of the active nodes would expire within ``protection_window_ms``
            the cluster suspects itself and freezes evictions (Eureka's self-preservation).
        protection_window_ms: log time over which expiries are counted together.
        bundles_per_namespace: equal hash ranges that a new namespace gets (Pulsar's default is 4).
        slot_policy: the name of the slot policy, which decides who holds and leads which slot.
        slot_policy_options: what the slot policy lets an operator choose, by name; the policy says what it knows.
        zone_rule: see :class:`ZoneRule`.
        replicas_per_zone: how many replicas of a slot a zone may hold.
        tolerance_percent: how far from its share of slots a node may be, in percent of the share.
        moves_in_flight: replicas that may be on the move at once for the sake of balance or of an order, and no slot
            moves again before its holders are ready; 0 means no limit.
        cool_down_ms: log time after a plan was made before any of it is carried out but emergencies and orders.
        return_window_ms: log time for which balancing does not bring back a replica that it took from a node.
        intent_rights: who may ask for what, see :mod:`~controlplane.core.intents.rights`; empty: everybody anything.
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

    def __post_init__(self) -> None:
        """Refuse values under which the cluster could not work."""
        broken = [sentence for holds, sentence in self._rules() if not holds]
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
                500 <= self.silence_limit_ms <= 20_000,  # noqa: PLR2004 - ticks are remembered for 25 s of log time
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
                0 < self.bundles_per_namespace <= 128,  # noqa: PLR2004 - Pulsar's loadBalancerNamespaceMaximumBundles
                f"bundles_per_namespace is {self.bundles_per_namespace}, expected 1 to 128",
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
        ]

    def fingerprint(self) -> str:
        """16 hexadecimal digits that name these contents; decisions carry them."""
        return digest_hex(self)[:16]
